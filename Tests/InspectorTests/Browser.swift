import Foundation
import Trials

/// A headless Chromium, driven over the DevTools protocol on a pipe.
final class Browser {
    /// The installed browser; `nil` if there is none, or if `STOREHOUSE_CHROMIUM` names a missing file.
    static let path: String? = {
        let named = ProcessInfo.processInfo.environment["STOREHOUSE_CHROMIUM"].map { [$0] }
        let usual = [
            "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome",
            "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium",
        ]
        return (named ?? usual).first { FileManager.default.isExecutableFile(atPath: $0) }
    }()

    struct Failure: Error, CustomStringConvertible { let description: String }

    private let process: ChildProcess
    private let directory: TemporaryDirectory
    private var lastID = 0

    init() throws {
        guard let path = Self.path else { throw Failure(description: "there is no Chromium") }
        directory = try TemporaryDirectory()
        // The shell gives the browser its pipes, which the protocol wants as the descriptors 3 and 4.
        process = try ChildProcess(
            "/bin/sh",
            [
                "-c", #"exec "$0" "$@" 3<&0 4>&1 >/dev/null 2>&1"#, path, "--headless=new", "--remote-debugging-pipe", "--no-sandbox",
                "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
                "--user-data-dir=\(directory.url.path())", "--window-size=1400,900", "about:blank",
            ])
    }

    /// Ends the browser with its processes.
    func close() async throws {
        _ = try await call("Browser.close", [:], session: nil)
        _ = try await process.ending()
    }

    /// Calls a method of the protocol, and waits for its result.
    func call(_ method: String, _ parameters: [String: Any], session: String?) async throws -> [String: Any] {
        lastID += 1
        var message: [String: Any] = ["id": lastID, "method": method, "params": parameters]
        message["sessionId"] = session
        let text = String(decoding: try JSONSerialization.data(withJSONObject: message), as: UTF8.self)
        try process.write(text + "\0")
        while let line = try await process.nextLine(endingWith: 0) {
            guard let answer = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else { continue }
            guard answer["id"] as? Int == lastID else { continue }
            if let error = answer["error"] { throw Failure(description: "\(method): \(error)") }
            return answer["result"] as? [String: Any] ?? [:]
        }
        throw Failure(description: "the browser has ended during \(method)")
    }

    /// Opens a page.
    func open(_ url: URL) async throws -> Tab {
        let target = try await call("Target.createTarget", ["url": "about:blank"], session: nil)["targetId"] as? String ?? ""
        let session = try await call("Target.attachToTarget", ["targetId": target, "flatten": true], session: nil)["sessionId"] as? String
        let tab = Tab(browser: self, session: session ?? "")
        try await tab.go(to: url)
        return tab
    }
}

/// A page in a browser.
final class Tab {
    let browser: Browser
    let session: String

    init(browser: Browser, session: String) { (self.browser, self.session) = (browser, session) }

    func go(to url: URL) async throws {
        _ = try await browser.call("Page.navigate", ["url": url.absoluteString], session: session)
        try await wait("document.readyState === 'complete' && location.href === '\(url.absoluteString)'")
    }

    /// Evaluates an expression of JavaScript.
    @discardableResult
    func evaluate(_ script: String) async throws -> Any? {
        let result = try await browser.call(
            "Runtime.evaluate", ["expression": script, "returnByValue": true, "awaitPromise": true], session: session)
        if let exception = result["exceptionDetails"] { throw Browser.Failure(description: "\(script): \(exception)") }
        return (result["result"] as? [String: Any])?["value"]
    }

    /// Waits until an expression is true.
    func wait(_ script: String) async throws {
        try await until("in the browser: \(script)") { (try? await evaluate("Boolean(\(script))")) as? Bool == true }
    }

    /// Clicks the middle of an element with the mouse, once there is one.
    func click(_ selector: String) async throws { try await until("\(selector) is clicked") { try await clickIfPresent(selector) } }

    /// Clicks until a condition holds: a click is lost if the page moves or replaces the element between its parts.
    func click(_ selector: String, until wish: String, _ holds: () async throws -> Bool) async throws {
        try await until(wish) {
            _ = try await clickIfPresent(selector)
            try await evaluate("new Promise(done => setTimeout(done, 300))")
            return try await holds()
        }
    }

    /// Clicks the middle of an element; returns whether there is one.
    private func clickIfPresent(_ selector: String) async throws -> Bool {
        let place =
            try await evaluate(
                """
                (() => { const element = document.querySelector(`\(selector)`); if (!element) return null;
                element.scrollIntoView({ block: 'nearest' });
                const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()
                """) as? [Double]
        guard let place, place.count == 2 else { return false }
        for type in ["mousePressed", "mouseReleased"] {
            _ = try await browser.call(
                "Input.dispatchMouseEvent", ["type": type, "x": place[0], "y": place[1], "button": "left", "clickCount": 1],
                session: session)
        }
        return true
    }

    /// Presses a key.
    func press(_ key: String) async throws {
        for type in ["keyDown", "keyUp"] {
            var parameters: [String: Any] = ["type": type, "key": key, "code": key]
            if key.count == 1, type == "keyDown" { parameters["text"] = key }
            _ = try await browser.call("Input.dispatchKeyEvent", parameters, session: session)
        }
    }

    /// Chooses an option of a list, as the keyboard does.
    func choose(_ value: String, in selector: String) async throws {
        try await evaluate(
            """
            (() => { const list = document.querySelector(`\(selector)`); list.value = '\(value)';
            list.dispatchEvent(new Event('change', { bubbles: true })); })()
            """)
    }

    /// Gives the window a size, and the system a setting for colors.
    func resize(width: Int, height: Int, mode: String) async throws {
        _ = try await browser.call(
            "Emulation.setDeviceMetricsOverride", ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": false],
            session: session)
        _ = try await browser.call(
            "Emulation.setEmulatedMedia", ["features": [["name": "prefers-color-scheme", "value": mode]]], session: session)
        try await wait("innerWidth === \(width)")
    }

    /// Waits until nothing of the page ends beyond the window.
    func waitUntilItFits() async throws {
        try await wait(
            """
            document.documentElement.scrollWidth <= innerWidth
                && Array.from(document.querySelectorAll('header *, .heading *, #columns *, .row, #item *')).every(element => {
                    const box = element.getBoundingClientRect(); return box.width <= 1 || box.right <= innerWidth + 1; })
            """)
    }

    /// Saves a picture of the window in the directory that `STOREHOUSE_SCREENSHOTS` names, if it names one.
    func screenshot(_ name: String) async throws {
        guard let directory = ProcessInfo.processInfo.environment["STOREHOUSE_SCREENSHOTS"] else { return }
        let picture = try await browser.call("Page.captureScreenshot", ["format": "png"], session: session)["data"] as? String ?? ""
        let url = URL(filePath: directory, directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        try (Data(base64Encoded: picture) ?? Data()).write(to: url.appending(path: name + ".png"))
    }

    /// Whether an expression is true now.
    func shows(_ script: String) async throws -> Bool { try await evaluate("Boolean(\(script))") as? Bool == true }

    func text(_ selector: String) async throws -> String {
        try await evaluate("document.querySelector(`\(selector)`)?.textContent ?? ''") as? String ?? ""
    }
}
