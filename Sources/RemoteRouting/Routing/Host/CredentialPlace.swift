internal import StoreCore

/// The place in which several processes keep one credential, and the lease under which one of them refreshes it (D11).
struct CredentialPlace<Credential: Sendable>: Sendable {
    let cacher: any SharedCacher<String, Credential>
    let name: String
    let leaseDuration: Duration
    /// Whether two credentials are the same for the server.
    let isSame: @Sendable (Credential, Credential) -> Bool
    /// The permit to change the place. A call that drops a refresh takes it to wait for a running save.
    let saves = Permits(1)
    /// The credential that stayed in the place because its successor could not be saved. The server may accept it no longer.
    let outdated = WatchedState<Credential?>(nil)

    /// Returns the kept credential; `nil` if the place has none, or the outdated one.
    func load() async throws -> Credential? {
        guard let kept = try await cacher.load(param: name)?.content else { return nil }
        return outdated.current.map { isSame(kept, $0) } == true ? nil : kept
    }

    func save(_ credential: Credential) async throws {
        try await cacher.save(CacheRecord(content: credential, fetchedAt: SystemTime().date), param: name)
    }

    func remove() async throws {
        do {
            // A removal from an empty place would create its directory.
            if try await cacher.load(param: name) == nil { return }
        } catch {
            // A record that cannot be read is removed, too.
        }
        try await cacher.remove(param: name)
    }

    /// Waits until the cacher does no work in the background, such as the end of a lease.
    func settle() async { await (cacher as? any NoticingCacher<String, Credential>)?.settle() }

    /// Returns the successor of a rejected credential: the one that another process has saved meanwhile, or the result of a refresh.
    ///
    /// - Returns: The successor, and whether this call has refreshed the credential.
    /// - Throws: The error of the refresh; `FetchFailedElsewhere` with the failure of another process; `StoreError.Code.cacherFailed` if
    ///   the place failed, which refuses no credential.
    func successor(
        of old: Credential, at time: any TimeSource, _ refresh: (Credential) async throws -> Credential
    ) async throws -> (Credential, isRefreshed: Bool) {
        var lease: Lease?
        switch try await reached({ try await cacher.lease(name, for: leaseDuration) }) {
        case .granted(let granted): lease = granted
        case .failed(let failure): throw failure
        case .notNeeded: break
        }
        let base = lease?.position ?? cacher.position
        let kept = try await reached { try await load() }
        if let kept, !isSame(kept, old) {
            lease?.end(.saved)
            return (kept, false)
        }
        let new: Credential
        do {
            new = try await refresh(kept ?? old)
        } catch {
            let advice = error as? any FailureAdvising
            // The kind of the cause: every failed POST is permanent, because it is not repeated.
            lease?.end(
                .failed(
                    FetchFailedElsewhere(
                        failureKind: error.passesByItself ? .transient : .permanent, retryAfter: advice?.retryAfter, allowsStale: false,
                        message: String("\(error)".prefix(500)))))
            throw error
        }
        do {
            // Throws if the refresh was dropped, because dropping it cancels the task.
            let permit = try await saves.take()
            defer { permit.release() }
            let outcome = try await cacher.save(CacheRecord(content: new, fetchedAt: time.date), param: name, over: base)
            lease?.end(.saved)
            // The user may have signed in elsewhere.
            if case .superseded(let newer?, _) = outcome { return (newer.content, true) }
            return (new, true)
        } catch {
            // This process can go on; the others must not wait for a credential that never arrives.
            if let kept { outdated.update { $0 = kept } }
            lease?.end(.notStored)
            return (new, true)
        }
    }

    private func reached<Value>(_ call: () async throws -> Value) async throws -> Value {
        do {
            return try await call()
        } catch {
            if error is CancellationError { throw error }
            throw StoreError(
                .cacherFailed, "refreshing the credentials: their place failed; remove the cause and try again", underlyingError: error)
        }
    }
}
