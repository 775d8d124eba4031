internal import Foundation
import StoreCore
internal import StorePlatform

extension TextStore {
    /// The response to one request, or the reason why there is none.
    typealias Response = Result<FetchResult<RemoteText>, TextStoreError>

    // MARK: The manifest

    /// Fetches the manifest, accepts it if it is valid, and begins the fetches that follow from it.
    func beginManifest(_ ticket: UInt64, _ source: VersionSource, _ file: RemoteFile, _ record: ManifestRecord) {
        // A validator is useful only together with the body that it describes.
        let validator = record.body == nil ? nil : record.validator
        let began = time.date
        launch(ticket) { [verify, time] fetcher in
            await Self.verified(await Self.response(of: fetcher, file, validator, "get the manifest"), file, verify, time)
        } then: { store, response in
            await store.takeManifest(response, ticket, source, record, since: began)
        }
    }

    private func takeManifest(
        _ response: Response, _ ticket: UInt64, _ source: VersionSource, _ known: ManifestRecord, since began: Date
    ) async {
        var record = known
        var manifest: VersionManifest?
        var failure: TextStoreError?
        do throws(TextStoreError) {
            manifest = try await newManifest(try response.get(), ticket, source, &record)
            record.succeeded(at: time.date, policy)
        } catch {
            failure = error
            record = known
            record.failed(error, at: time.date, policy)
        }
        let (ended, taken) = (record, manifest)
        let isCurrent = session.read { $0.manifestFlight == ticket }
        if isCurrent, let manifest { reportRefusals(of: manifest) }
        // Saved before it becomes visible, because a caller that waits for the manifest may end the process next.
        if let fault = await shelf.keep(ended, of: ticket, since: began) { report(.fault(fault)) }
        let moment = moment
        let actions = session.update { session in
            session.manifestEnded(ticket: ticket, ended, taken, failure, at: moment)
        }
        guard let actions else { return }
        if let failure {
            report(.refused(failure))
        } else {
            report(.checked(revision: session.read { $0.manifest?.revision }))
        }
        if taken != nil {
            let held = session.read { $0.failures.sorted { $0.key < $1.key }.map(\.value).filter { $0.retryAt == nil } }
            // Refused entries were reported above.
            for failure in held where failure.error.code != .malformedEntry && failure.error.code != .belowFloor {
                report(.refused(failure.error))
            }
        }
        // Bundled texts may have become part of another set.
        report(await shelf.publish())
        perform(actions)
    }

    /// Returns the new manifest; `nil` if the server confirmed the last one, or if the fetch was abandoned meanwhile.
    @concurrent
    private func newManifest(
        _ response: FetchResult<RemoteText>, _ ticket: UInt64, _ source: VersionSource, _ record: inout ManifestRecord
    ) async throws(TextStoreError) -> VersionManifest? {
        let found: VersionManifest?
        switch response {
        case .notModified:
            guard record.body != nil else { throw .unaskedConfirmation(of: "the manifest") }
            if let confirmed = session.read({ $0.manifest }) { try await shelf.checkOrder(of: confirmed, policy) }
            found = try await takenAgain(record, by: source)
        case .modified(let response, _, let validator):
            found = try await manifest(in: response.bytes, of: source)
            record.body = response.bytes
            record.validator = validator
            record.headers = verify.map { _ in TextVerification.fields(response.headers) }
            record.receivedAt = time.date
        }
        guard let found,
            let outcome = try await shelf.accept(found, policy, isVerified: verify != nil, where: { $0.manifestFlight == ticket })
        else { return nil }
        report(outcome)
        return found
    }

    private func reportRefusals(of manifest: VersionManifest) {
        for problem in manifest.problems { report(.refused(problem.refusal)) }
        var session = session.current
        session.foreign = []
        session.replaceManifest(manifest)
        for identifier in session.loaded.sorted() where session.unusable[identifier] == nil {
            if let refusal = session.refusalOfEntry(identifier) { report(.refused(refusal)) }
        }
    }

