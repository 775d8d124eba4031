import Foundation
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// Sessions with many observed texts: an event of one text costs the others nothing.
struct CrowdedSessionTests {
    private static let names = (0..<200).map { "text-\($0)" }
    private let place: TemporaryDirectory
    private let time = CountingTime()

    init() throws { place = try TemporaryDirectory() }

    @Test func `fetching two hundred observed texts reads the clock a few times per text`() async throws {
        let names = Self.names
        let manifest = "{" + names.map { #""\#($0)":"1.0.0""# }.joined(separator: ",") + "}"
        let base = try #require(URL(string: "https://example.org/"))
        let store = try TextStore(
            session: "many", directory: place.file("state"), bundle: try place.bundle("none", [:]),
            fetcher: RevalidatingClosureFetcher { file, _ in
                let name = file.url.lastPathComponent
                return text(name == "versions.json" ? manifest : "Text of \(name)")
            }, time: time)
        let sources = names.map { TextSource(identifier: $0, remoteFile: RemoteFile(url: base.appending(path: $0))) }
        try await store.register(sources)
        let observers = sources.map { source in
            Task {
                for await state in store.publish(source) { if case .completed(let text, _, _) = state { return text.text } }
                return ""
            }
        }
        try await store.session.wait { $0.observers.count == names.count ? () : nil }
        time.reset()
        await store.setVersionSource(VersionSource(remoteFile: RemoteFile(url: base.appending(path: "versions.json"))))
        for (name, observer) in zip(names, observers) { #expect(await observer.value == "Text of \(name)") }
        // Each evaluation of an observed text reads the clock, and so does each of its own steps.
        #expect(time.count < 60 * names.count)
    }

    @Test func `a change of one text keeps the quiet periods of the others`() async throws {
        let base = try #require(URL(string: "https://example.org/"))
        let store = try TextStore(
            session: "quiet", directory: place.file("state"), bundle: try place.bundle("none", [:]),
            fetcher: RevalidatingClosureFetcher { file, _ in text("Text of \(file.url.lastPathComponent)") },
            policy: TextStorePolicy(textExpiry: .seconds(60)), time: time)
        let sources = ["one", "other"].map { TextSource(identifier: $0, remoteFile: RemoteFile(url: base.appending(path: $0))) }
        try await store.register(sources)
        for source in sources { _ = try await store.text(for: source, awaiting: patient) }
        for source in sources { _ = try await store.text(for: source) }
        let session = store.session
        #expect(session.read { $0.quiet("one") != nil && $0.quiet("other") != nil })
        session.update { $0.setFlight(1, of: "text/one") }
        #expect(session.read { $0.quiet("one") == nil && $0.quiet("other") != nil })
        session.update { $0.invalidateResolutions() }
        #expect(session.read { $0.quiet("other") == nil })
    }
}

private func text(_ text: String) -> FetchResult<RemoteText> { .modified(RemoteText(bytes: Data(text.utf8), contentType: "text/plain")) }

/// Counts the reads of the date.
private final class CountingTime: TimeSource {
    private let manual = ManualTime()
    private let reads = Lock(0)

    var count: Int { reads.withLock { $0 } }

    func reset() { reads.withLock { $0 = 0 } }

    var now: MonotonicInstant { manual.now }

    var date: Date {
        reads.withLock { $0 += 1 }
        return manual.date
    }

    func sleep(until deadline: MonotonicInstant) async throws { try await manual.sleep(until: deadline) }
}
