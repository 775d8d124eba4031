internal import Foundation
internal import StorePlatform

/// Reads the files of the app's bundle.
enum BundleReading {
    /// Reads the bundled texts, off the caller's actor.
    @concurrent
    static func texts(
        of sources: [TextSource], in bundle: Bundle
    ) async -> [String: Result<SessionState.BundledText, TextStoreError>] {
        var results: [String: Result<SessionState.BundledText, TextStoreError>] = [:]
        for source in sources {
            guard let file = source.bundleFile else { continue }
            results[source.identifier] = read(file, in: bundle, "“\(file.path)”", of: source.identifier) { data throws(TextStoreError) in
                let text = try TextValidation.text(of: data, source.emptiness)
                return SessionState.BundledText(
                    text: text, digest: VersionedText.digest(of: text), fileDigest: data.withUnsafeBytes { SHA256.digest(of: $0) })
            }
        }
        return results
    }

    /// Reads the manifest of the bundled texts; `nil` if the source names none.
    @concurrent
    static func manifest(of source: VersionSource, in bundle: Bundle) async -> Result<VersionManifest, TextStoreError>? {
        guard let file = source.bundleFile else { return nil }
        return read(file, in: bundle, "the manifest “\(file.path)”") { data throws(TextStoreError) in
            // The app's own file needs no limit, and the app could not raise one.
            let manifest = try VersionManifest(parsing: data, mode: source.mode, limit: .max)
            // The bundle is for all devices of its app version, so conditions there are a mistake.
            return manifest.chosen(for: nil, on: nil, at: .distantPast)
        }
    }

    private static func read<Value>(
        _ file: BundleFile, in bundle: Bundle, _ name: String, of identifier: String? = nil,
        _ body: (Data) throws(TextStoreError) -> Value
    ) -> Result<Value, TextStoreError> {
        func fault(_ reason: String, _ cause: (any Error)? = nil) -> Result<Value, TextStoreError> {
            let message = "cannot read \(name) of the bundle: \(reason)"
            return .failure(TextStoreError(.unreadableBundleFile, identifier: identifier, message, underlyingError: cause))
        }
        guard let url = bundle.url(forResource: file.fileName, withExtension: file.fileExtension, subdirectory: file.subdirectory) else {
            return fault("the file does not exist; add it to the target's resources")
        }
        let data: Data
        do { data = try Data(contentsOf: url) } catch { return fault("the file cannot be opened; check its permissions", error) }
        do throws(TextStoreError) { return .success(try body(data)) } catch { return fault(error.message, error.underlyingError) }
    }
}