    // MARK: Sets

    /// Fetches a set, and stores it if every text is valid.
    func beginSet(_ plan: SetPlan) {
        launch(plan.ticket) { [verify, time] fetcher in
            await Self.responses(of: fetcher, plan.items, verify, time)
        } then: { store, responses in
            await store.takeSet(responses, plan)
        }
    }

    private func takeSet(_ responses: [Response?], _ plan: SetPlan) async {
        let (records, unchanged, faults) = await fetched(plan.items, responses)
        let (isCurrent, isOutdated) = session.read { ($0.flights[plan.key] == plan.ticket, $0.isOutdated(plan)) }
        // The fetch was abandoned meanwhile, for example because the session was cleared.
        guard isCurrent else { return }
        // A newer manifest may have withdrawn the texts; they are fetched again in the versions that it lists.
        if isOutdated { return goOn(after: plan) }
        let failure = faults.first.map { TextStoreError.incomplete(plan.key, because: $0) }
        for fault in faults { report(.refused(fault)) }
        if let failure {
            end(plan, failure, keeping: records.filter(\.facts.isVerified))
        } else {
            await store(plan, records, unchanged)
        }
    }

    private func store(_ plan: SetPlan, _ records: [TextRecord], _ unchanged: [TextRecord]) async {
        let moment = moment
        do throws(TextStoreError) {
            let outcome = try await shelf.store(
                plan.key, records, isActivated: policy.activation == .immediately, unchanged: (unchanged, time.date),
                replacing: plan.waiting,
                where: { $0.flights[plan.key] == plan.ticket && !$0.isOutdated(plan) },
                onSaved: { [self] in
                    // Reported before the text becomes visible, so that the log already has an entry for every shown text.
                    for record in records { report(.saved(identifier: record.identifier, version: record.facts.version)) }
                },
                { session in
                    // Ends the fetch in the same step that publishes the text, so that the old text is never shown as completed.
                    for record in records { session.fetched[record.identifier] = record }
                    session.setEnded(plan, nil, at: moment)
                })
            if let outcome { report(outcome) }
            goOn(after: plan)
        } catch {
            report(.refused(error))
            // Another process may have caused the refusal; its changes become visible before the next attempt.
            report(await shelf.publish())
            end(plan, error, keeping: records.filter(\.facts.isVerified))
        }
    }

    private func end(_ plan: SetPlan, _ failure: TextStoreError, keeping kept: [TextRecord] = []) {
        let moment = moment
        session.update { session in session.setEnded(plan, failure, keeping: kept, at: moment) }
        goOn(after: plan)
    }

    private func goOn(after plan: SetPlan) {
        let moment = moment
        perform(session.update { session in session.restart(plan, at: moment) }, of: plan.items.map(\.identifier))
    }

    /// Evaluates the responses of a set.
    @concurrent
    private func fetched(
        _ items: [SetPlan.Item], _ responses: [Response?]
    ) async -> (records: [TextRecord], unchanged: [TextRecord], faults: [TextStoreError]) {
        var records: [TextRecord] = [], unchanged: [TextRecord] = [], faults: [TextStoreError] = []
        for (item, response) in zip(items, responses) {
            do throws(TextStoreError) {
                if let record = try fetched(item, response) {
                    records.append(record)
                } else if case .fetch(_, _, let known?) = item.work {
                    unchanged.append(known)
                }
            } catch {
                faults.append(error.about(item.identifier))
            }
        }
        return (records, unchanged, faults)
    }

    /// Evaluates the response for one text; returns `nil` if the text is unchanged.
    private func fetched(_ item: SetPlan.Item, _ response: Response?) throws(TextStoreError) -> TextRecord? {
        switch (item.work, try response?.get()) {
        case (.refuse(let error), _): throw error
        case (.copy(let record), _): return record
        case (.fetch(let file, let expected, let known), .modified(let response, _, let validator)):
            let record = try record(of: response, validator, item, file.url.absoluteString, expected)
            guard let known, known.rank.version != nil, known.rank == record.rank,
                known.facts.fileDigest == record.facts.fileDigest, known.facts.isVerified == record.facts.isVerified
            else { return record }
            return nil
        case (.fetch(let file, let expected, let known), _):
            guard let known, item.validator != nil else { throw .unaskedConfirmation(of: file.url.absoluteString) }
            return confirmed(known, item, expected)
        }
    }

