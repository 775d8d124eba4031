import Foundation
import TextStore

/// The texts that an app registers: their languages, and their files in the app's bundle.
///
/// An app lists its texts in code; this program reads them from a manifest.
struct Catalog: Equatable {
    /// The languages of each text; none for a text in one language.
    private(set) var texts: [String: [String]] = [:]
    /// The bundled files by the names of the manifest: `eula`, or `eula/de` for a language.
    private(set) var files: [String: BundleFile] = [:]

    init(of names: some Sequence<String>) {
        for name in names {
            let slash = name.lastIndex(of: "/")
            let tag = slash.map { String(name[name.index(after: $0)...]) }
            if let slash, let tag, slash > name.startIndex, (try? TextLanguages.usualTag(tag)) == tag {
                texts[String(name[..<slash]), default: []].append(tag)
            } else if texts[name] == nil {
                texts[name] = []
            }
        }
    }

    /// Reads a directory that `terms publish` has prepared, as the bundle of an app.
    init(bundledIn directory: URL) throws {
        let bytes = try Data(contentsOf: directory.appending(path: "versions.json"))
        let manifest = try ManifestFile(reading: bytes)
        self.init(of: try Self.names(in: bytes))
        for (name, entries) in manifest.texts {
            guard let path = entries.all.last?.url?.removingPercentEncoding else { continue }
            var parts = path.split(separator: "/")
            guard let file = parts.popLast(), let dot = file.lastIndex(of: ".") else { continue }
            files[name] = BundleFile(
                fileName: String(file[..<dot]), fileExtension: String(file[file.index(after: dot)...]),
                subdirectory: parts.isEmpty ? nil : parts.joined(separator: "/"))
        }
    }

    /// Returns the names in a manifest, at least one, even those of entries that a store would refuse.
    static func names(in manifest: Data) throws(Mistake) -> [String] {
        guard let object = try? JSONSerialization.jsonObject(with: manifest) as? [String: Any] else {
            throw Mistake("the manifest is no JSON object, or a part of one; upload it again, or publish it with terms publish")
        }
        let names = (object["texts"] as? [String: Any] ?? object).keys.sorted()
        // A gate without texts would be open.
        guard !names.isEmpty else { throw Mistake("the manifest lists no texts; publish them with terms publish") }
        return names
    }

    /// Returns the sources of the texts of a server.
    func sources(beside manifest: URL) -> [TextSource] {
        let base = manifest.deletingLastPathComponent()
        func remote(_ name: String) -> RemoteFile {
            RemoteFile(url: base.appending(path: name + ".txt"), mediaTypes: ["text/markdown"])
        }
        return texts.sorted { $0.key < $1.key }.map { identifier, tags in
            guard let development = tags.contains("en") ? "en" : tags.min() else {
                return TextSource(identifier: identifier, bundleFile: files[identifier], remoteFile: remote(identifier))
            }
            var languages: [String: TextLanguages.Files] = [:]
            for tag in tags {
                let name = "\(identifier)/\(tag)"
                languages[tag] = TextLanguages.Files(bundleFile: files[name], remoteFile: remote(name))
            }
            return TextSource(identifier: identifier, languages: TextLanguages(languages, development: development))
        }
    }
}
