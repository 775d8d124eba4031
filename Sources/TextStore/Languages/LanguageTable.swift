internal import Foundation
import StoreCore

/// The texts in several languages: which languages each has, and which of them are in use.
///
/// Each language of a text is a member: a text of its own in the session, named `identifier/tag`. Everything but the choice among the
/// members is therefore that of any text: versions, floors, records, sets, and refreshes.
struct LanguageTable: Sendable {
    private struct Text: Sendable {
        let source: TextSource
        let choice: LanguageChoice
        /// The members in use, the best first; empty until their files have been read.
        var chain: [String] = []
    }

    private var preferred: [LanguageTag]
    /// The ticket of the last call that has set the preferred languages.
    private var lastCall: UInt64 = 0
    private var texts: [String: Text] = [:]
    /// The texts that the last switch did not include, so that the cost of a registration does not depend on the others.
    private var unsettled: Set<String> = []
    private var owners: [String: (identifier: String, language: String)] = [:]

    init(preferring preferred: [LanguageTag]) { self.preferred = preferred }

    static func member(_ identifier: String, _ tag: LanguageTag) -> String { "\(identifier)/\(tag)" }

    func owner(of member: String) -> (identifier: String, language: String?)? { owners[member].map { ($0.identifier, $0.language) } }

    /// Returns the members of a text that are in use; `nil` for a text in one language.
    func chain(of identifier: String) -> [String]? { texts[identifier]?.chain }

    /// Adds a text if it has several languages.
    ///
    /// - Throws: ``TextStoreError/Code/invalidLanguage`` or ``TextStoreError/Code/conflictingSource``; the table is then unchanged.
    mutating func add(_ source: TextSource, beside sources: [String: TextSource]) throws(TextStoreError) {
        let identifier = source.identifier
        guard let languages = source.languages, texts[identifier] == nil else { return }
        guard source.bundleFile == nil, source.remoteFile == nil else {
            throw TextStoreError(
                .invalidLanguage, identifier: identifier,
                "cannot register it: it has languages and files without a language; move the files to the development language")
        }
        let choice: LanguageChoice
        do throws(TextStoreError) { choice = try LanguageChoice(languages) } catch { throw error.about(identifier) }
        for tag in choice.files.keys.sorted(by: { $0.description < $1.description }) {
            let member = Self.member(identifier, tag)
            if sources[member] != nil { throw .occupied(member, by: identifier) }
            owners[member] = (identifier, tag.description)
        }
        texts[identifier] = Text(source: source, choice: choice)
        unsettled.insert(identifier)
    }

    /// Returns the sources of the members that are needed for preferred languages; `nil` for those of new texts in the current ones.
    func members(for preferred: [LanguageTag]?) -> [TextSource] {
        let texts = preferred == nil ? unsettled.compactMap { self.texts[$0] } : Array(self.texts.values)
        return texts.flatMap { text in text.choice.chain(for: preferred ?? self.preferred).map { Self.source(of: text, in: $0) } }
    }

    private static func source(of text: Text, in tag: LanguageTag) -> TextSource {
        let files = text.choice.files[tag]
        return TextSource(
            identifier: member(text.source.identifier, tag), bundleFile: files?.bundleFile, remoteFile: files?.remoteFile,
            group: text.source.group, emptiness: text.source.emptiness)
    }

    /// Returns the source of a member, in use or not; `nil` if no text has it, and for a text of a set, which the member would hold back.
    func source(ofMember member: String) -> TextSource? {
        guard let owner = owners[member], let text = texts[owner.identifier], text.source.group == nil,
            let tag = text.choice.files.keys.first(where: { $0.description == owner.language })
        else { return nil }
        return Self.source(of: text, in: tag)
    }

    /// Switches to preferred languages, with all their members loaded, and returns the switched texts.
    ///
    /// - Parameter call: The ticket of the call that sets them; `nil` to use the current languages for new texts.
    mutating func prefer(_ languages: [LanguageTag], of call: UInt64?) -> [String] {
        if let call {
            guard call > lastCall else { return [] }
            (lastCall, preferred, unsettled) = (call, languages, Set(texts.keys))
        }
        var switched: [String] = []
        for case let (identifier, text?) in unsettled.map({ ($0, texts[$0]) }) {
            let chain = text.choice.chain(for: preferred).map { Self.member(identifier, $0) }
            guard chain != text.chain else { continue }
            texts[identifier]?.chain = chain
            switched.append(identifier)
        }
        unsettled = []
        return switched
    }
}