    private func record(
        of response: RemoteText, _ validator: Validator?, _ item: SetPlan.Item, _ url: String, _ expected: TextValidation.Expectation
    ) throws(TextStoreError) -> TextRecord {
        let text = try TextValidation.text(of: response, expected)
        let facts = TextRecord.Facts(
            version: item.rank.version, epoch: item.rank.epoch, digest: VersionedText.digest(of: text),
            fileDigest: response.bytes.withUnsafeBytes { SHA256.digest(of: $0) }, validator: validator, url: url,
            isVerified: expected.sha256 != nil || verify != nil, fetchedAt: time.date)
        return TextRecord(
            identifier: item.identifier, text: text, facts: facts, headers: verify.map { _ in TextVerification.fields(response.headers) })
    }

    /// Evaluates a 304 response: the known bytes are those of the offered version. Returns `nil` if they were known as such.
    private func confirmed(_ known: TextRecord, _ item: SetPlan.Item, _ expected: TextValidation.Expectation) -> TextRecord? {
        if known.rank == item.rank { return nil }
        var facts = known.facts
        facts.version = item.rank.version
        facts.epoch = item.rank.epoch
        facts.isVerified = expected.sha256 != nil || verify != nil
        facts.fetchedAt = time.date
        return TextRecord(identifier: known.identifier, text: known.text, facts: facts, headers: verify.map { _ in known.headers ?? [:] })
    }

    // MARK: The origin

    /// Sends requests in a task that does not retain the store, so that releasing the store cancels them.
    private func launch<Responses: Sendable>(
        _ ticket: UInt64, _ send: @escaping @Sendable (any Origin<RemoteFile, RemoteText>) async -> Responses,
        then take: @escaping @Sendable (TextStore, Responses) async -> Void
    ) {
        tasks.withLock { tasks in
            tasks[ticket] = Task { [weak self, fetcher] in
                let responses = await send(fetcher)
                guard let self else { return }
                await take(self, responses)
                _ = self.tasks.withLock { $0.removeValue(forKey: ticket) }
            }
        }
    }

    private static func response(
        of fetcher: any Origin<RemoteFile, RemoteText>, _ file: RemoteFile, _ validator: Validator?, _ operation: String
    ) async -> Response {
        do { return .success(try await fetcher.respond(to: .content(file, revalidating: validator)).result) } catch {
            return .failure(.wrapping(error, .unreachable, "cannot \(operation): the fetcher failed; try again later"))
        }
    }

    /// Fetches the texts of a set concurrently; the result is `nil` for an item that needs no request.
    @concurrent
    private static func responses(
        of fetcher: any Origin<RemoteFile, RemoteText>, _ items: [SetPlan.Item], _ verify: TextVerifier?, _ time: any TimeSource
    ) async -> [Response?] {
        await withTaskGroup(of: (Int, Response).self) { group in
            for (number, item) in items.enumerated() {
                guard case .fetch(let file, let expected, let known) = item.work else { continue }
                group.addTask {
                    let response = await response(of: fetcher, file, item.validator, "get \(file.url.absoluteString)")
                    return (number, await verified(response, item, expected, known, verify, time))
                }
            }
            var responses = [Response?](repeating: nil, count: items.count)
            for await (number, response) in group { responses[number] = response }
            return responses
        }
    }
}

extension TextStoreError {
    fileprivate static func unaskedConfirmation(of file: String) -> TextStoreError {
        TextStoreError(.unexpectedStatus, "cannot get \(file): the origin sent a 304 to an unconditional request; check the server")
    }
}
