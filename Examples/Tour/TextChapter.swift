import Foundation
import LoopbackOrigin
import StoreCore
import TextStore

/// A versioned text: an observer sees bundled 1.0.0 give way to 1.1.0, which stays when the origin is down.
struct TextChapter {
    let stage: Stage
    let bookshop: Bookshop
    let directory: URL

    func run() async throws {
        stage.chapter("A text goes from bundled 1.0.0 to remote 1.1.0, and stays without a network")
        bookshop.publishTerms(waits: true)
        let bundle = try makeBundle()
        let texts = try makeStore(bundle)
        try await texts.register(terms)
        await texts.setVersionSource(versions)
        var observer = ShownObserver(texts.publish(terms), on: stage, describe: Self.describe)
        let first = try await observer.follow { $0.content != nil }
        stage.check("the bundled text is shown at once", first.content?.version == SemanticVersion("1.0.0"))
        bookshop.sendTerms()
        let newest = try await observer.follow { $0.isCompleted && $0.content?.version == SemanticVersion("1.1.0") }
        stage.check("then the origin's text, with its digest verified", newest.content?.isVerified == true)
        bookshop.origin.goDown()
        stage.note("down: a second store opens the same directory")
        let later = try makeStore(bundle)
        try await later.register(terms)
        await later.setVersionSource(versions)
        let kept = try await later.text(for: terms)
        stage.check("the newer text is available without a network", kept.version == SemanticVersion("1.1.0"))
        try bookshop.origin.comeBack()
    }

    var terms: TextSource {
        TextSource(identifier: "terms", bundleFile: BundleFile(fileName: "terms", fileExtension: "txt"))
    }

    var versions: VersionSource {
        VersionSource(
            bundleFile: BundleFile(fileName: "versions", fileExtension: "json"),
            remoteFile: RemoteFile(url: bookshop.origin.url.appending(path: "texts/versions.json"), mediaTypes: ["application/json"]))
    }

    func makeStore(_ bundle: Bundle) throws -> TextStore {
        try TextStore(session: "tour", directory: directory.appending(path: "texts"), bundle: bundle)
    }

    /// Makes the bundle that the app ships with.
    func makeBundle() throws -> Bundle {
        let place = directory.appending(path: "bundle")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        try Data("A book is yours for two weeks.".utf8).write(to: place.appending(path: "terms.txt"))
        try Data(#"{ "terms": "1.0.0" }"#.utf8).write(to: place.appending(path: "versions.json"))
        guard let bundle = Bundle(path: place.path(percentEncoded: false)) else { throw CocoaError(.fileNoSuchFile) }
        return bundle
    }

    private static func describe(_ text: VersionedText) -> String {
        "\(text.version?.description ?? "no version") from the \(text.origin.rawValue): \(text.text)"
    }
}
