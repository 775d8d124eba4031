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
            results[source.identifier] = Result { () throws(TextStoreError) in
                do throws(TextStoreError) {
                    let data = try data(of: file, in: bundle)
                    let text = try TextValidation.text(of: data, source.emptiness)
                    return SessionState.BundledText(
                        text: text, digest: VersionedText.digest(of: text), fileDigest: data.withUnsafeBytes { SHA256.digest(of: $0) })
                } catch {
                    throw TextStoreError(
                        .unreadableBundleFile, identifier: source.identifier, "cannot read “\(file.path)” of the bundle: \(error.message)",
                        underlyingError: error.underlyingError)
                }
            }
        }
        return results
    }

    /// Reads the manifest of the bundled texts; a file that cannot be used is reported and counts as none.
    @concurrent
    static func manifest(of source: VersionSource, in bundle: Bundle) async -> (VersionManifest?, TextStoreError?) {
        guard let file = source.bundleFile else { return (nil, nil) }
        do throws(TextStoreError) {
            // The app's own file needs no limit, and the app could not raise one.
            let manifest = try VersionManifest(parsing: try data(of: file, in: bundle), mode: source.mode, limit: .max)
            // The bundle is for all devices of its app version, so conditions there are a mistake.
            return (manifest.chosen(for: nil, on: nil, at: .distantPast), nil)
        } catch {
            return (
                nil,
                TextStoreError(
                    .unreadableBundleFile, "cannot read the manifest “\(file.path)” of the bundle: \(error.message)",
                    underlyingError: error.underlyingError)
            )
        }
    }

    private static func data(of file: BundleFile, in bundle: Bundle) throws(TextStoreError) -> Data {
        guard let url = file.url(in: bundle) else {
            throw TextStoreError(.unreadableBundleFile, "the file does not exist; add it to the target's resources")
        }
        do { return try Data(contentsOf: url) } catch {
            throw TextStoreError(.unreadableBundleFile, "the file cannot be opened; check its permissions", underlyingError: error)
        }
    }
}
