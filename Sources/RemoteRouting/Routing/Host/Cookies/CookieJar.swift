public import Foundation
internal import RemoteHTTP
public import StoreCore

/// A store of the cookies that servers set, which sends them with later requests (RFC 6265bis).
///
/// ```swift
/// let jar = CookieJar(
///     cacher: FileCacher(directory: scope.directory(named: "cookies")),
///     sharedDomains: ["example.com"], scope: scope)
/// ```
///
/// - A cookie belongs to the host that set it. A `Domain` attribute extends it only to a domain in `sharedDomains`. The jar has no list of
///   public suffixes, so a server cannot claim `co.uk`: such a cookie stays with the server's own host.
/// - The jar saves cookies with `Max-Age` or `Expires`, one record per domain. Session cookies stay in memory and end with the jar.
/// - `Secure` cookies are set and sent over https, and over http to loopback addresses.
/// - After a redirect from another site, the jar sends no `SameSite=Strict` cookie, and `Lax` cookies with safe methods only.
/// - The jar stores at most 50 cookies per domain and 3 000 in total, each for at most 400 days. It ignores a cookie if its name and value
///   exceed 4 096 bytes.
/// - Over a domain's limit, the jar evicts expired cookies, then cookies without `Secure`, then the least recently used. Over the total,
///   it evicts expired cookies, then the least recently used.
///
/// Give each jar its own cacher. Use one jar per user, or clear the `CacheScope` at sign-out. Saved values are as secret as passwords: on
/// Apple's systems, set a protection on the `FileCacher`.
///
/// <doc:KeepingCookies> explains sharing, saving and signing out.
public final class CookieJar: Sendable {
    fileprivate struct State: Sendable {
        var storage: CookieStorage
        var lane = CookieLane()
        /// Increases with each clearing, so that responses to earlier requests set no cookies.
        var generation: UInt64 = 0
        /// Whether the scope is closed, so that the jar neither sends nor keeps cookies (C23).
        var isClosed = false
        var isDraining = false
    }

    /// The cookies and the queue of cacher calls; the calls are made outside the lock.
    private let state: WatchedState<State>
    private let cacher: any Cacher<String, [Cookie]>
    fileprivate let time: any TimeSource
    private let onFault: @Sendable (StoreEventKind.CacherOperation, StoreError) -> Void

    /// Creates a jar, which reads the cacher at the first request.
    ///
    /// - Parameters:
    ///   - cacher: The cacher for the cookies that outlive the process, by domain; memory by default. Do not share it with another jar.
    ///   - sharedDomains: The domains whose subdomains may share cookies, such as `example.com`. List only domains with a single owner.
    ///   - time: The source of time; its wall clock determines expiry.
    ///   - scope: A group that clears the jar together with stores.
    ///   - onFault: Called outside all locks when the cacher fails. The cookies stay in memory. The jar retries a failed save when the
    ///     domain's cookies change, when another save succeeds, and in ``waitUntilSaved()``.
    public init(
        cacher: some Cacher<String, [Cookie]> = MemoryCacher<String, [Cookie]>(), sharedDomains: Set<String> = [],
        time: any TimeSource = .system, scope: CacheScope? = nil,
        onFault: @escaping @Sendable (_ operation: StoreEventKind.CacherOperation, _ error: StoreError) -> Void = { _, _ in }
    ) {
        state = WatchedState(State(storage: CookieStorage(sharedDomains: Self.canonical(sharedDomains))))
        self.cacher = cacher
        self.time = time
        self.onFault = onFault
        guard let scope else { return }
        scope.add(self)
        if scope.isClosed { update { $0.isClosed = true } }
    }

    private static func canonical(_ domains: Set<String>) -> Set<String> {
        Set(
            domains.map { domain in
                do {
                    return try WebOrigin(scheme: .https, host: domain.hasPrefix(".") ? String(domain.dropFirst()) : domain).host
                } catch {
                    preconditionFailure("sharedDomains of CookieJar requires host names such as example.com, not “\(domain)”: \(error)")
                }
            })
    }

