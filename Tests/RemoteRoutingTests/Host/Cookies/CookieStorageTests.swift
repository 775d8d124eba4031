import Foundation
import Testing
import Trials

@testable import RemoteRouting

struct CookieStorageTests {
    @Test(arguments: [
        ("https://a.example/", true), ("https://A.EXAMPLE/x", true), ("https://a.example:8443/", true), ("https://b.a.example/", false),
        ("https://example/", false), ("https://xa.example/", false), ("https://a.example.com/", false), ("https://a.example./", false),
    ])
    func `W12: a cookie without a domain is sent to its host only`(address: String, isSent: Bool) throws {
        var bench = CookieBench(shared: ["example", "a.example"])
        try bench.set("a=b")
        #expect(try bench.sent(to: address) == (isSent ? "a=b" : nil))
    }

    @Test func `W12: a cookie of a listed domain is sent to its subdomains`() throws {
        var bench = CookieBench(shared: ["shop.example"])
        try bench.set("a=b; Domain=.Shop.example", at: "https://login.shop.example/")
        for address in ["https://shop.example/", "https://login.shop.example/", "https://x.y.shop.example/"] {
            #expect(try bench.sent(to: address) == "a=b")
        }
        for address in ["https://example/", "https://evilshop.example/", "https://shop.example.evil/"] {
            #expect(try bench.sent(to: address) == nil)
        }
    }

    @Test(arguments: ["example", "shop.example", "co.uk", "login.shop.example"])
    func `W12: a cookie for a domain that the app does not list is host-only`(domain: String) throws {
        var bench = CookieBench(shared: ["other.example"])
        let host = domain == "co.uk" ? "shop.co.uk" : "login.shop.example"
        try bench.set("a=b; Domain=\(domain)", at: "https://\(host)/")
        #expect(try bench.sent(to: "https://\(host)/") == "a=b")
        #expect(bench.all.map(\.isHostOnly) == [true])
        for address in ["https://\(domain)/", "https://x.\(domain)/", "https://sub.\(host)/"] where address != "https://\(host)/" {
            #expect(try bench.sent(to: address) == nil)
        }
    }

    @Test(arguments: [
        "b.example", "x.a.example", "xample", ".example.", "a.example.", "127.0.0.1", "https://a.example", "a.example:443", "é.example",
        "a. example", "*", "..a.example",
    ])
    func `W12: a cookie for another domain sets nothing`(domain: String) throws {
        var bench = CookieBench(shared: ["b.example", "x.a.example", "example"])
        try bench.set("a=b; Domain=\(domain)")
        #expect(bench.all.isEmpty)
    }

    @Test func `W12: a cookie of an IP address is host-only`() throws {
        var bench = CookieBench(shared: ["0.0.1", "127.0.0.1", "1"])
        try bench.set("a=b; Domain=0.0.1", at: "http://127.0.0.1/")
        #expect(bench.all.isEmpty)
        try bench.set("a=b; Domain=127.0.0.1", at: "http://127.0.0.1/")
        try bench.set("c=d", at: "https://[::1]/")
        #expect(bench.all.map(\.isHostOnly) == [true, true])
        #expect(try bench.sent(to: "http://127.0.0.1/") == "a=b")
        #expect(try bench.sent(to: "https://[::1]/") == "c=d")
    }

    @Test(arguments: [
        ("/", "/", true), ("/", "/x", true), ("/x", "/x", true), ("/x", "/x/", true), ("/x", "/x/y", true), ("/x/", "/x/y", true),
        ("/x", "/xy", false), ("/x/", "/x", false), ("/x", "/", false), ("/x", "/X", false), ("/x/y", "/x", false), ("/%78", "/x", false),
    ])
    func `W12: a cookie is sent to its path and below`(cookie: String, request: String, isSent: Bool) throws {
        var bench = CookieBench()
        try bench.set("a=b; Path=\(cookie)")
        #expect(try bench.sent(to: "https://a.example\(request)?q=/x") == (isSent ? "a=b" : nil))
    }

