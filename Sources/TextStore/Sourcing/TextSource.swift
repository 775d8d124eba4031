public import Foundation

/// The sources of one text: a file of the app's bundle, a file on a server, or both.
///
/// ```swift
/// let eula = TextSource(
///     identifier: "eula",
///     bundleFile: BundleFile(fileName: "eula", fileExtension: "txt"),
///     remoteFile: RemoteFile(url: base.appending(path: "eula.txt")))
/// ```
///
/// <doc:GettingStarted> lists the sources of an app.
public struct TextSource: Hashable, Sendable, TextSourceProvider {
    /// The name of the text in the session and in manifests; any string except the empty one.
    ///
    /// Names that are canonically equivalent in Unicode, such as two spellings of `é`, are one name.
    public var identifier: String
    /// The file in the app's bundle.
    public var bundleFile: BundleFile?
    /// The file on the server; a manifest may give another address.
    public var remoteFile: RemoteFile?
    /// The set that the text is fetched and switched with; a manifest may name another one.
    public var group: String?
    /// Whether the text may be empty.
    public var emptiness: Emptiness
    /// The files in several languages; `nil` for a text in one language, which has the files above.
    public var languages: TextLanguages?

    /// Whether a text may be empty.
    public enum Emptiness: Hashable, Sendable {
        /// An empty response is a failure of the server.
        case refused
        /// An empty response is a text, and replaces the older one.
        case allowed
    }

    /// Makes a source.
    ///
    /// - Parameters:
    ///   - identifier: The name of the text in the session and in manifests.
    ///   - bundleFile: The file in the app's bundle.
    ///   - remoteFile: The file on the server.
    ///   - group: The set that the text is fetched and switched with.
    ///   - emptiness: Whether the text may be empty.
    public init(
        identifier: String, bundleFile: BundleFile? = nil, remoteFile: RemoteFile? = nil, group: String? = nil,
        emptiness: Emptiness = .refused
    ) {
        self.identifier = identifier
        self.bundleFile = bundleFile
        self.remoteFile = remoteFile
        self.group = group
        self.emptiness = emptiness
    }

    /// Makes the source of a text in several languages.
    ///
    /// - Parameters:
    ///   - identifier: The name of the text in the session. In manifests, each language is named `identifier/tag`.
    ///   - languages: The files by language.
    ///   - group: The set that all languages of the text are fetched and switched with.
    ///   - emptiness: Whether the text may be empty.
    public init(identifier: String, languages: TextLanguages, group: String? = nil, emptiness: Emptiness = .refused) {
        self.init(identifier: identifier, group: group, emptiness: emptiness)
        self.languages = languages
    }

    /// The source itself, so that an app without an enum of its texts can pass it.
    public var textSource: TextSource { self }
    /// The identifier, which the source already has.
    public var textIdentifier: String { identifier }
}

/// A type with a text's source: an enum of an app's texts, or `TextSource` itself.
///
/// ```swift
/// enum Legal: String, TextSourceProvider, CaseIterable {
///     case eula, privacy
///
///     var textSource: TextSource {
///         TextSource(
///             identifier: rawValue,
///             bundleFile: BundleFile(fileName: rawValue, fileExtension: "txt"))
///     }
/// }
/// ```
///
/// <doc:GettingStarted> lists the sources of an app.
public protocol TextSourceProvider: Sendable {
    /// The sources from which the text is loaded: bundle, server, or both.
    var textSource: TextSource { get }

    /// The source's identifier, which each read needs; string enums return their raw value.
    var textIdentifier: String { get }
}

extension TextSourceProvider {
    /// The default: the identifier of `textSource`, so each read makes the source.
    public var textIdentifier: String { textSource.identifier }
}

extension TextSourceProvider where Self: RawRepresentable, RawValue == String {
    /// The raw value, which must be the source's identifier.
    public var textIdentifier: String { rawValue }
}

/// A reference to a file in the app's bundle, by name.
public struct BundleFile: Hashable, Sendable {
    /// The name without its extension and without a directory.
    public var fileName: String
    /// The extension without its dot; `nil` for a file without one.
    public var fileExtension: String?
    /// The subdirectory in the bundle; `nil` for the bundle's top directory of resources.
    public var subdirectory: String?

    /// Makes a reference to a file in a bundle.
    ///
    /// - Parameters:
    ///   - fileName: The name without its extension.
    ///   - fileExtension: The extension without its dot.
    ///   - subdirectory: The subdirectory in the bundle.
    public init(fileName: String, fileExtension: String? = nil, subdirectory: String? = nil) {
        self.fileName = fileName
        self.fileExtension = fileExtension
        self.subdirectory = subdirectory
    }