    // MARK: Managing

    /// Returns the unexpired cookies of all domains, sorted by domain and then by age, the oldest first.
    ///
    /// - Throws: `StoreError.Code.cannotEnumerate` if the cacher cannot list its keys or fails, `CancellationError` if the task is
    ///   canceled.
    public func cookies() async throws -> [Cookie] {
        update { $0.lane.wantAll() }
        _ = try await state.wait { $0.lane.isWholeReady ? true : nil }
        let now = time.date
        return try update { state throws(StoreError) -> [Cookie] in
            guard state.lane.isComplete else {
                throw StoreError(
                    .cannotEnumerate,
                    "listing cookies: the cacher did not list its keys or load a record; check onFault, or use a cacher with keys()")
            }
            state.storage.removeExpired(now)
            return state.storage.cookies.sorted { $0.key < $1.key }.flatMap(\.value)
        }
    }

    /// Sets cookies as if a server had sent them, for example those of a web view in which the user has signed in.
    ///
    /// ```swift
    /// try await jar.set(["sid=\(id); Path=/; Secure; HttpOnly"], from: page)
    /// ```
    ///
    /// All rules for received cookies apply, so a cookie that the server could not set is ignored.
    ///
    /// - Parameters:
    ///   - lines: Values of `Set-Cookie` fields.
    ///   - url: The address that the cookies belong to.
    /// - Throws: ``RemoteError/Code/invalidRoute`` for an address that is neither http nor https; `StoreError.Code.closed` if the scope is
    ///   closed; `CancellationError` if the task is canceled while the cookies load.
    public func set(_ lines: [String], from url: URL) async throws {
        guard let request = CookieRequest(url) else {
            throw RemoteError(
                .build, .invalidRoute, operation: "setting cookies", "the address is neither http nor https; pass the address of the page")
        }
        let isClosed = try await call().store(lines, from: request)
        if isClosed { throw StoreError(.closed, "setting cookies: the scope of the jar is closed; make a new jar") }
    }

    /// Removes a cookie from memory at once and from the cacher soon after; does nothing if the jar does not contain it.
    ///
    /// - Parameter cookie: A cookie from ``cookies()``; its value is ignored.
    public func remove(_ cookie: Cookie) {
        update { if !$0.isClosed { $0.storage.remove(cookie) } }
    }

