import Foundation
import StoreCore
import StoreFiles
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

struct CookieJarTests {
    private let disk = CookieDisk()
    private let time = ManualTime()
    private let faults = WatchedState<[String]>([])

    private func jar(_ shared: Set<String> = [], scope: CacheScope? = nil) -> CookieJar {
        CookieJar(cacher: disk, sharedDomains: shared, time: time, scope: scope) { operation, error in
            faults.update { $0.append("\(operation): \(error.code.rawValue)") }
        }
    }

    /// Creates a jar that has saved a cookie of `a.example`.
    private func savedJar() async throws -> CookieJar {
        let jar = jar()
        try await set("a=b; Max-Age=60", in: jar)
        try await jar.waitUntilSaved()
        return jar
    }

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    private func set(_ line: String, in jar: CookieJar, at address: String = "https://a.example/") async throws {
        await jar.call().receive([line], from: try url(address))
    }

    private func sent(_ jar: CookieJar, to address: String = "https://a.example/") async throws -> String? {
        try await jar.call().header(for: try url(address), method: .get, redirectedFrom: [])
    }

    // MARK: Saving

    @Test func `W12: a new jar loads the saved cookies, by domain, and no session cookies`() async throws {
        let first = jar(["example"])
        try await set("a=b; Max-Age=60", in: first)
        try await set("c=d", in: first)
        try await set("e=f; Max-Age=60; Domain=example", in: first)
        try await first.waitUntilSaved()
        #expect(disk.state.current.records.mapValues { $0.content.map(\.name) } == ["a.example": ["a"], "example": ["e"]])
        #expect(try await sent(first) == "a=b; c=d; e=f")
        #expect(try await sent(jar(["example"])) == "a=b; e=f")
        time.advance(by: .seconds(60))
        #expect(try await sent(jar(["example"])) == nil)
    }

    @Test func `W12: a jar with a FileCacher restores its cookies`() async throws {
        let directory = temporaryURL()
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
        let scope = CacheScope(directory: directory)
        func open() -> CookieJar { CookieJar(cacher: FileCacher(directory: scope.directory(named: "cookies")), time: time, scope: scope) }
        let first = open()
        try await set("a=b; Max-Age=60; Secure; SameSite=Strict", in: first)
        try await scope.waitUntilSaved()
        let second = open()
        #expect(try await sent(second) == "a=b")
        #expect(try await second.cookies() == first.cookies())
        try await scope.clear()
        #expect(try await sent(open()) == nil)
    }

    @Test func `W12: an expired cookie is removed from the cacher, too`() async throws {
        let jar = try await savedJar()
        try await set("a=b; Max-Age=0", in: jar)
        try await jar.waitUntilSaved()
        #expect(disk.state.current.records.isEmpty)
    }

    @Test func `W12: the jar makes one cacher call at a time, and loads each domain once`() async throws {
        for index in 0..<20 {
            let jar = CookieJar(cacher: disk, time: time)
            try await set("a=\(index); Max-Age=60", in: jar, at: "https://\(index).example/")
            try await jar.waitUntilSaved()
        }
        disk.state.update { $0.calls = [] }
        let jar = jar()
        try await atOnce(200) { index in
            #expect(try await sent(jar, to: "https://\(index % 20).example/")?.hasPrefix("a=\(index % 20)") == true)
            try await set("b\(index)=x; Max-Age=60", in: jar, at: "https://\(index % 20).example/")
        }
        try await jar.waitUntilSaved()
        let state = disk.state.current
        #expect(state.mostRunning == 1)
        #expect(state.calls.count { $0.hasPrefix("load") } == 20)
        #expect(state.calls.count { $0 == "keys" } == 1)
        #expect(state.records.values.map(\.content.count) == Array(repeating: 11, count: 20))
    }

    @Test func `W12: the jar loads each domain at its first use if the cacher cannot list its keys`() async throws {
        _ = try await savedJar()
        disk.state.update { ($0.lists, $0.calls) = (false, []) }
        let second = jar()
        #expect(try await sent(second) == "a=b")
        #expect(try await sent(second) == "a=b")
        #expect(try await sent(second, to: "https://b.example/") == nil)
        #expect(disk.state.current.calls == ["keys", "load a.example", "load b.example"])
        await #expect { try await second.cookies() } throws: { ($0 as? StoreError)?.code == .cannotEnumerate }
    }

    // MARK: Faults