    /// The path with subdirectory and extension, for messages.
    var path: String {
        (subdirectory.map { $0 + "/" } ?? "") + fileName + (fileExtension.map { "." + $0 } ?? "")
    }
}

/// A file on a server, with the rules for its request and response.
public struct RemoteFile: Hashable, Sendable {
    /// The address of the file; a manifest may give another one.
    public var url: URL
    /// Header fields of the request, such as an API key.
    public var headers: [String: String]
    /// The largest number of decoded bytes in the body, 1 000 000 by default; further bytes are not read.
    public var limit: Int
    /// Accepted media types besides `text/*`. `text/html`, and `text/markdown` that begins with HTML, are accepted only if listed here.
    public var mediaTypes: Set<String>
    /// The required number of bytes; set from a manifest.
    public var expectedLength: Int?
    /// Whether caches in front of the server may respond.
    public var caching: Caching

    /// Whether caches in front of a server may respond.
    public enum Caching: Hashable, Sendable {
        /// They respond by their own rules; suitable if a digest protects the bytes.
        case allowed
        /// They revalidate with the origin first (`Cache-Control: no-cache`).
        case revalidated
    }

    /// Makes a reference to a file on a server.
    ///
    /// - Parameters:
    ///   - url: The address.
    ///   - headers: Header fields of the request.
    ///   - limit: The largest number of decoded bytes in the body.
    ///   - mediaTypes: Accepted media types besides `text/*`.
    public init(url: URL, headers: [String: String] = [:], limit: Int = 1_000_000, mediaTypes: Set<String> = []) {
        self.url = url
        self.headers = headers
        self.limit = limit
        self.mediaTypes = mediaTypes
        expectedLength = nil
        caching = .revalidated
    }
}

/// A response of a server with unverified bytes.
public struct RemoteText: Hashable, Sendable {
    /// The bytes without content coding, including a byte order mark.
    public var bytes: Data
    /// The `Content-Type` field, verbatim; `nil` if the response has none, which is refused by default.
    public var contentType: String?
    /// The header fields, for a verifier that reads a signature from one; names in any case.
    public var headers: [String: String]

    /// Makes a response.
    ///
    /// - Parameters:
    ///   - bytes: The decoded bytes.
    ///   - contentType: The `Content-Type` field, verbatim.
    ///   - headers: The header fields, for a verifier that reads a signature from one.
    public init(bytes: Data, contentType: String?, headers: [String: String] = [:]) {
        self.bytes = bytes
        self.contentType = contentType
        self.headers = headers
    }
}

/// The manifests with the versions of a session's texts: one in the bundle for the bundled texts, and one on a server for the newest ones.
///
/// <doc:GettingStarted> lists versions, and <doc:VersionsAndManifests> explains them.
public struct VersionSource: Hashable, Sendable {
    /// The manifest of the texts in the bundle.
    public var bundleFile: BundleFile?
    /// The manifest of the texts on the server.
    public var remoteFile: RemoteFile?
    /// The strictness of parsing versions of both manifests; strict by default.
    public var mode: SemanticVersion.Mode
    /// Whether pre-releases from the server are accepted.
    public var preReleases: PreReleases
    /// The facts that conditions in the server's manifest require; `nil` takes no text with conditions.
    public var audience: TextAudience?

    /// Whether pre-releases from the server are accepted.
    public enum PreReleases: Hashable, Sendable {
        /// An entry with a pre-release is reported and ignored.
        case refused
        /// Pre-releases are treated as other versions.
        case allowed
    }

    /// Makes a version source.
    ///
    /// - Parameters:
    ///   - bundleFile: The manifest of the texts in the bundle.
    ///   - remoteFile: The manifest of the texts on the server.
    ///   - mode: The strictness of parsing versions.
    ///   - preReleases: Whether pre-releases from the server are accepted.
    ///   - audience: The facts that conditions in the server's manifest ask for.
    public init(
        bundleFile: BundleFile? = nil, remoteFile: RemoteFile? = nil, mode: SemanticVersion.Mode = .strict,
        preReleases: PreReleases = .refused, audience: TextAudience? = nil
    ) {
        (self.bundleFile, self.remoteFile) = (bundleFile, remoteFile)
        (self.mode, self.preReleases, self.audience) = (mode, preReleases, audience)
    }
}