    @Test(arguments: [
        ("https://a.example", "/"), ("https://a.example/", "/"), ("https://a.example/x", "/"), ("https://a.example/x/y", "/x"),
        ("https://a.example/x/y/", "/x/y"), ("https://a.example?q=/x/y", "/"), ("https://a.example/x%2Fy/z", "/x%2Fy"),
    ])
    func `W12: a cookie without a path gets the directory of its request's path`(address: String, path: String) throws {
        var bench = CookieBench()
        try bench.set("a=b", "c=d; Path=relative", at: address)
        #expect(bench.all.map(\.path) == [path, path])
    }

    @Test func `W12: cookies are sorted by longer path, then by age`() throws {
        var bench = CookieBench(shared: ["example"])
        try bench.set("1=x; Path=/", "2=x; Path=/x/y", "3=x; Path=/x", "6=x; Path=/", at: "https://a.example/x/y")
        try bench.set("4=x; Path=/x/y; Domain=example", at: "https://a.example/")
        bench.now += 60
        #expect(try bench.sent() == "1=x; 6=x")
        try bench.set("5=x; Path=/", "1=new; Path=/", at: "https://a.example/")
        #expect(try bench.sent(to: "https://a.example/x/y") == "2=x; 4=x; 3=x; 1=new; 6=x; 5=x")
    }

    @Test func `W12: name, domain and path together identify a cookie`() throws {
        var bench = CookieBench(shared: ["a.example"])
        try bench.set("a=1", "a=2; Path=/x", "a=3; Domain=a.example", "A=4", "a=5", "e\u{301}=6", "\u{E9}=7")
        #expect(try bench.sent(to: "https://a.example/x") == "a=2; a=5; a=3; A=4; e\u{301}=6; \u{E9}=7")
    }

    @Test func `W12: a cookie without a name is sent as its value`() throws {
        var bench = CookieBench()
        try bench.set("token", "a=", "=other")
        #expect(try bench.sent() == "other; a=")
    }

    // MARK: Security

    @Test func `W12: a Secure cookie is set and sent over secure connections only`() throws {
        var bench = CookieBench()
        try bench.set("a=b; Secure")
        #expect(try bench.sent(to: "http://a.example/") == nil)
        #expect(try bench.sent(to: "https://a.example/") == "a=b")
        try bench.set("c=d; Secure", at: "http://a.example/")
        #expect(bench.all.map(\.name) == ["a"])
        try bench.set("e=f; Secure", at: "http://localhost/")
        #expect(try bench.sent(to: "http://localhost/") == "e=f")
    }

    @Test(arguments: [("a=evil", "/", false), ("a=evil; Path=/x", "/x/y", false), ("a=evil; Path=/", "/", true), ("b=fine", "/", true)])
    func `W12: a cookie from an insecure connection does not shadow a Secure cookie`(line: String, path: String, isSet: Bool) throws {
        var bench = CookieBench(shared: ["example"])
        let secure = line.contains("Path=/;") || line.hasSuffix("Path=/") ? "/x" : "/"
        try bench.set("a=good; Secure; Path=\(secure)")
        try bench.set(line, at: "http://a.example\(path)")
        #expect(bench.all.count == (isSet ? 2 : 1))
        #expect(bench.all.contains { $0.value == "good" })
        // A cookie of the shared domain would be sent to the same host.
        try bench.set("a=evil; Domain=example; Path=\(secure)", at: "http://b.example/")
        #expect(!bench.all.contains { !$0.isHostOnly })
    }

    @Test(arguments: [
        ("__Secure-a=b; Secure", true), ("__Secure-a=b", false), ("__secure-a=b", false), ("__Host-a=b; Secure; Path=/", true),
        ("__HOST-a=b; Secure; Path=/", true), ("__Host-a=b; Secure", false), ("__Host-a=b; Path=/", false),
        ("__Host-a=b; Secure; Path=/x", false), ("__Host-a=b; Secure; Path=/; Domain=a.example", false), ("__host-a=b; Path=/", false),
        ("=__Host-a=b", false), ("__Secure-", false), ("=__secure-a=b; Secure", false), ("__Host-\u{301}a=b", false), ("__Hos-a=b", true),
    ])
    func `W12: a cookie that violates the rules of its prefix is ignored`(line: String, isSet: Bool) throws {
        var bench = CookieBench(shared: ["a.example"])
        try bench.set(line)
        #expect(bench.all.count == (isSet ? 1 : 0))
    }

