/// What a scripted fetcher answers one request with.
public struct ScriptedAnswer<Content: Sendable>: Sendable {
    /// What the fetch returns or throws.
    let result: Result<OriginResponse<Content>, any Error>

    /// The fetch returns new content.
    ///
    /// - Parameters:
    ///   - content: The content.
    ///   - freshness: What the origin says of its lifetime.
    ///   - validator: What asks the origin later whether it has changed.
    public static func success(
        _ content: Content, freshness: Freshness = .unspecified, validator: Validator? = nil
    ) -> ScriptedAnswer {
        ScriptedAnswer(result: .success(OriginResponse(.modified(content, freshness, validator))))
    }

    /// The fetch returns the word that the store's own content is still right.
    ///
    /// - Parameter freshness: How long it is right from now on.
    public static func notModified(_ freshness: Freshness = .unspecified) -> ScriptedAnswer {
        ScriptedAnswer(result: .success(OriginResponse(.notModified(freshness))))
    }

    /// The fetch throws.
    ///
    /// - Parameter error: What it throws, as it stands.
    public static func failure(_ error: any Error) -> ScriptedAnswer {
        ScriptedAnswer(result: .failure(error))
    }

    /// The fetch returns a page of a list.
    ///
    /// - Parameter page: The page, with its keys.
    public static func page<Element>(_ page: Page<Element>) -> ScriptedAnswer where Content == [Element] {
        ScriptedAnswer(
            result: .success(
                OriginResponse(.modified(page.elements, page.freshness, page.validator), nextKey: page.nextKey, prevKey: page.prevKey)))
    }

    /// The fetch returns a page of a list.
    ///
    /// - Parameters:
    ///   - elements: The elements of the page.
    ///   - nextKey: What asks for the page after it; `nil` where there is none.
    ///   - prevKey: What asks for the page before it; `nil` where there is none.
    ///   - freshness: What the origin says of the page's lifetime.
    ///   - validator: What asks the origin later whether the page has changed.
    public static func page<Element>(
        _ elements: [Element], nextKey: String? = nil, prevKey: String? = nil,
        freshness: Freshness = .unspecified, validator: Validator? = nil
    ) -> ScriptedAnswer where Content == [Element] {
        .page(Page(elements, nextKey: nextKey, prevKey: prevKey, freshness: freshness, validator: validator))
    }
}

/// A request as a scripted fetcher got it.
public struct ScriptedRequest<Param: Hashable & Sendable>: Hashable, Sendable {
    /// The request's number at its fetcher, from 1.
    public let number: Int

    /// What was asked for.
    public let request: OriginRequest<Param>

    /// The key of the data.
    public var param: Param {
        switch request {
        case .content(let param, revalidating: _): param
        case .page(_, key: _, let param): param
        }
    }

    /// What names the version that the store already has; `nil` where it has none, and for further pages.
    public var validator: Validator? {
        if case .content(_, let validator) = request { validator } else { nil }
    }

    /// The side of the list that a page was asked for at; `nil` for the content itself, the first page.
    public var direction: PageDirection? {
        if case .page(let direction, key: _, _) = request { direction } else { nil }
    }

    /// The key of the page asked for; `nil` for the content itself, the first page.
    public var pageKey: String? {
        if case .page(_, let key, _) = request { key } else { nil }
    }
}

/// What a scripted fetch does when its task is cancelled.
public enum ScriptedCancellation: Hashable, Sendable {
    /// It throws `CancellationError` at once, also while it is held, and takes no answer.
    case honoured
    /// It goes on: held until it is released, it answers as if nothing had happened.
    case ignored
}
