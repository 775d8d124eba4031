import StoreCore
internal import StorePlatform
internal import Synchronization

/// Repeated verification of saved bytes, because an app update may have added or changed the verifier since the save.
extension TextStore {
    /// Verifies the records of some or all registered texts before the session shows them.
    ///
    /// - Parameter bundled: The digests of bundled files that the session does not know yet. Bundled files are part of the app and need no
    ///   verification.
    func verifyKept(_ identifiers: [String]?, _ bundled: [String: SHA256.Digest] = [:], withPending: Bool = false) async {
        // Refusing a record may restore the previous one, which the verifier has not seen either.
        while case let records = await shelf.recordsToVerify(identifiers, withPending: withPending), !records.isEmpty {
            await shelf.take(await verdicts(on: records, bundled))
        }
    }

    private func verdicts(on records: [RecordName: TextRecord], _ bundled: [String: SHA256.Digest]) async -> [RecordName: Bool] {
        await withTaskGroup(of: (RecordName, Bool).self) { group in
            for (file, record) in records {
                // Only a copy of a bundled text has no address.
                let name = record.identifier
                let isBundled =
                    record.facts.url == nil
                    && record.facts.fileDigest == (bundled[name] ?? session.read { $0.bundled[name]?.fileDigest })
                group.addTask { [self] in
                    // Without a verifier at its fetch, the manifest that listed the version may be forged.
                    let verification = TextVerification(record, as: record.facts.version, isListed: record.headers != nil)
                    guard !isBundled, let refusal = await refusal(of: verification) else {
                        return (file, true)
                    }
                    report(.refused(refusal))
                    return (file, false)
                }
            }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    /// Returns why the verifier refuses bytes; `nil` if it accepts them, and without a verifier.
    func refusal(of verification: TextVerification) async -> TextStoreError? {
        guard let verify else { return nil }
        // A separate task, because a canceled caller must not make the verifier refuse valid bytes.
        return await Task { [time] () -> TextStoreError? in
            do throws(TextStoreError) {
                try await verify.verify(verification, time)
                return nil
            } catch {
                return error
            }
        }.value
    }

    /// Verifies records that another process has saved. Until the verdict, the session keeps the text that it shows.
    func verifyChanges() {
        guard !isVerifying.exchange(true, ordering: .acquiringAndReleasing) else { return }
        Task { [weak self] in
            guard let self else { return }
            await verifyKept(nil)
            isVerifying.store(false, ordering: .releasing)
            // A refused record is fetched again.
            report(await shelf.lookAgain())
        }
    }

    // MARK: Responses

    /// Verifies a response with a manifest, before anything parses it.
    static func verified(_ result: Response, _ file: RemoteFile, _ verify: TextVerifier?, _ time: any TimeSource) async -> Response {
        // An oversized response is refused later because of its size.
        guard let verify, case .success(.modified(let response, _, _)) = result, response.bytes.count <= file.limit else { return result }
        do throws(TextStoreError) {
            try await verify.verify(TextVerification(response), time)
            return result
        } catch {
            return .failure(error)
        }
    }

    /// Verifies a response with a text after checking its size, digest, and declared type, and before anything parses it. After a 304 that
    /// confirms the known text for another version, verifies that text.
    static func verified(
        _ result: Response, _ item: SetPlan.Item, _ expected: TextValidation.Expectation,
        _ known: TextRecord?, _ verify: TextVerifier?, _ time: any TimeSource
    ) async -> Response {
        guard let verify else { return result }
        do throws(TextStoreError) {
            switch try result.get() {
            case .modified(let response, _, _):
                try TextValidation.check(response, expected)
                try await verify.verify(TextVerification(response, item.identifier, item.rank.version), time)
            case .notModified:
                if let known, known.rank != item.rank {
                    try await verify.verify(TextVerification(known, as: item.rank.version, isListed: true), time)
                }
            }
            return result
        } catch {
            return .failure(error)
        }
    }
}

extension TextVerification {
    /// The bytes of a response, for the verifier.
    fileprivate init(_ response: RemoteText, _ identifier: String? = nil, _ version: SemanticVersion? = nil) {
        self.init(
            identifier: identifier, version: version, bytes: Array(response.bytes), headers: Self.fields(response.headers),
            isListed: version != nil)
    }
}
