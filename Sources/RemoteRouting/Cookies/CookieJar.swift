internal import Foundation
public import StoreCore

/// The cookies that servers set, kept by RFC 6265bis and sent back with later requests.
///
/// ```swift
/// let jar = CookieJar(
///     cacher: FileCacher(directory: scope.directory(named: "cookies")), sharedDomains: ["example.com"], scope: scope)
/// ```
///
/// - A cookie belongs to the host that set it. A `Domain` attribute widens that only for the domains in `sharedDomains`. The jar has no list
///   of public suffixes, so a server cannot claim `co.uk`: the cookie stays with the server's own host.
/// - Cookies with `Max-Age` or `Expires` are saved, one record for each domain. Session cookies stay in memory and end with the jar.
/// - `Secure` cookies are set and sent over https, and over http within this machine.
/// - A redirect from another site gets no `SameSite=Strict` cookie, and `Lax` ones with safe methods only.
/// - The jar keeps 50 cookies of a domain and 3 000 in all, of at most 4 096 bytes (name and value) and for at most 400 days. Above that it
///   evicts expired cookies, then those of a crowded domain that are not `Secure`, then those used longest ago.
///
/// Give each jar a cacher of its own. Use one jar per user, or clear the `CacheScope` at sign-out. Saved values are as secret as
/// passwords: on Apple's systems give the `FileCacher` a protection.
public final class CookieJar: Sendable {
    private struct State: Sendable {
        var storage: CookieStorage
        var lane = CookieLane()
        /// Rises at each clearing; responses to earlier requests set no cookies.
        var generation: UInt64 = 0
        /// Whether a task makes the cacher's calls.
        var isDraining = false
    }

    /// One lock guards the cookies and the order of the cacher's calls, which are made outside it.
    private let state: WatchedState<State>
    private let cacher: any Cacher<String, [Cookie]>
    private let time: any TimeSource
    private let onFault: @Sendable (StoreEventKind.CacherOperation, StoreError) -> Void

    /// Makes a jar; the cacher is read at the first request.
    ///
    /// - Parameters:
    ///   - cacher: The place of the cookies that outlive the process, by domain; memory by default. Give it to no other jar.
    ///   - sharedDomains: The domains whose subdomains may share cookies, such as `example.com`; list only domains with one owner.
    ///   - time: The source of time; expiry is measured on its wall clock.
    ///   - scope: A group that clears the jar together with stores.
    ///   - onFault: Called outside all locks when a call of the cacher fails. The cookies stay in memory. A failed save is repeated when the
    ///     domain's cookies change, when another domain could be saved, and by ``waitUntilSaved()``.
    public init(
        cacher: some Cacher<String, [Cookie]> = MemoryCacher<String, [Cookie]>(), sharedDomains: Set<String> = [],
        time: any TimeSource = .system, scope: CacheScope? = nil,
        onFault: @escaping @Sendable (_ operation: StoreEventKind.CacherOperation, _ error: StoreError) -> Void = { _, _ in }
    ) {
        state = WatchedState(State(storage: CookieStorage(sharedDomains: Self.canonical(sharedDomains))))
        self.cacher = cacher
        self.time = time
        self.onFault = onFault
        scope?.add(self)
    }

    private static func canonical(_ domains: Set<String>) -> Set<String> {
        Set(
            domains.map { domain in
                do {
                    return try WebOrigin(scheme: .https, host: domain.hasPrefix(".") ? String(domain.dropFirst()) : domain).host
                } catch {
                    preconditionFailure("sharedDomains of a CookieJar needs names such as example.com, not “\(domain)”: \(error)")
                }
            })
    }

    // MARK: Managing

    /// The cookies of all domains, by domain and then by age, the oldest first; expired ones are left out.
    ///
    /// - Throws: `StoreError.Code.cannotEnumerate` where the cacher cannot list its keys or failed to. `CancellationError`.
    public func cookies() async throws -> [Cookie] {
        update { $0.lane.wantAll() }
        _ = try await state.wait { $0.lane.isWholeReady ? true : nil }
        let now = time.date
        return try update { state throws(StoreError) -> [Cookie] in
            guard state.lane.isComplete else {
                throw StoreError(
                    .cannotEnumerate, "listing cookies: the cacher did not list its keys; use one that implements keys(), and see onFault")
            }
            state.storage.removeExpired(now)
            return state.storage.cookies.sorted { $0.key < $1.key }.flatMap(\.value)
        }
    }

    /// Removes a cookie from memory at once, and from the cacher soon after; one that is gone is removed already.
    ///
    /// - Parameter cookie: A cookie from ``cookies()``; its value does not matter.
    public func remove(_ cookie: Cookie) {
        update { $0.storage.remove(cookie) }
    }

    /// Removes all cookies, from memory at once.
    ///
    /// Responses to requests that were sent before set no cookies. Canceling the task ends the wait and not the removal.
    ///
    /// - Throws: `StoreError.Code.cacherFailed` where the cacher could not remove its records: this jar uses none of them again,
    ///   but the next start may, so clear again. `CancellationError`.
    public func clear() async throws {
        let number = update { state in
            state.generation += 1
            state.storage.removeAll()
            return state.lane.clear()
        }
        let failures = try await state.wait { state -> [any Error]? in
            state.lane.isCleared(number) ? [state.lane.clearFailure].compactMap(\.self) : nil
        }
        guard let failure = failures.first else { return }
        throw StoreError(.cacherFailed, "clearing the cookies: the cacher could not remove its records", underlyingError: failure)
    }