    @Test func `W12: a cookie with a prefix is ignored on an insecure connection`() throws {
        var bench = CookieBench()
        try bench.set("__Host-a=b; Secure; Path=/", "__Secure-a=b; Secure", at: "http://a.example/")
        #expect(bench.all.isEmpty)
    }

    // MARK: SameSite

    private static let policies = "strict=1; SameSite=Strict|lax=1; SameSite=Lax|none=1; SameSite=None; Secure|plain=1"

    @Test(
        arguments: [
            ([], HTTPMethod.post, "strict lax none plain"), (["https://a.example/x"], .post, "strict lax none plain"),
            (["https://b.example/"], .get, "lax none plain"), (["https://b.example/"], .head, "lax none plain"),
            (["https://b.example/"], .post, "none"), (["https://b.example/"], .put, "none"), (["http://a.example/"], .post, "none"),
            (["https://a.example/", "https://b.example/"], .post, "none"),
            (["https://b.example/", "https://a.example/"], .get, "lax none plain"),
            (["https://sub.a.example/"], .post, "none"), (["https://x.shop.example/", "https://a.example/"], .post, "none"),
        ] as [([String], HTTPMethod, String)])
    func `W12: a redirect from another site carries the cookies that SameSite allows`(
        hops: [String], method: HTTPMethod, names: String
    ) throws {
        var bench = CookieBench(shared: ["shop.example"])
        for line in Self.policies.split(separator: "|") { try bench.set(String(line)) }
        let sent = try bench.sent(to: "https://a.example/", method, after: hops)
        #expect(sent == names.split(separator: " ").map { "\($0)=1" }.joined(separator: "; "))
    }

    @Test func `W12: hosts of a shared domain belong to the same site`() throws {
        var bench = CookieBench(shared: ["shop.example"])
        try bench.set("a=b; SameSite=Strict", at: "https://x.shop.example/")
        #expect(try bench.sent(to: "https://x.shop.example/", .post, after: ["https://y.shop.example/"]) == "a=b")
        #expect(try bench.sent(to: "https://x.shop.example/", .post, after: ["http://y.shop.example/"]) == nil)
    }

    @Test func `W12: a cookie with SameSite=None and without Secure is ignored`() throws {
        var bench = CookieBench()
        try bench.set("a=b; SameSite=None", "c=d; SameSite=Unknown")
        #expect(bench.all.map(\.sameSite) == [.unspecified])
    }

    // MARK: Expiry

    @Test func `W12: Max-Age overrides Expires in any order`() throws {
        var bench = CookieBench()
        let past = "Expires=Thu, 01 Jan 1970 00:00:00 GMT"
        try bench.set("a=1; Max-Age=10; \(past)", "b=1; \(past); Max-Age=10", "c=1; \(past)")
        #expect(try bench.sent() == "a=1; b=1")
        bench.now += 9.999
        #expect(try bench.sent() == "a=1; b=1")
        bench.now += 0.001
        #expect(try bench.sent() == nil)
        #expect(bench.all.isEmpty)
    }

    @Test(arguments: ["Max-Age=0", "Max-Age=-1", "Expires=Thu, 01 Jan 1970 00:00:00 GMT", "Expires=Sun, 09 Sep 2001 01:46:40 GMT"])
    func `W12: an expired cookie removes its earlier version`(attribute: String) throws {
        var bench = CookieBench()
        try bench.set("a=b; Max-Age=100", "c=d; Max-Age=100")
        try bench.set("a=; \(attribute)")
        #expect(try bench.sent() == "c=d")
        #expect(bench.storage.record(of: "a.example", now: bench.now).map(\.name) == ["c"])
    }

