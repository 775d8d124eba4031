import StoreCore

/// The bytes that a store passes to its verifier.
public struct TextVerification: Sendable {
    /// The identifier of the text; `nil` for a manifest.
    public let identifier: String?
    /// The version that the manifest lists for the bytes; `nil` for a manifest and for an unversioned text.
    public let version: SemanticVersion?
    /// The bytes as the server sent them.
    public let bytes: [UInt8]
    /// The response's header fields by their lowercase names, without `set-cookie`.
    public let headers: [String: String]
    /// Whether a manifest that a verifier has accepted lists the bytes, with their digest if it states one.
    ///
    /// `false` for a manifest, for an unversioned text, and for a saved text that was fetched without a verifier. A later verifier sees a text
    /// that an earlier one has accepted with the same value.
    public let isListed: Bool

    /// Makes a verification, for tests of a verifier.
    ///
    /// - Parameters:
    ///   - identifier: The identifier of the text; `nil` for a manifest.
    ///   - version: The version that the manifest lists for the bytes.
    ///   - bytes: The bytes as the server sent them.
    ///   - headers: The response's header fields by their lowercase names.
    ///   - isListed: Whether a manifest that a verifier has accepted lists the bytes.
    public init(
        identifier: String? = nil, version: SemanticVersion? = nil, bytes: [UInt8], headers: [String: String] = [:], isListed: Bool = false
    ) {
        (self.identifier, self.version, self.isListed) = (identifier, version, isListed)
        (self.bytes, self.headers) = (bytes, headers)
    }
}

/// Verifies the bytes of manifests and texts, such as their signatures.
///
/// ```swift
/// let verifier = TextVerifier { verification in
///     guard isSigned(verification.bytes, verification.headers["x-signature"])
///     else { throw Forged() }
/// }
/// let texts = try TextStore(session: "legal", verify: verifier)
/// ```
///
/// This is a type rather than a closure so that a trailing closure of ``TextStore/TextStore`` never becomes a verifier by accident.
///
/// <doc:SecurityNotes> explains when a verifier runs, and what a refusal does.
public struct TextVerifier: Sendable {
    /// The time that one verification may take.
    public let deadline: Duration

    private let body: @Sendable (TextVerification) async throws -> Void

    /// Makes a verifier.
    ///
    /// - Parameters:
    ///   - deadline: The time that one verification may take. After it, the store cancels the verification and refuses the bytes.
    ///   - verify: Throws to refuse the bytes. Runs concurrently for several texts, never under a lock, and before the store parses the
    ///     bytes.
    public init(deadline: Duration = .seconds(30), _ verify: @escaping @Sendable (TextVerification) async throws -> Void) {
        self.deadline = deadline
        body = verify
    }

    /// Verifies bytes; refuses them also after the deadline, and if the task is canceled.
    func verify(_ verification: TextVerification, _ time: any TimeSource) async throws(TextStoreError) {
        let outcome = WatchedState<Result<Void, any Error>?>(nil)
        let limit = time.now.advanced(by: deadline)
        // A task of its own lets the store continue after the deadline even if the closure ignores cancellation.
        let work = Task { [body] in
            let result: Result<Void, any Error>
            do { result = .success(try await body(verification)) } catch { result = .failure(error) }
            outcome.update { $0 = $0 ?? result }
        }
        let timer = Task { [deadline] in
            // Canceled as soon as the closure has returned.
            guard (try? await time.sleep(until: limit)) != nil else { return }
            outcome.update { $0 = $0 ?? .failure(DeadlinePassed(deadline: deadline)) }
        }
        defer {
            work.cancel()
            timer.cancel()
        }
        do { try await outcome.wait { $0 }.get() } catch {
            throw TextStoreError(
                .verificationFailed, identifier: verification.identifier,
                "cannot use the bytes: the app's verifier refused them; check the signature and the key", underlyingError: error)
        }
    }

    private struct DeadlinePassed: Error, CustomStringConvertible {
        let deadline: Duration

        var description: String { "the verification did not end within \(deadline)" }
    }
}

extension TextVerification {
    init(_ record: TextRecord, as version: SemanticVersion?, isListed: Bool) {
        let mark: [UInt8] = record.facts.fileDigest == record.facts.digest ? [] : [0xEF, 0xBB, 0xBF]
        self.init(
            identifier: record.identifier, version: version, bytes: mark + record.text.utf8, headers: record.headers ?? [:],
            isListed: isListed && version != nil)
    }

    /// Returns header fields by their lowercase names; values of the same name are joined (RFC 9110 §5.3). Drops cookies, which stay off
    /// the disk.
    static func fields(_ headers: [String: String]) -> [String: String] {
        let lowered = headers.sorted { $0.key < $1.key }.map { ($0.key.lowercased(), $0.value) }
        return Dictionary(lowered.filter { $0.0 != "set-cookie" }) { $0 + ", " + $1 }
    }
}
