/// The files of a text in several languages, and the language that the others fall back to.
///
/// ```swift
/// let languages = TextLanguages(
///     [
///         "en": TextLanguages.Files(bundleFile: BundleFile(fileName: "eula-en")),
///         "de": TextLanguages.Files(bundleFile: BundleFile(fileName: "eula-de")),
///     ], development: "en")
/// let eula = TextSource(identifier: "eula", languages: languages)
/// ```
///
/// Each language is a text of its own, named `identifier/tag` in manifests: `eula/de`. It has its own version, floor, and record.
///
/// <doc:Languages> explains the choice of a language.
public struct TextLanguages: Hashable, Sendable {
    /// The files by the tags of their languages, such as `de` and `de-AT`.
    public var files: [String: Files]
    /// The language that is used if none of the preferred ones exists; it must have files.
    public var development: String
    /// The languages that replace a missing language before the development language does, such as `gsw` by `de`.
    public var fallbacks: [String: String]

    /// The largest number of languages of a text, and of preferred languages.
    static let limit = 1_000

    /// The files of a text in one language.
    public struct Files: Hashable, Sendable {
        /// The file in the app's bundle.
        public var bundleFile: BundleFile?
        /// The file on the server; a manifest may give another address.
        public var remoteFile: RemoteFile?

        /// Makes the files of one language.
        ///
        /// - Parameters:
        ///   - bundleFile: The file in the app's bundle.
        ///   - remoteFile: The file on the server.
        public init(bundleFile: BundleFile? = nil, remoteFile: RemoteFile? = nil) {
            self.bundleFile = bundleFile
            self.remoteFile = remoteFile
        }
    }

    /// Makes the languages of a text. The store checks them at the registration of the text.
    ///
    /// - Parameters:
    ///   - files: The files by the tags of their languages (BCP 47), 1 000 at most.
    ///   - development: The language that is used if none of the preferred ones exists.
    ///   - fallbacks: The languages that replace a missing language before the development language does.
    public init(_ files: [String: Files], development: String, fallbacks: [String: String] = [:]) {
        self.files = files
        self.development = development
        self.fallbacks = fallbacks
    }

    /// Returns the usual spelling of a language tag, which manifests use.
    ///
    /// - Throws: ``TextStoreError/Code/invalidLanguage``.
    package static func usualTag(_ tag: String) throws(TextStoreError) -> String { try LanguageTag(tag).description }
}

/// The checked languages of a text, and the pure choice among them.
struct LanguageChoice: Hashable, Sendable {
    let files: [LanguageTag: TextLanguages.Files]
    private let development: LanguageTag
    private let fallbacks: [LanguageTag: LanguageTag]

    init(_ languages: TextLanguages) throws(TextStoreError) {
        guard !languages.files.isEmpty else { throw .invalidLanguage("it has none; list the files of at least one language") }
        guard languages.files.count <= TextLanguages.limit else {
            throw .invalidLanguage("\(languages.files.count) exceed the limit of \(TextLanguages.limit); divide them among several texts")
        }
        var files: [LanguageTag: TextLanguages.Files] = [:]
        for (name, found) in languages.files.sorted(by: { $0.key < $1.key }) {
            let tag = try LanguageTag(name)
            guard files.updateValue(found, forKey: tag) == nil else { throw .invalidLanguage("\(tag) is listed twice; list it once") }
        }
        development = try LanguageTag(languages.development)
        guard files[development] != nil else {
            throw .invalidLanguage("the development language \(development) has no files; list them, or name another language")
        }
        var fallbacks: [LanguageTag: LanguageTag] = [:]
        for (from, to) in languages.fallbacks.sorted(by: { $0.key < $1.key }) { fallbacks[try LanguageTag(from)] = try LanguageTag(to) }
        for start in fallbacks.keys.sorted(by: { $0.description < $1.description }) {
            var seen: Set<LanguageTag> = [], next = fallbacks[start]
            while let tag = next {
                guard seen.insert(tag).inserted else {
                    throw .invalidLanguage("the fallbacks of \(start) lead back to \(tag); remove one of them")
                }
                next = Self.fallback(of: tag, in: fallbacks)
            }
        }
        (self.files, self.fallbacks) = (files, fallbacks)
    }

    /// Returns the fallback of a language, or of the longest of its parents that has one.
    private static func fallback(of tag: LanguageTag, in fallbacks: [LanguageTag: LanguageTag]) -> LanguageTag? {
        fallbacks.isEmpty ? nil : tag.lookups.lazy.compactMap { fallbacks[$0] }.first
    }

    /// Returns the languages to try, the best first; each is listed, and the last one is the development language.
    ///
    /// Each preferred language is looked up as RFC 4647 §3.4 states, followed by its fallbacks. If none is listed, a dialect of a preferred
    /// language, in the same script if there is one, precedes the development language.
    ///
    /// - Complexity: O(n), where n is the number of preferred languages, and of listed languages if no preferred one is listed.
    func chain(for preferred: [LanguageTag]) -> [LanguageTag] {
        var chain: [LanguageTag] = [], seen: Set<LanguageTag> = []
        func add(_ tag: LanguageTag) { if files[tag] != nil, seen.insert(tag).inserted { chain.append(tag) } }
        for range in preferred {
            var next: LanguageTag? = range
            while let tag = next {
                tag.lookups.forEach(add)
                next = Self.fallback(of: tag, in: fallbacks)
            }
        }
        if chain.isEmpty {
            let listed = Dictionary(grouping: files.keys.sorted { $0.description < $1.description }, by: \.language)
            for range in preferred {
                guard let dialects = listed[range.language] else { continue }
                if let dialect = dialects.first(where: { $0.script == range.script }) ?? dialects.first { add(dialect) }
            }
        }
        add(development)
        return chain
    }

    static func preferred(_ names: [String]) throws(TextStoreError) -> [LanguageTag] {
        guard !names.isEmpty else {
            throw .invalidLanguage("no language is preferred; pass at least one, such as those of Locale.preferredLanguages")
        }
        guard names.count <= TextLanguages.limit else {
            throw .invalidLanguage("\(names.count) preferred ones exceed the limit of \(TextLanguages.limit); pass the first few")
        }
        return try names.map { name throws(TextStoreError) in try LanguageTag(name) }
    }
}

extension TextStoreError {
    fileprivate static func invalidLanguage(_ reason: String) -> TextStoreError {
        TextStoreError(.invalidLanguage, "cannot use the languages: \(reason)")
    }
}
