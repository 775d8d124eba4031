import Foundation
import LoopbackOrigin
import TextStore

/// An app's gate: it opens after the user has accepted the current terms.
struct Gate {
    let screen: Screen
    let options: Options

    struct Options {
        var accepts = false
        var isOffline = false
        var isFresh = false
    }

    /// The directory of texts and acceptances. Acceptances are evidence, so the system must not purge it.
    static var directory: URL { TextStore.defaultDirectory.appending(path: "storehouse-terms", directoryHint: .isDirectory) }

    func open() async throws {
        if options.isFresh, FileManager.default.fileExists(atPath: Self.directory.path(percentEncoded: false)) {
            try FileManager.default.removeItem(at: Self.directory)
        }
        let publisher = options.isOffline ? nil : try Publisher()
        defer { publisher?.origin.stop() }
        let base = try publisher?.origin.url ?? offlineAddress()
        screen.title(
            "Terms",
            publisher.map { "an app's gate; the publisher is a server in this process, at \($0.origin.url)" }
                ?? "an app's gate, without network")

        let store = try TextStore(
            session: "terms", directory: Self.directory, bundle: .module, policy: TextStorePolicy(checkInterval: .zero),
            onEvent: { [screen] event in
                if case .fault(let fault) = event { screen.warning("\(fault)") }
            })
        let terms = TextSource(
            identifier: "terms", bundleFile: BundleFile(fileName: "terms", fileExtension: "txt", subdirectory: "Texts"),
            remoteFile: RemoteFile(url: base.appending(path: "terms.txt")))
        try await store.register(terms)
        await store.setVersionSource(
            VersionSource(
                bundleFile: BundleFile(fileName: "versions", fileExtension: "json", subdirectory: "Texts"),
                remoteFile: RemoteFile(url: base.appending(path: "versions.json"))))

        let first = try await store.text(for: terms)
        screen.good("available at once: \(name(first))")
        screen.note("asking the publisher for a newer version")
        let newest = try await store.text(for: terms, awaiting: .remote(timeout: .seconds(3)))
        if let reason = newest.fallbackReason {
            screen.warning("the publisher cannot be reached (\(reason.code.rawValue)), so the gate uses version \(version(newest))")
        }
        try await pass(store, terms, from: first, to: newest)
    }

    private func pass(_ store: TextStore, _ terms: TextSource, from first: VersionedText, to newest: VersionedText) async throws {
        // Unreadable acceptances count as missing, so the gate asks again.
        let accepted = try? await store.acceptance(of: terms)
        if newest.version != first.version {
            screen.good("now available: \(name(newest)); changes since \(version(first)):")
            screen.show(LineDifference(from: first.text, to: newest.text))
        } else if newest.fallbackReason == nil {
            screen.good("the publisher has nothing newer than \(version(newest))")
        }
        // Accepts exactly the shown text, because a newer one may become current while the user reads it.
        guard await store.needsAcceptance(of: newest, granularity: .minor) else {
            let date = accepted.map { $0.date.formatted(.iso8601) } ?? ""
            screen.good("version \(accepted?.version?.description ?? "?") was accepted at \(date): the gate is open\n")
            return
        }
        if newest.version == first.version { screen.show(newest) }
        let isAccepted = options.accepts || (screen.canAsk && screen.ask("Do you accept version \(version(newest))?"))
        guard isAccepted else {
            screen.warning("version \(version(newest)) is not accepted: the gate stays closed; accept with swift run terms --accept\n")
            return
        }
        try await store.accept(newest)
        screen.good("version \(version(newest)) is accepted, and the acceptance is saved: the gate is open\n")
    }

    private func name(_ text: VersionedText) -> String {
        let origin =
            switch text.origin {
            case .bundle: "which came with the app"
            case .cache: "saved by an earlier start"
            case .remote: text.isVerified ? "from the publisher, with the digest of its manifest" : "from the publisher"
            }
        return "version \(version(text)), \(origin)"
    }

    private func version(_ text: VersionedText) -> String { text.version?.description ?? "without a number" }

    /// Returns the publisher's usual address, where no server listens.
    private func offlineAddress() throws -> URL {
        guard let url = URL(string: "http://127.0.0.1:\(Publisher.usualPort)") else { throw CocoaError(.fileNoSuchFile) }
        return url
    }
}