    @Test(arguments: ["Max-Age=99999999999999999999", "Max-Age=34560001", "Expires=Fri, 31 Dec 9999 23:59:59 GMT"])
    func `W12: no cookie lives longer than 400 days`(attribute: String) throws {
        var bench = CookieBench()
        try bench.set("a=b; \(attribute)")
        #expect(bench.all.map(\.expires) == [bench.now.addingTimeInterval(400 * 86_400)])
        // The clock is set back before the next run, which still has the cookie.
        var next = CookieBench()
        next.now -= 86_400
        next.storage.load(bench.all, for: "a.example", now: next.now)
        #expect(next.all.map(\.expires) == [next.now.addingTimeInterval(400 * 86_400)])
    }

    @Test(arguments: ["", "; Max-Age=x", "; Expires=never"])
    func `W12: a cookie without a valid lifetime is a session cookie, which is not saved`(attribute: String) throws {
        var bench = CookieBench()
        try bench.set("a=b\(attribute)", "c=d; Max-Age=5")
        #expect(bench.storage.record(of: "a.example", now: bench.now).map(\.name) == ["c"])
        bench.now += 500 * 86_400
        #expect(try bench.sent() == "a=b")
    }

    @Test func `W12: the order of creation survives a clock that goes back`() throws {
        var bench = CookieBench()
        try bench.set("1=x")
        bench.now -= 86_400
        try bench.set("2=x")
        bench.now += 10 * 86_400
        try bench.set("3=x")
        #expect(try bench.sent() == "1=x; 2=x; 3=x")
    }

    @Test func `W12: an expired cookie shadows no other cookie, and does not pass on its age`() throws {
        var bench = CookieBench(shared: ["example"])
        try bench.set("a=old; Secure; Max-Age=5", "b=old; Max-Age=5", "c=x")
        bench.now += 10
        try bench.set("a=new; Domain=example; Path=/", at: "http://b.example/")
        try bench.set("b=new")
        #expect(try bench.sent() == "c=x; a=new; b=new")
    }

    // MARK: Limits

    @Test func `W12: a domain over its limit evicts expired, then insecure, then other cookies, the least recently used first`() throws {
        var bench = CookieBench(limits: .init(perDomain: 3))
        try bench.set("1=x; Secure", "2=x; Max-Age=5", "3=x")
        bench.now += 10
        try bench.set("4=x")
        #expect(bench.all.map(\.name) == ["1", "3", "4"])
        _ = try bench.sent(to: "https://a.example/")
        try bench.set("5=x; Secure; Path=/p")
        #expect(bench.all.map(\.name) == ["1", "4", "5"])
        try bench.set("6=x; Secure; Path=/q")
        #expect(bench.all.map(\.name) == ["1", "5", "6"])
        _ = try bench.sent(to: "https://a.example/p")
        try bench.set("7=x; Secure")
        #expect(bench.all.map(\.name) == ["1", "5", "7"])
        try bench.set("8=x")
        #expect(bench.all.map(\.name) == ["1", "5", "7"])
    }

    @Test func `W12: a jar over its total evicts the least recently used cookies`() throws {
        var bench = CookieBench(limits: .init(total: 3))
        for host in ["1", "2", "3"] { try bench.set("n=\(host); Max-Age=\(host)0", at: "https://\(host).example/") }
        _ = try bench.sent(to: "https://1.example/")
        try bench.set("n=4", at: "https://4.example/")
        #expect(bench.all.map(\.value).sorted() == ["1", "3", "4"])
        bench.now += 30
        try bench.set("n=5", "n=6; Path=/x", at: "https://5.example/")
        #expect(bench.all.map(\.value).sorted() == ["4", "5", "6"])
    }

    @Test func `W12: a jar over its total evicts no more cookies if the clock was set back after they were saved`() throws {
        var bench = CookieBench(limits: .init(total: 10))
        for number in 0..<10 { try bench.set("a=\(number); Max-Age=50", at: "https://\(number).example/") }
        var next = CookieBench(limits: .init(total: 10))
        next.now -= 60
        for cookie in bench.all { next.storage.load([cookie], for: cookie.domain, now: next.now) }
        try next.set("a=b")
        #expect(next.all.count == 9 && next.all.contains { $0.value == "b" })
    }

