public import StoreCore

/// The result of one fetch in the script of a fetcher.
public struct ScriptedAnswer<Content: Sendable>: Sendable {
    let result: Result<OriginResponse<Content>, any Error>

    /// Returns new content.
    ///
    /// - Parameters:
    ///   - content: The content.
    ///   - freshness: The content's freshness as the origin states it.
    ///   - validator: The validator of this version.
    public static func success(
        _ content: Content, freshness: Freshness = .unspecified, validator: Validator? = nil
    ) -> ScriptedAnswer {
        ScriptedAnswer(result: .success(OriginResponse(.modified(content, freshness, validator))))
    }

    /// Confirms that the store's version is current.
    ///
    /// - Parameter freshness: The new freshness of the content.
    public static func notModified(_ freshness: Freshness = .unspecified) -> ScriptedAnswer {
        ScriptedAnswer(result: .success(OriginResponse(.notModified(freshness))))
    }

    /// Throws an error.
    ///
    /// - Parameter error: The error, which reaches callers unchanged.
    public static func failure(_ error: any Error) -> ScriptedAnswer {
        ScriptedAnswer(result: .failure(error))
    }

    /// Returns a page of a list.
    ///
    /// - Parameter page: The page, with its keys.
    public static func page<Element>(_ page: Page<Element>) -> ScriptedAnswer where Content == [Element] {
        let result = FetchResult.modified(page.elements, page.freshness, page.validator)
        return ScriptedAnswer(
            result: .success(OriginResponse(result, nextKey: page.nextKey, prevKey: page.prevKey, guessedEnd: page.guessedEnd)))
    }

    /// Returns a page of a list.
    ///
    /// - Parameters:
    ///   - elements: The elements of the page.
    ///   - nextKey: The key of the page after it; `nil` if there is none.
    ///   - prevKey: The key of the page before it; `nil` if there is none.
    ///   - freshness: The page's freshness as the origin states it.
    ///   - validator: The validator of the page.
    public static func page<Element>(
        _ elements: [Element], nextKey: String? = nil, prevKey: String? = nil,
        freshness: Freshness = .unspecified, validator: Validator? = nil
    ) -> ScriptedAnswer where Content == [Element] {
        .page(Page(elements, nextKey: nextKey, prevKey: prevKey, freshness: freshness, validator: validator))
    }
}

/// A request that a scripted fetcher received.
public struct ScriptedRequest<Param: Hashable & Sendable>: Hashable, Sendable {
    /// The request's number at its fetcher, from 1.
    public let number: Int

    /// The request as the store made it, with the validator of its version or the key of the page.
    public let request: OriginRequest<Param>

    /// The key for which the store requests content or a page.
    public var param: Param {
        switch request {
        case .content(let param, revalidating: _): param
        case .page(_, key: _, let param): param
        }
    }

    /// The validator of the store's version; `nil` if the store has none, and for further pages.
    public var validator: Validator? {
        if case .content(_, let validator) = request { validator } else { nil }
    }

    /// The direction of the requested page; `nil` for the content itself and the first page.
    public var direction: PageDirection? {
        if case .page(let direction, key: _, _) = request { direction } else { nil }
    }

    /// The key of the requested page; `nil` for the content itself and the first page.
    public var pageKey: String? {
        if case .page(_, let key, _) = request { key } else { nil }
    }
}

/// The behavior of a scripted fetch whose task is canceled.
public enum ScriptedCancellation: Hashable, Sendable {
    /// The fetch throws `CancellationError` at once, even while it is held, and consumes no answer.
    case honored
    /// The fetch ignores the cancellation: it stays held until it is released, and then returns its answer.
    case ignored
}