    @Test func `W12: cookies stay in memory after a failed save, and are saved again`() async throws {
        let jar = jar()
        #expect(try await sent(jar) == nil)
        disk.state.update { $0.isBroken = true }
        try await set("a=b; Max-Age=60", in: jar)
        let error = await #expect(throws: StoreError.self) { try await jar.waitUntilSaved() }
        #expect(error?.code == .cacherFailed)
        #expect(error?.underlyingError is CookieDisk.Refused)
        #expect(faults.current.allSatisfy { $0 == "save: cacherFailed" } && !faults.current.isEmpty)
        #expect(try await sent(jar) == "a=b")
        disk.state.update { $0.isBroken = false }
        try await jar.waitUntilSaved()
        #expect(disk.state.current.records["a.example"]?.content.map(\.name) == ["a"])
    }

    @Test func `W12: a failed save is repeated after another domain's save`() async throws {
        let jar = jar()
        disk.state.update { $0.isBroken = true }
        try await set("a=b; Max-Age=60", in: jar)
        _ = try await faults.wait { $0.contains("save: cacherFailed") ? true : nil }
        disk.state.update { $0.isBroken = false }
        try await set("c=d; Max-Age=60", in: jar, at: "https://b.example/")
        _ = try await disk.state.wait { $0.records.count == 2 ? true : nil }
    }

