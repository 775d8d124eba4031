public import Foundation

/// Where one text comes from: a file of the app's bundle, a file of a server, or both.
///
/// ```swift
/// let eula = TextSource(
///     identifier: "eula", bundleFile: BundleFile(fileName: "eula", fileExtension: "txt"),
///     remoteFile: RemoteFile(url: base.appending(path: "eula.txt")))
/// ```
public struct TextSource: Hashable, Sendable, TextSourceProvider {
    /// What names the text in the session and in manifests; anything but empty.
    public var identifier: String
    /// The file of the app's bundle.
    public var bundleFile: BundleFile?
    /// The file of the server; a manifest may give another address.
    public var remoteFile: RemoteFile?
    /// The set that the text is fetched and switched with; a manifest may give another one.
    public var group: String?
    /// Whether an empty text is a text.
    public var emptiness: Emptiness

    /// Whether an empty text is a text.
    public enum Emptiness: Hashable, Sendable {
        /// An empty answer is a failure of the server.
        case refused
        /// The text may be empty.
        case allowed
    }

    /// Makes a source.
    ///
    /// - Parameters:
    ///   - identifier: What names the text in the session and in manifests.
    ///   - bundleFile: The file of the app's bundle.
    ///   - remoteFile: The file of the server.
    ///   - group: The set that the text is fetched and switched with.
    ///   - emptiness: Whether an empty text is a text.
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

    /// The source itself.
    public var textSource: TextSource { self }
    /// The source's identifier.
    public var textIdentifier: String { identifier }
}

/// What has a text's source: an enum of all texts of an app, or `TextSource` itself.
///
/// ```swift
/// enum Legal: String, TextSourceProvider, CaseIterable {
///     case eula, privacy
///
///     var textSource: TextSource {
///         TextSource(identifier: rawValue, bundleFile: BundleFile(fileName: rawValue, fileExtension: "txt"))
///     }
/// }
/// ```
public protocol TextSourceProvider: Sendable {
    /// Where the text comes from.
    var textSource: TextSource { get }

    /// The source's identifier, asked for at each read; enums of strings answer with their raw value.
    var textIdentifier: String { get }
}

extension TextSourceProvider {
    /// The source's identifier.
    public var textIdentifier: String { textSource.identifier }
}

extension TextSourceProvider where Self: RawRepresentable, RawValue == String {
    /// The raw value, which must be the source's identifier.
    public var textIdentifier: String { rawValue }
}

/// A file of a bundle.
public struct BundleFile: Hashable, Sendable {
    /// The name without extension.
    public var fileName: String
    /// The extension without its dot; `nil` where the file has none.
    public var fileExtension: String?
    /// The folder in the bundle.
    public var subdirectory: String?

    /// Names a file of a bundle.
    ///
    /// - Parameters:
    ///   - fileName: The name without extension.
    ///   - fileExtension: The extension without its dot.
    ///   - subdirectory: The folder in the bundle.
    public init(fileName: String, fileExtension: String? = nil, subdirectory: String? = nil) {
        self.fileName = fileName
        self.fileExtension = fileExtension
        self.subdirectory = subdirectory
    }

    /// Where the file stands; `nil` where the bundle has no such file.
    func url(in bundle: Bundle) -> URL? {
        bundle.url(forResource: fileName, withExtension: fileExtension, subdirectory: subdirectory)
    }

    /// The name for messages.
    var path: String {
        (subdirectory.map { $0 + "/" } ?? "") + fileName + (fileExtension.map { "." + $0 } ?? "")
    }
}

/// A file of a server, and what may be asked and expected of it.
public struct RemoteFile: Hashable, Sendable {
    /// The address.
    public var url: URL
    /// Fields that go with the request, such as an API key.
    public var headers: [String: String]
    /// How many bytes the answer may have, decoded; more are not read.
    public var limit: Int
    /// Media types that are taken beside `text/*`; `text/html`, and `text/markdown` that begins with HTML, only if listed here.
    public var mediaTypes: Set<String>
    /// How many bytes the answer must have; a manifest sets it.
    public var expectedLength: Int?
    /// Whether caches on the way may answer.
    public var caching: Caching

    /// Whether caches on the way may answer.
    public enum Caching: Hashable, Sendable {
        /// As their own rules say; right where a digest guards the bytes.
        case allowed
        /// Only after asking the origin (`Cache-Control: no-cache`).
        case revalidated
    }

    /// Names a file of a server.
    ///
    /// - Parameters:
    ///   - url: The address.
    ///   - headers: Fields that go with the request.
    ///   - limit: How many bytes the answer may have, decoded.
    ///   - mediaTypes: Media types that are taken beside `text/*`.
    public init(url: URL, headers: [String: String] = [:], limit: Int = 1_000_000, mediaTypes: Set<String> = []) {
        self.url = url
        self.headers = headers
        self.limit = limit
        self.mediaTypes = mediaTypes
        expectedLength = nil
        caching = .revalidated
    }
}

/// A response of a server: bytes that are not checked yet.
public struct RemoteText: Hashable, Sendable {
    /// The decoded bytes.
    public var bytes: Data
    /// The `Content-Type`, verbatim.
    public var contentType: String?
    /// The header fields, for a verifier that reads a signature from one; names in any case.
    public var headers: [String: String]

    /// Makes a response.
    ///
    /// - Parameters:
    ///   - bytes: The decoded bytes.
    ///   - contentType: The `Content-Type`, verbatim.
    ///   - headers: The header fields, for a verifier that reads a signature from one.
    public init(bytes: Data, contentType: String?, headers: [String: String] = [:]) {
        self.bytes = bytes
        self.contentType = contentType
        self.headers = headers
    }
}

/// Where the versions of all texts of a session come from: a manifest in the bundle for the bundled texts, one on a server for the newest.
public struct VersionSource: Hashable, Sendable {
    /// The manifest of the texts in the bundle.
    public var bundleFile: BundleFile?
    /// The manifest of the texts on the server.
    public var remoteFile: RemoteFile?
    /// How strictly versions are read.
    public var mode: SemanticVersion.Mode
    /// Whether pre-releases are taken from the server.
    public var preReleases: PreReleases

    /// Whether pre-releases are taken from the server.
    public enum PreReleases: Hashable, Sendable {
        /// An entry with a pre-release is reported and not used.
        case refused
        /// They are versions like others.
        case allowed
    }

    /// Makes a version source.
    ///
    /// - Parameters:
    ///   - bundleFile: The manifest of the texts in the bundle.
    ///   - remoteFile: The manifest of the texts on the server.
    ///   - mode: How strictly versions are read.
    ///   - preReleases: Whether pre-releases are taken from the server.
    public init(
        bundleFile: BundleFile? = nil, remoteFile: RemoteFile? = nil, mode: SemanticVersion.Mode = .strict,
        preReleases: PreReleases = .refused
    ) {
        self.bundleFile = bundleFile
        self.remoteFile = remoteFile
        self.mode = mode
        self.preReleases = preReleases
    }
}