extension SessionState {
    /// Adds the texts in several languages among new sources.
    mutating func speak(_ new: [TextSource]) throws(TextStoreError) {
        guard languages != nil || new.contains(where: { $0.languages != nil }) else { return }
        var table = languages ?? LanguageTable(preferring: Self.systemLanguages)
        for source in new { try table.add(source, beside: sources) }
        // A text may have the name of a language of another text, of the same call or of an earlier one.
        for source in new where sources[source.identifier] == nil {
            if let owner = table.owner(of: source.identifier) { throw .occupied(source.identifier, by: owner.identifier) }
        }
        languages = table
    }

    /// The languages that the user prefers in the system's settings.
    static var systemLanguages: [LanguageTag] {
        // A name such as C is no language, and the next one counts.
        Locale.preferredLanguages.prefix(TextLanguages.limit).compactMap { try? LanguageTag($0) }
    }

    /// Registers the members that preferred or the current languages need, and returns those that are not loaded yet.
    mutating func missingMembers(for preferred: [LanguageTag]? = nil) -> [TextSource] {
        guard let languages else { return [] }
        let missing = languages.members(for: preferred).filter { !loaded.contains($0.identifier) }
        for member in missing { sources[member.identifier] = member }
        return missing
    }

    /// Registers a member that is not in use, and returns its source if its files have not been read.
    mutating func missingMember(_ member: String) -> TextSource? {
        guard !loaded.contains(member), let source = languages?.source(ofMember: member) else { return nil }
        sources[member] = source
        return source
    }

    /// Switches all texts to preferred or the current languages in one step. Returns the members to read first, if any.
    mutating func prefer(_ preferred: [LanguageTag]?, of call: UInt64?) -> [TextSource] {
        let missing = missingMembers(for: preferred)
        guard missing.isEmpty else { return missing }
        if languages == nil { languages = LanguageTable(preferring: preferred ?? Self.systemLanguages) }
        for identifier in languages?.prefer(preferred ?? [], of: call) ?? [] { changed.insert(identifier) }
        return []
    }

    // MARK: Members

    /// Returns the members that make up the state of a text: the shown one, and the better ones that are missing. A text in one language
    /// is its own member.
    func spoken(_ identifier: String) -> [String] {
        guard let languages, let chain = languages.chain(of: identifier), !chain.isEmpty else { return [identifier] }
        return Array(chain.prefix((chain.firstIndex { resolved[$0] != nil } ?? chain.count - 1) + 1))
    }

    /// Returns the member that is shown, or the last one if none can be, and whether a better one is missing.
    func shown(_ identifier: String) -> (String, isSecond: Bool) {
        guard languages != nil else { return (identifier, false) }
        let spoken = spoken(identifier)
        return (spoken.last ?? identifier, spoken.count > 1)
    }

    /// Returns the first result for the members of a text.
    func firstSpoken<Result>(_ identifier: String, _ body: (String) -> Result?) -> Result? {
        guard languages != nil else { return body(identifier) }
        for member in spoken(identifier) { if let result = body(member) { return result } }
        return nil
    }

    /// Returns why another language is shown than the best one that the newest manifest lists; `nil` if it is shown.
    func missingLanguage(of identifier: String) -> TextStoreError? {
        guard languages != nil, case let spoken = spoken(identifier),
            let missing = spoken.dropLast().first(where: { offer(for: $0)?.entry != nil })
        else { return nil }
        return TextStoreError(
            .unconfirmed, identifier: missing,
            "cannot show this language: the newest manifest lists it, and it has not arrived or waits; call refresh(), then activate()")
    }

    func isInFlight(_ identifier: String) -> Bool { firstSpoken(identifier) { flights[set(of: $0)] } != nil }

    func isObserved(_ identifier: String) -> Bool {
        observers[identifier] != nil || languages?.owner(of: identifier).map { observers[$0.identifier] != nil } ?? false
    }

    func sets(of identifiers: [String]) -> Set<String> { Set(identifiers.flatMap { spoken($0) }.map { set(of: $0) }) }

    /// Marks a text as changed, and with it the text that it is a language of.
    mutating func note(_ identifier: String) {
        changed.insert(identifier)
        if let languages, let owner = languages.owner(of: identifier) { changed.insert(owner.identifier) }
    }
}

extension TextStore {
    /// Reads the files of the members that preferred languages need, and then switches to them.
    func finishSwitch(to preferred: [LanguageTag]? = nil, of call: UInt64? = nil) async {
        // Repeated, because a text may be registered meanwhile.
        while case let missing = session.update({ $0.prefer(preferred, of: call) }), !missing.isEmpty { await admit(missing) }
    }
}

extension TextStoreError {
    fileprivate static func occupied(_ member: String, by identifier: String) -> TextStoreError {
        TextStoreError(
            .conflictingSource, identifier: member,
            "cannot register it: it is the name of a language of “\(identifier)”; choose another identifier for one of them")
    }
}