    @Test(arguments: [(true, false, false), (false, false, false), (true, true, false), (true, true, true)])
    func `W12: a failed load, with or without a list, is a miss and is repeated at the next request, or when the cookies are listed`(
        lists: Bool, listsAlways: Bool, isListed: Bool
    ) async throws {
        _ = try await savedJar()
        disk.state.update { ($0.isBroken, $0.lists, $0.listsAlways) = (true, lists, listsAlways) }
        let second = jar()
        #expect(try await sent(second) == nil)
        #expect(faults.current == Array(repeating: "load: cacherFailed", count: listsAlways ? 1 : 2))
        await #expect { try await second.cookies() } throws: { ($0 as? StoreError)?.code == .cannotEnumerate }
        disk.state.update { $0.isBroken = false }
        if isListed { #expect(try await second.cookies().map(\.name) == ["a"]) }
        #expect(try await sent(second) == "a=b")
        #expect(try await sent(second, to: "https://b.example/") == nil)
        guard lists, !listsAlways else { return }
        #expect(try await second.cookies().map(\.name) == ["a"])
        #expect(disk.state.current.calls.count { $0 == "load a.example" } == 2)
    }

    @Test func `W12: the lane makes one call at a time, and loads a domain once for all requests that wait for it`() {
        var lane = CookieLane()
        lane.want(["a.example"])
        #expect([lane.next(), lane.next()] == [.list, nil])
        lane.listed(["b.example", "a.example"])
        #expect([lane.next(), lane.next()] == [.load("a.example"), nil])
        for _ in 1...2 { lane.want(["b.example"]) }
        _ = lane.loaded("a.example", failed: false)
        #expect(lane.next() == .load("b.example"))
        _ = lane.loaded("b.example", failed: false)
        #expect(lane.next() == nil)
    }

    @Test func `W12: a canceled request does not wait for the cacher`() async throws {
        disk.state.update { $0.held = "" }
        let jar = jar()
        let request = Task { try await sent(jar) }
        _ = try await disk.state.wait { $0.calls.isEmpty ? nil : true }
        request.cancel()
        await #expect(throws: CancellationError.self) { try await request.value }
        disk.state.update { $0.held = nil }
        #expect(try await sent(jar) == nil)
    }

    // MARK: Clearing

    @Test func `W12: clearing the scope clears the jar permanently`() async throws {
        let scope = CacheScope()
        let jar = jar(scope: scope)
        try await set("a=b; Max-Age=60", in: jar)
        try await set("c=d", in: jar)
        try await scope.waitUntilSaved()
        try await scope.clear()
        #expect(try await sent(jar) == nil)
        #expect(disk.state.current.records.isEmpty)
        try await set("e=f; Max-Age=60", in: jar)
        try await scope.waitUntilSaved()
        #expect(disk.state.current.records["a.example"]?.content.map(\.name) == ["e"])
        #expect(try await sent(self.jar()) == "e=f")
    }

    @Test(arguments: [true, false])
    func `C23, W12: a jar of a scope that is closed after or before its creation neither sends nor keeps cookies`(
        _ isUsed: Bool
    ) async throws {
        let scope = CacheScope()
        if !isUsed { try await scope.close() }
        let jar = jar(scope: scope)
        if isUsed {
            try await set("a=b; Max-Age=60", in: jar)
            try await scope.close(clearing: true)
        }
        try await set("c=d; Max-Age=60", in: jar)
        #expect(try await sent(jar) == nil)
        try await jar.waitUntilSaved()
        #expect(disk.state.current.records.isEmpty)
    }

    @Test func `W12: a call that began before a clearing neither sends nor sets cookies`() async throws {
        let jar = jar()
        let call = jar.call()
        try await set("a=old", in: jar)
        try await jar.clear()
        await call.receive(["a=old; Max-Age=60"], from: try url("https://a.example/"))
        #expect(try await sent(jar) == nil)
        try await set("a=new", in: jar)
        #expect(try await call.header(for: try url("https://a.example/"), method: .get, redirectedFrom: []) == nil)
        #expect(try await sent(jar) == "a=new")
    }

    @Test(arguments: ["keys", "load a.example"])
    func `W12: a clearing drops the records of an earlier load`(call: String) async throws {
        _ = try await savedJar()
        disk.state.update { ($0.held, $0.calls) = (call, []) }
        let second = jar()
        let request = Task { try await sent(second) }
        _ = try await disk.state.wait { $0.calls.last == call ? true : nil }
        let clearing = Task { try await second.clear() }
        try await until("the clearing has reached the jar") { second.call().generation == 1 }
        disk.state.update { $0.held = nil }
        #expect(try await request.value == nil)
        try await set("c=d; Max-Age=60", in: second)
        try await clearing.value
        try await second.waitUntilSaved()
        #expect(try await sent(second) == "c=d")
        #expect(disk.state.current.calls.suffix(2) == ["removeAll", "save a.example"])
        #expect(disk.state.current.records["a.example"]?.content.map(\.name) == ["c"])
    }

    @Test func `W12: a failed clearing throws, and its records are not used again`() async throws {
        let first = try await savedJar()
        disk.state.update { $0.isBroken = true }
        let error = await #expect(throws: StoreError.self) { try await first.clear() }
        #expect(error?.code == .cacherFailed)
        disk.state.update { $0.isBroken = false }
        #expect(try await sent(first) == nil)
        try await first.clear()
        #expect(disk.state.current.records.isEmpty)
    }

    @Test func `W12: a scope does not retain its jar`() async throws {
        let scope = CacheScope()
        weak var gone: CookieJar?
        do {
            let jar = CookieJar(scope: scope)
            gone = jar
            #expect(try await sent(jar) == nil)
        }
        try await until("the jar is freed") { gone == nil }
        try await scope.clear()
    }

    // MARK: Managing

    @Test func `W12: the jar lists its cookies, and removes a single cookie`() async throws {
        let jar = jar()
        try await set("b=1; Max-Age=60", in: jar, at: "https://b.example/")
        try await set("x=2; Max-Age=60", in: jar)
        try await set("y=3", in: jar)
        try await set("z=4; Max-Age=5", in: jar)
        time.advance(by: .seconds(5))
        let all = try await jar.cookies()
        #expect(all.map(\.name) == ["x", "y", "b"])
        jar.remove(all[0])
        jar.remove(all[0])
        try await jar.waitUntilSaved()
        #expect(try await jar.cookies().map(\.name) == ["y", "b"])
        #expect(Set(disk.state.current.records.keys) == ["b.example"])
        #expect(try await self.jar().cookies().map(\.name) == ["b"])
    }

    @Test func `W12: no description of a cookie shows its value`() async throws {
        let jar = CookieJar()
        try await set("sid=hush\u{301}; Max-Age=5", in: jar)
        let cookies = try await jar.cookies()
        for shown in [cookies, cookies[0], jar] as [Any] {
            #expect(!"\(shown) \(String(reflecting: shown)) \(dumped(shown))".contains("hush"))
        }
        #expect("\(cookies[0])" == "sid=<redacted> (a.example/)")
    }

    @Test(arguments: ["mailto:a@a.example", "https://user:secret@a.example/", "file:///x", "https:///x"])
    func `W12: a URL with another scheme, with user information or without a host has no cookies`(address: String) async throws {
        let jar = jar()
        try await set("a=b", in: jar, at: address)
        #expect(try await sent(jar, to: address) == nil)
        #expect(try await jar.cookies().isEmpty)
    }

    @Test func `W12: a shared domain matches in any case and with a leading dot`() async throws {
        let jar = jar([".Shop.EXAMPLE"])
        try await set("a=b; Domain=shop.example", in: jar, at: "https://x.shop.example/")
        #expect(try await sent(jar, to: "https://y.shop.example/") == "a=b")
    }

    @Test func `W12: a shared domain that is not a host name ends the program`() async {
        await #expect(processExitsWith: .failure) { _ = CookieJar(sharedDomains: ["https://example.com"]) }
    }
}