    @Test func `W12: thousands of cookies stay within the limits`() throws {
        let count = isWholeRun ? 10_000 : 4_000
        var bench = CookieBench()
        for index in 0..<count { try bench.set("n\(index)=x; Max-Age=9") }
        #expect(bench.all.map(\.name) == (count - 50..<count).map { "n\($0)" })
        #expect(try bench.sent()?.split(separator: ";").count == 50)
        for index in 0..<count { try bench.set("n=x", at: "https://h\(index).example/") }
        #expect((2700...3000).contains(bench.all.count))
        #expect(try bench.sent(to: "https://h\(count - 1).example/") == "n=x")
        #expect(try bench.sent(to: "https://h0.example/") == nil)
    }

    // MARK: Saving

    @Test func `W12: only changes to saved cookies cause a save`() throws {
        var bench = CookieBench(shared: ["example"])
        func changed() -> Set<String> { bench.storage.takeChanged() }
        try bench.set("a=b")
        #expect(changed() == [])
        try bench.set("a=b; Max-Age=10", "c=d; Domain=example; Max-Age=5")
        #expect(changed() == ["a.example", "example"])
        try bench.set("a=b; Max-Age=10")
        _ = try bench.sent()
        #expect(changed() == [])
        try bench.set("a=b2; Max-Age=10")
        #expect(changed() == ["a.example"])
        bench.now += 5
        _ = try bench.sent()
        #expect(changed() == ["example"])
        try bench.set("a=b")
        #expect(changed() == ["a.example"])
        #expect(bench.storage.record(of: "a.example", now: bench.now) == [])
    }

    @Test func `W12: a saved record restores its cookies in order`() throws {
        var bench = CookieBench()
        try bench.set("1=x; Max-Age=50", "2=x", "3=x; Max-Age=5", "4=x; Max-Age=50; Secure; HttpOnly; SameSite=Strict; Path=/")
        let data = try JSONEncoder().encode(bench.storage.record(of: "a.example", now: bench.now))
        var next = CookieBench()
        next.now = bench.now + 10
        next.storage.load(try JSONDecoder().decode([Cookie].self, from: data), for: "a.example", now: next.now)
        try next.set("5=x", "1=y")
        #expect(try next.sent() == "1=y; 4=x; 5=x")
        #expect(next.storage.takeChanged() == ["a.example"])
        #expect(next.all[1].isSecure && next.all[1].isHTTPOnly && next.all[1].sameSite == .strict)
    }

    @Test func `W12: a saved cookie that no response could have set is dropped`() throws {
        func cookie(
            _ name: String = "a", _ value: String = "b", domain: String = "a.example", expires: Double? = 10, created: Int64 = 0
        ) -> Cookie {
            Cookie(
                name: name, value: value, domain: domain, isHostOnly: true, path: "/",
                expires: expires.map { Date(timeIntervalSince1970: 1_000_000_000 + $0) }, isSecure: false, isHTTPOnly: false,
                sameSite: .lax,
                created: created, used: created)
        }
        var bench = CookieBench()
        let unsound = [
            cookie("a\r\nX: y"), cookie("a", "b\n"), cookie("a;b"), cookie("a", "b; c=d"), cookie("a=b"), cookie("", ""), cookie(" a"),
            cookie("a", "b "), cookie("a", String(repeating: "x", count: 5000)), cookie(domain: "b.example"), cookie(expires: nil),
            cookie(expires: 0), cookie(expires: -5), cookie("a", "\u{0}"),
        ]
        bench.storage.load(unsound, for: "a.example", now: bench.now)
        #expect(bench.all == [])
        bench.storage.load(
            [cookie("a", created: .max), cookie("b", created: .min), cookie("a", "again"), cookie("c=", "d")], for: "a.example",
            now: bench.now)
        try bench.set("e=f")
        #expect(try bench.sent() == "b=b; a=b; e=f")
    }