    /// Waits until the cacher has every change from before the call, and repeats failed saves at once.
    ///
    /// - Throws: `StoreError.Code.cacherFailed` where the cacher failed; the cookies stay in memory, so wait again when the cause
    ///   is gone. `CancellationError`, which does no save any harm.
    public func waitUntilSaved() async throws {
        let number = update { $0.lane.retry() }
        let failures = try await state.wait { state -> [any Error]? in
            state.lane.isSettled(upTo: number) ? state.lane.failures(upTo: number) : nil
        }
        guard let failure = failures.first else { return }
        throw StoreError(
            .cacherFailed,
            "waiting until cookies are saved: the cacher failed for \(failures.count) of the domains; they stay in memory, so remove the "
                + "cause and wait again",
            underlyingError: failure)
    }

    // MARK: Calls of a host

    /// Begins a call of a host; a clearing from now on keeps its responses from setting cookies.
    func call() -> CookieCall {
        CookieCall(jar: self, generation: state.read { $0.generation })
    }

    /// The `Cookie` field of a request.
    ///
    /// - Throws: `CancellationError`, while the cookies are loaded.
    func header(
        for request: CookieRequest, isSafe: Bool, after earlier: [CookieRequest], generation: UInt64
    ) async throws -> String? {
        try await load(request)
        let now = time.date
        return update { state in
            guard state.generation == generation else { return nil }
            return state.storage.header(for: request, isSafe: isSafe, after: earlier, now: now)
        }
    }

    /// Takes the cookies of a response.
    func receive(_ lines: [String], from request: CookieRequest, generation: UInt64) async {
        // Canceled before the record is there: without it, what is saved next would replace it.
        guard (try? await load(request)) != nil else { return }
        let now = time.date
        update { state in
            guard state.generation == generation else { return }
            state.storage.receive(lines, from: request, now: now)
        }
    }

    /// Waits until the cookies of a request's domains are in memory; returns at once where they are.
    private func load(_ request: CookieRequest) async throws {
        let domains: [String]? = update { state in
            let domains = state.storage.domains(of: request.host)
            state.lane.want(domains)
            return state.lane.isReady(domains) ? nil : domains
        }
        guard let domains else { return }
        _ = try await state.wait { $0.lane.isReady(domains) ? true : nil }
    }

    // MARK: Calls of the cacher

    /// Changes the state, and begins to make the calls of the cacher that follow from it.
    @discardableResult
    private func update<Result: Sendable, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let (result, begins) = state.update { state -> (Swift.Result<Result, Failure>, Bool) in
            let result = Swift.Result { () throws(Failure) in try body(&state) }
            state.lane.changed(state.storage.takeChanged())
            guard !state.isDraining, state.lane.hasWork else { return (result, false) }
            state.isDraining = true
            return (result, true)
        }
        if begins { Task.detached(priority: Task.currentPriority) { [self] in await drain() } }
        return try result.get()
    }

    /// Makes the calls of the cacher, one after another, until there are none.
    private func drain() async {
        while true {
            let now = time.date
            let next = state.update { state -> (CookieLane.Call, [Cookie])? in
                guard let call = state.lane.next() else {
                    state.isDraining = false
                    return nil
                }
                guard case .save(let domain) = call else { return (call, []) }
                return (call, state.storage.record(of: domain, now: now))
            }
            guard let (call, record) = next else { return }
            await make(call, record, now)
        }
    }

    private func make(_ call: CookieLane.Call, _ record: [Cookie], _ now: Date) async {
        do {
            switch call {
            case .list:
                let domains = try await cacher.keys()
                state.update { $0.lane.listed(domains) }
            case .load(let domain):
                let record = try await cacher.load(param: domain)
                state.update { state in
                    guard state.lane.loaded(domain, failed: false) else { return }
                    state.storage.load(record?.content ?? [], for: domain, now: now)
                    state.lane.changed(state.storage.takeChanged())
                }
            case .save(let domain):
                if record.isEmpty {
                    try await cacher.remove(param: domain)
                } else {
                    try await cacher.save(CacheRecord(content: record, fetchedAt: now), param: domain)
                }
                state.update { $0.lane.saved(domain, nil) }
            case .removeAll:
                try await cacher.removeAll()
                state.update { $0.lane.cleared(nil) }
            }
        } catch {
            failed(call, record, error)
        }
    }

    private func failed(_ call: CookieLane.Call, _ record: [Cookie], _ error: any Error) {
        let (operation, message): (StoreEventKind.CacherOperation, String)
        switch call {
        case .list: (operation, message) = (.load, "listing the domains of the cookies")
        case .load(let domain): (operation, message) = (.load, "loading the cookies of \(domain)")
        case .save(let domain):
            (operation, message) = (record.isEmpty ? .remove : .save, "saving the cookies of \(domain): they stay in memory until it works")
        case .removeAll: (operation, message) = (.removeAll, "removing all cookies")
        }
        // Reported first, so that a caller that waits for the call finds the report.
        onFault(operation, StoreError(.cacherFailed, message, underlyingError: error))
        state.update { state in
            switch call {
            case .list: state.lane.listed(nil)
            case .load(let domain): _ = state.lane.loaded(domain, failed: true)
            case .save(let domain): state.lane.saved(domain, error)
            case .removeAll: state.lane.cleared(error)
            }
        }
    }
}

extension CookieJar: CacheScopeMember {}
