import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore
import Testing
import Trials

@testable import Inspector

/// The page in a real browser (I6).
@Suite(
    .serialized, .timeLimit(.minutes(hangMinutes)),
    .enabled(if: Browser.path != nil, "there is no Chromium; install it, or name it in STOREHOUSE_CHROMIUM"))
struct BrowserTests {
    struct User: Codable, Sendable { var name: String, fetch: Int }

    let fetches = WatchedState(0)
    let inspector: Inspector
    let users: Store<String, User>

    init() throws {
        var policy = Inspector.Policy()
        // The actions of a page do not end because a busy browser connects again late.
        policy.grace = .seconds(3_600)
        inspector = try Inspector.start(policy: policy)
        users = Store(cacher: MemoryCacher<String, User>(limit: 200_000), name: "users") { [fetches] name in
            User(
                name: name,
                fetch: fetches.update {
                    $0 += 1; return $0
                })
        }
        inspector.attach(users)
    }

    /// Opens the page in a browser, which is closed afterward.
    private func withPage(_ body: (Tab) async throws -> Void) async throws {
        let browser = try Browser()
        do {
            let tab = try await browser.open(inspector.url)
            try await tab.wait("document.querySelector('#connection.live')")
            // By default, a fetch may have left the timeline before a busy browser shows it.
            try await tab.choose("300000", in: "#range")
            try await body(tab)
        } catch {
            try? await browser.close()
            throw error
        }
        try await browser.close()
    }

    private func select(_ key: String, in tab: Tab) async throws {
        try await tab.wait("Array.from(document.querySelectorAll('.row')).some(row => row.firstChild.textContent === '\(key)')")
        let id =
            try await tab.evaluate(
                "Array.from(document.querySelectorAll('.row')).find(row => row.firstChild.textContent === '\(key)').id") as? String
        try await tab.click("#\(id ?? "") span", until: "the key is selected") { try await tab.text("#item h2") == key }
    }

    @Test func `I6, I3: the page shows keys, a record, and the fetch in the timeline`() async throws {
        _ = try await users["ada"].requireData()
        try await withPage { tab in
            try await select("ada", in: tab)
            try await tab.wait("document.querySelector('#item pre')?.textContent.includes('\"name\" : \"ada\"')")
            _ = try await users["ada"].requireData(from: .origin)
            try await tab.wait(
                """
                Array.from(document.querySelectorAll('#spans .span')).some(span =>
                    span.querySelector('.bar.ok') && span.querySelector('.what')?.textContent === 'ada')
                """)
            #expect(try await tab.text("#subjects .name") == "users")
            // A change is visible without any input.
            await users["ada"].update(User(name: "Lovelace", fetch: 0))
            try await tab.wait("document.querySelector('#item pre').textContent.includes('Lovelace')")
        }
    }

    @Test func `I6, I4: refresh, invalidate and clear are clicked, and act on the store`() async throws {
        _ = try await users["ada"].requireData()
        try await withPage { tab in
            try await select("ada", in: tab)
            try await tab.click("[data-action=refresh]", until: "the key is fetched") {
                (users.snapshot(of: "ada")?.content?.fetch ?? 0) > 1
            }
            try await tab.click("[data-action=invalidate]", until: "the key is out of date, and the page says so") {
                guard users.snapshot(of: "ada")?.isInvalidated == true else { return false }
                return try await tab.shows("document.querySelector('#item .phase.stale')")
            }
            try await tab.click("[data-action=clear]", until: "the key is empty") { users.snapshot(of: "ada")?.content == nil }
        }
    }

    @Test func `I6, I4: the next fetch is failed, and the page says so`() async throws {
        _ = try await users["ada"].requireData()
        try await withPage { tab in
            try await select("ada", in: tab)
            try await tab.click("[data-action=fail]")
            try await tab.wait("document.querySelector('#warning').textContent.includes('next fetch')")
            await #expect(throws: InspectionFailure(code: .failed)) { try await users["ada"].requireData(from: .origin) }
            try await tab.wait("document.querySelector('#spans .bar.failed') && document.querySelector('#warning').hidden")
            #expect(try await users["ada"].requireData(from: .origin).fetch == 2)
        }
    }