    @Test(arguments: part(of: seeds(40), each: 9))
    func `W12: no history sends a cookie to a host, path or connection that it does not belong to`(seed: Int) throws {
        var random = SplitMix(seed: seed)
        var bench = CookieBench(shared: ["shop.example"], limits: .init(perDomain: 4, total: 9))
        let hosts = ["shop.example", "a.shop.example", "b.a.shop.example", "evil.example", "xshop.example", "127.0.0.1"]
        let paths = ["/", "/x", "/x/", "/x/y", "/xy"]
        for _ in 0..<300 {
            bench.now += Double(random.below(5))
            let (host, path) = (hosts[random.below(hosts.count)], paths[random.below(paths.count)])
            let (isSecure, domain) = (random.below(2) == 0, hosts[random.below(hosts.count)])
            let address = "\(isSecure ? "https" : "http")://\(host)\(path)"
            // The value describes the permitted targets of the cookie.
            var line = "n\(random.below(3))=\(host)|"
            let names = random.below(2) == 0
            let marksSecure = random.below(2) == 0
            let cookiePath = paths[random.below(paths.count)]
            let reach = names && domain == "shop.example" && host.hasSuffix("shop.example") && host != "xshop.example" ? "*" : "-"
            line += "\(reach)|\(cookiePath)|\(marksSecure)|\(bench.now.timeIntervalSince1970 + 10); Path=\(cookiePath); Max-Age=10"
            if names { line += "; Domain=\(domain)" }
            if marksSecure { line += "; Secure" }
            try bench.set(line, at: address)
            let target = hosts[random.below(hosts.count)]
            let targetPath = paths[random.below(paths.count)]
            let isTargetSecure = random.below(2) == 0
            for pair in (try bench.sent(to: "\(isTargetSecure ? "https" : "http")://\(target)\(targetPath)"))?.components(separatedBy: "; ")
                ?? []
            {
                let parts = pair.split(separator: "=", maxSplits: 1)[1].split(separator: "|").map(String.init)
                try #require(parts.count == 5)
                let isReached = parts[1] == "*" ? target == "shop.example" || target.hasSuffix(".shop.example") : target == parts[0]
                #expect(isReached, "seed \(seed): \(pair) went to \(target)")
                #expect(targetPath == parts[2] || targetPath.hasPrefix(parts[2].hasSuffix("/") ? parts[2] : parts[2] + "/"))
                #expect(parts[3] == "false" || isTargetSecure || target == "127.0.0.1")
                #expect(Double(parts[4]).map { $0 > bench.now.timeIntervalSince1970 } == true)
            }
            #expect(bench.all.count <= 9)
            #expect(Dictionary(grouping: bench.all, by: \.domain).values.allSatisfy { $0.count <= 4 })
        }
    }

    @Test func `W12: the eviction of a saved cookie causes a save, and that of a session cookie none`() throws {
        var bench = CookieBench(limits: .init(total: 2))
        try bench.set("a=b; Max-Age=10", at: "https://saved.example/")
        try bench.set("a=b", at: "https://session.example/")
        #expect(bench.storage.takeChanged() == ["saved.example"])
        try bench.set("a=b", at: "https://1.example/")
        #expect(bench.storage.takeChanged() == ["saved.example"])
        try bench.set("a=b", at: "https://2.example/")
        #expect(bench.all.map(\.domain).sorted() == ["1.example", "2.example"])
        #expect(bench.storage.takeChanged() == [])
    }

    @Test func `W12: a saved record over the limit of its domain is cut like received cookies`() throws {
        var bench = CookieBench()
        for name in ["1", "2", "3"] { try bench.set("\(name)=x; Max-Age=50") }
        let saved = bench.storage.record(of: "a.example", now: bench.now)
        var next = CookieBench(limits: .init(perDomain: 2))
        next.storage.load(saved, for: "a.example", now: next.now)
        #expect(next.all.map(\.name) == ["2", "3"])
        #expect(next.storage.takeChanged() == ["a.example"])
    }
}