    /// Removes all cookies from memory at once, and waits until the cacher has removed its records.
    ///
    /// Responses to requests sent before the call set no cookies. Canceling the task ends the wait, not the removal.
    ///
    /// - Throws: `StoreError.Code.cacherFailed` if the cacher could not remove its records. This jar does not use them again, but a new jar
    ///   would load them, so clear again. `CancellationError` if the task is canceled.
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
        throw StoreError(.cacherFailed, "clearing the cookies: the cacher kept its records; clear them again", underlyingError: failure)
    }

    /// Retries failed saves at once, and waits until the cacher has every earlier change.
    ///
    /// - Throws: `StoreError.Code.cacherFailed` if the cacher failed. The cookies stay in memory; remove the cause and call again.
    ///   `CancellationError` if the task is canceled, which does not affect the saves.
    public func waitUntilSaved() async throws {
        let number = update { $0.lane.retry() }
        let failures = try await state.wait { state -> [any Error]? in
            state.lane.isSettled(upTo: number) ? state.lane.failures(upTo: number) : nil
        }
        guard let failure = failures.first else { return }
        throw StoreError(
            .cacherFailed,
            "waiting until cookies are saved: the cacher failed for \(failures.count) of the domains; their cookies stay in memory; "
                + "remove the cause and call waitUntilSaved() again",
            underlyingError: failure)
    }

    // MARK: Calls of a host

    func call() -> CookieCall {
        CookieCall(jar: self, generation: state.read { $0.generation })
    }

    fileprivate func load(_ request: CookieRequest) async throws {
        let domains: [String]? = update { state in
            guard !state.isClosed else { return nil }
            let domains = state.storage.domains(of: request.host)
            state.lane.want(domains)
            return state.lane.isReady(domains) ? nil : domains
        }
        guard let domains else { return }
        _ = try await state.wait { $0.lane.isReady(domains) ? true : nil }
    }

    // MARK: Calls of the cacher

    @discardableResult
    fileprivate func update<Result: Sendable, Failure: Error>(
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
        switch call {
        case .list:
            let domains = await result(.load, "listing the domains of the cookies") { try await cacher.keys() }
            state.update { $0.lane.listed(try? domains.get()) }
        case .load(let domain):
            let loaded = await result(.load, "loading the cookies of \(domain)") { try await cacher.load(param: domain) }
            state.update { state in
                let cookies = try? loaded.map { $0?.content ?? [] }.get()
                guard state.lane.loaded(domain, failed: cookies == nil), let cookies else { return }
                state.storage.load(cookies, for: domain, now: now)
                state.lane.changed(state.storage.takeChanged())
            }
        case .save(let domain):
            let message = "saving the cookies of \(domain): they stay in memory until a save succeeds"
            let saved = await result(record.isEmpty ? .remove : .save, message) {
                if record.isEmpty { return try await cacher.remove(param: domain) }
                try await cacher.save(CacheRecord(content: record, fetchedAt: now), param: domain)
            }
            state.update { $0.lane.saved(domain, saved.error) }
        case .removeAll:
            let cleared = await result(.removeAll, "removing all cookies") { try await cacher.removeAll() }
            state.update { $0.lane.cleared(cleared.error) }
        }
    }

    /// Makes a call of the cacher. Reports a failure at once, because the later change of the state resumes callers that expect the report.
    private func result<Value>(
        _ operation: StoreEventKind.CacherOperation, _ message: String, of call: () async throws -> Value
    ) async -> Result<Value, any Error> {
        do {
            return .success(try await call())
        } catch {
            onFault(operation, StoreError(.cacherFailed, message, underlyingError: error))
            return .failure(error)
        }
    }
}

extension Result {
    fileprivate var error: Failure? { if case .failure(let error) = self { error } else { nil } }
}

extension CookieJar: CacheScopeMember {
    package func refuse() async { update { $0.isClosed = true } }
}

/// The cookies of one call, across its attempts and redirects.
struct CookieCall: Sendable {
    let jar: CookieJar
    /// The jar's generation when the call began. After the jar is cleared, the call neither sends nor sets cookies.
    let generation: UInt64

    /// Returns the value of a request's `Cookie` field after redirects from these URLs; `nil` if no cookie matches.
    func header(for url: URL, method: HTTPMethod, redirectedFrom hops: [URL]) async throws -> String? {
        guard let request = CookieRequest(url) else { return nil }
        try await jar.load(request)
        let earlier = hops.compactMap { CookieRequest($0) }
        let now = jar.time.date
        return jar.update { state in
            guard state.generation == generation, !state.isClosed else { return nil }
            return state.storage.header(for: request, isSafe: method.isSafe, after: earlier, now: now)
        }
    }

    func receive(_ lines: [String], from url: URL) async {
        guard !lines.isEmpty, let request = CookieRequest(url) else { return }
        // If the task is canceled before the record loads, the next save would overwrite that record.
        _ = try? await store(lines, from: request)
    }

    /// Stores cookies, unless the jar was cleared or closed after the call began; returns whether it is closed.
    fileprivate func store(_ lines: [String], from request: CookieRequest) async throws -> Bool {
        try await jar.load(request)
        let now = jar.time.date
        return jar.update { state in
            if state.generation == generation, !state.isClosed { state.storage.receive(lines, from: request, now: now) }
            return state.isClosed
        }
    }
}