    @Test func `I6, I4: offline and delay are chosen, and end with the page`() async throws {
        try await withPage { tab in
            try await tab.click("#offline")
            try await tab.wait("document.querySelector('#offline[aria-pressed=true]') && !document.querySelector('#warning').hidden")
            await #expect(throws: InspectionFailure(code: .offline)) { try await users["ada"].requireData() }
            try await tab.click("#offline")
            try await tab.wait("document.querySelector('#offline[aria-pressed=false]')")
            _ = try await users["ada"].requireData()
            try await tab.choose("10000", in: "#delay")
            try await tab.wait("document.querySelector('#warning').textContent.includes('10 s')")
            var callers = [Task { try await users["grace"].requireData() }]
            try await until("the fetch waits") {
                inspector.board.timeline.changes(after: 0).spans.contains { $0.title == "grace" && $0.status == "running" }
            }
            #expect(fetches.current == 1)
            // More of them, because the delay may end before a busy browser shows the first.
            try await until("the page shows a fetch that waits") {
                let key = "grace \(callers.count)"
                callers.append(Task { try await users[key].requireData() })
                try await tab.evaluate("new Promise(done => setTimeout(done, 300))")
                return try await tab.shows("document.querySelector('#spans .bar.running')")
            }
            try await tab.go(to: try #require(URL(string: "about:blank")))
            // Not by the time of the delay, which would end the waits too.
            try await until("the page has ended its delay") { inspector.board.controls.summary(for: "").text.contains(#""delay":null"#) }
            for caller in callers { _ = try await caller.value }
        }
    }

    @Test func `I6, I5: HTML in keys and values stays text`() async throws {
        let attack = "<img src=x onerror=window.pwned=1><script>window.pwned=1</script>"
        await users[attack].update(User(name: attack + "</pre><b>", fetch: 0))
        _ = try await users[attack + "2"].requireData()
        try await withPage { tab in
            try await tab.wait("document.querySelector('.row')")
            try await tab.click(".row span", until: "the key is selected") { try await tab.shows("document.querySelector('#item pre')") }
            try await tab.wait("document.querySelector('#spans .what')")
            let found = try await tab.evaluate("document.querySelectorAll('img, main script, main b').length + (window.pwned ?? 0)") as? Int
            #expect(found == 0)
            #expect(try await tab.text("#item h2").hasPrefix("<img src=x"))
            // The policy of the page refuses the mistake itself.
            let refused =
                try await tab.evaluate(
                    "(() => { try { document.body.innerHTML = '<b>'; return false } catch { return true } })()") as? Bool
            #expect(refused == true)
        }
    }

    @Test func `I6, I3: 100 000 rows scroll with few elements, from the keyboard and by search`() async throws {
        for number in 0..<100_000 { await users["key \(number)"].update(User(name: "n", fetch: number)) }
        try await withPage { tab in
            try await tab.wait("document.querySelector('#count').textContent === '100,000 rows'")
            try await tab.evaluate("document.querySelector('#table').focus()")
            try await tab.press("End")
            try await tab.wait("document.querySelector('#item h2')?.textContent === 'key 99999'")
            try await tab.wait("document.querySelector('.row[aria-selected=true]')")
            #expect(try await tab.evaluate("document.querySelectorAll('.row').length < 200") as? Bool == true)
            try await tab.press("ArrowUp")
            try await tab.wait("document.querySelector('#item h2')?.textContent === 'key 99998'")
            try await tab.press("/")
            try await tab.wait("document.activeElement === document.querySelector('#search')")
            for key in "77777" { try await tab.press(String(key)) }
            try await tab.wait("document.querySelector('#count').textContent === '1 row'")
            try await tab.press("Escape")
            try await tab.wait("document.querySelector('#count').textContent === '100,000 rows'")
        }
    }

    @Test(arguments: [400, 1_000, 2_000], ["light", "dark"])
    func `I6, I3: the page fits windows of each width in both modes`(width: Int, mode: String) async throws {
        _ = try await users["ada"].requireData()
        for number in 0..<300 { await users["key \(number)"].update(User(name: "n", fetch: number)) }
        try await withPage { tab in
            try await tab.resize(width: width, height: 900, mode: mode)
            let ground = mode == "dark" ? "rgb(20, 23, 27)" : "rgb(255, 255, 255)"
            try await tab.wait("getComputedStyle(document.body).backgroundColor === '\(ground)'")
            try await tab.screenshot("inspector-\(width)-\(mode)")
            try await tab.waitUntilItFits()
            try await select("ada", in: tab)
            try await tab.wait("document.querySelector('#item pre')")
            try await tab.waitUntilItFits()
            try await tab.screenshot("inspector-\(width)-\(mode)-key")
        }
    }

    @Test func `I6, I3: the timeline shows exchanges below their fetch, and is used from the keyboard`() async throws {
        let host = inspector.attach(RemoteHost.immediate, name: "api")
        let remote = Store(cacher: MemoryCacher<String, Data>(), name: "remote") { _ in try await host.data(for: Route(path: "/a")) }
        inspector.attach(remote)
        _ = try await remote["photo"].requireData()
        try await withPage { tab in
            try await tab.wait(
                """
                JSON.stringify(Array.from(document.querySelectorAll('#spans .span'), span =>
                    [span.querySelector('.what').textContent, span.firstChild.style.paddingLeft])) === '[["photo","0px"],["GET /a","14px"]]'
                """)
            try await tab.evaluate("document.querySelector('#spans').focus()")
            try await tab.press("ArrowDown")
            try await tab.press("ArrowDown")
            try await tab.press("Enter")
            try await tab.wait("document.querySelector('#title').textContent === 'api'")
            try await tab.wait("document.querySelector('#item h2')?.textContent === 'GET /a'")
            // The next exchange of the host is failed without a key.
            try await tab.click("#failNext")
            try await tab.wait("document.querySelector('#warning').textContent.includes('next fetch')")
            await #expect(throws: RemoteError.self) { try await host.data(for: Route(path: "/a")) }
            _ = try await host.data(for: Route(path: "/a"))
        }
    }

    @Test func `I6, I3: a store that goes away while its record is shown is shown as gone`() async throws {
        var guest: Store<Int, Int>? = Store(cacher: MemoryCacher<Int, Int>(), name: "guest") { $0 }
        inspector.attach(try #require(guest))
        _ = try await guest?[1].requireData()
        try await withPage { tab in
            try await tab.click("#subjects button[data-id='2']", until: "the store is shown") { try await tab.text("#title") == "guest" }
            try await select("1", in: tab)
            guest = nil
            try await tab.wait("document.querySelector('#item h2').textContent === 'This row is gone.'")
            try await tab.wait("document.querySelector('#subjects .gone')?.textContent === 'guest'")
            try await tab.wait("document.querySelector('#empty').textContent.includes('released')")
        }
    }

    @Test func `I6: the picture of the README is shown, and is small`() async throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        let path = try #require(text.firstMatch(of: /!\[[^\]]*\]\(([^)]+\.png)\)/)?.1)
        let picture = root.appending(path: String(path))
        #expect(try Data(contentsOf: picture).count < 300_000)
        let browser = try Browser()
        let tab = try await browser.open(picture)
        try await tab.wait("document.images[0]?.naturalWidth >= 1000")
        try await browser.close()
    }

    /// The directory that `.ci/docs --site` has made.
    static let site = ProcessInfo.processInfo.environment["STOREHOUSE_SITE"]

    @Test(.enabled(if: BrowserTests.site != nil, "name a site of `.ci/docs --site` in STOREHOUSE_SITE"), arguments: [400, 2_000])
    func `I6: the documentation site shows its text and its pictures`(width: Int) async throws {
        let root = URL(filePath: try #require(Self.site), directoryHint: .isDirectory)
        let types = ["html": "text/html", "js": "text/javascript", "css": "text/css", "json": "application/json", "svg": "image/svg+xml"]
        let origin = try LoopbackOrigin { request in
            let file = root.appending(path: String(request.path.dropFirst()) + (request.path.hasSuffix("/") ? "index.html" : ""))
            guard let data = try? Data(contentsOf: file) else { return .status(404) }
            return .data(data, type: types[file.pathExtension] ?? "application/octet-stream")
        }
        let browser = try Browser()
        let tab = try await browser.open(try #require(URL(string: "about:blank")))
        try await tab.resize(width: width, height: 900, mode: "light")
        // The site may change the address as it starts.
        _ = try await browser.call("Page.navigate", ["url": origin.url.absoluteString + "/documentation/"], session: tab.session)
        try await tab.wait("document.querySelector('h1')?.textContent.includes('Storehouse')")
        try await tab.wait("Array.from(document.images).some(image => image.src.includes('inspector') && image.naturalWidth > 0)")
        try await tab.wait("document.documentElement.scrollWidth <= innerWidth")
        try await tab.screenshot("documentation-\(width)")
        try await browser.close()
        origin.stop()
    }

    @Test func `I6: the page opens against the tour, which works until it is ended`() async throws {
        let tour = try ChildProcess("tour", ["--inspect", "--plain"])
        let line = try #require(try await tour.nextLine())
        let url = try #require(line.split(separator: " ").last.flatMap { URL(string: String($0)) })
        let browser = try Browser()
        let tab = try await browser.open(url)
        try await tab.choose("300000", in: "#range")
        for name in ["books", "shelf", "catalog", "bookshop", "legal", "covers", "reservations"] {
            try await tab.wait("Array.from(document.querySelectorAll('#subjects .name')).some(name => name.textContent === '\(name)')")
        }
        try await tab.wait("document.querySelectorAll('#spans .bar.exchange').length > 2")
        try await tab.wait("document.querySelector('#spans .bar.ok:not(.exchange)')")
        for mode in ["light", "dark"] {
            try await tab.resize(width: 1_280, height: 760, mode: mode)
            try await tab.click(".row span", until: "a book is shown") { try await tab.shows("document.querySelector('#item pre')") }
            try await tab.screenshot("inspector-\(mode)")
        }
        tour.kill()
        try await tab.wait("document.querySelector('#connection.lost')")
        try await browser.close()
    }
}

/// The colors of the page.
struct StyleTests {
    @Test(arguments: [0, 1]) func `I3: text has a contrast of 4.5 on its ground`(set: Int) throws {
        let blocks = PageStyle.css.split(separator: ":root {").dropFirst()
        let block = try #require(blocks.dropFirst(set).first)
        var colors: [String: Double] = [:]
        for match in block.prefix(700).matches(of: /--([a-z-]+): #([0-9a-f]{6})/) where colors[String(match.1)] == nil {
            colors[String(match.1)] = luminance(String(match.2))
        }
        let pairs = [
            ("text", "ground"), ("text", "raised"), ("dim", "ground"), ("dim", "raised"), ("accent", "ground"), ("accent", "raised"),
            ("accent", "accent-ground"), ("text", "accent-ground"), ("dim", "accent-ground"), ("on-accent", "accent"), ("bad", "ground"),
            ("bad", "raised"), ("bad", "bad-ground"), ("warn", "ground"), ("warn", "raised"), ("good", "raised"),
        ]
        for (text, ground) in pairs {
            let (one, two) = (try #require(colors[text]), try #require(colors[ground]))
            #expect((max(one, two) + 0.05) / (min(one, two) + 0.05) >= 4.5, "\(text) on \(ground)")
        }
    }

    /// The relative luminance of a color (WCAG 2.2).
    private func luminance(_ hex: String) -> Double {
        let parts = stride(from: 0, to: 6, by: 2).map { start -> Double in
            let part = Double(Int(hex.dropFirst(start).prefix(2), radix: 16) ?? 0) / 255
            return part <= 0.03928 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4)
        }
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    }
}
