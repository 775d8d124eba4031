/// A language tag of BCP 47, such as `de-AT`, in its usual case (RFC 5646 §2.1.1).
struct LanguageTag: Hashable, Sendable, CustomStringConvertible {
    let description: String

    /// Parses a tag. Checks the form of the subtags, but neither their order nor their registration, as a lookup needs neither.
    init(_ text: String) throws(TextStoreError) {
        if let flaw = Self.flaw(of: text) {
            throw TextStoreError(
                .invalidLanguage, "cannot use “\(text.prefix(64))” as a language: \(flaw); write a tag of BCP 47, such as de or de-AT")
        }
        var subtags: [String] = [], isAfterSingleton = false
        for subtag in text.lowercased().split(separator: "-").map(String.init) {
            switch subtag.utf8.count {
            case 2 where !subtags.isEmpty && !isAfterSingleton: subtags.append(subtag.uppercased())
            case 4 where !subtags.isEmpty && !isAfterSingleton && Self.isAlphabetic(subtag):
                subtags.append(subtag.prefix(1).uppercased() + subtag.dropFirst())
            default: subtags.append(subtag)
            }
            if subtag.utf8.count == 1 { isAfterSingleton = true }
        }
        description = subtags.joined(separator: "-")
    }

    private init(trusted: some StringProtocol) { description = String(trusted) }

    private static func isAlphabetic(_ text: some StringProtocol) -> Bool { text.utf8.allSatisfy { $0 | 0x20 &- 0x61 < 26 } }

    /// Returns why a text is not a tag; `nil` if it is one.
    private static func flaw(of text: String) -> String? {
        if text.isEmpty { return "it is empty" }
        if text.utf8.count > 128 { return "it has more than 128 bytes" }
        if text.contains("_") { return "it is written with an underscore instead of a hyphen" }
        let subtags = text.split(separator: "-", omittingEmptySubsequences: false)
        let isPlain = subtags.allSatisfy { subtag in
            (1...8).contains(subtag.utf8.count) && subtag.utf8.allSatisfy { $0 &- 0x30 <= 9 || $0 | 0x20 &- 0x61 < 26 }
        }
        guard isPlain, let first = subtags.first, let last = subtags.last else { return "a subtag is not one to eight letters and digits" }
        guard first.utf8.count > 1, isAlphabetic(first) else { return "it does not begin with a language" }
        let isPrivate = subtags.dropLast().contains { $0 == "x" || $0 == "X" }
        return last.utf8.count == 1 && !isPrivate ? "its last subtag is a single letter" : nil
    }

    /// The language without script and region.
    var language: Substring { description.prefix { $0 != "-" } }

    /// The script, which a Chinese region implies; `nil` if the tag leaves it open.
    var script: Substring? {
        lookups.lazy.flatMap { $0.description.split(separator: "-") }.first { $0.utf8.count == 4 && $0.first?.isUppercase == true }
    }

    /// The tag without its last subtag, and without a single letter before it (RFC 4647 §3.4); `nil` for a bare language.
    var parent: LanguageTag? {
        guard var end = description.lastIndex(of: "-") else { return nil }
        if let before = description[..<end].lastIndex(of: "-"), description.distance(from: before, to: end) == 2 { end = before }
        return LanguageTag(trusted: description[..<end])
    }

    /// The tag itself and its parents, the longest first.
    ///
    /// A Chinese region implies its script, because `zh` alone leaves the script open. The tag is therefore followed by its other spelling,
    /// with or without the script, and then by the script alone: `zh-TW`, `zh-Hant-TW`, `zh-Hant`.
    var lookups: [LanguageTag] {
        var all = Array(sequence(first: self, next: \.parent))
        guard language == "zh" else { return all }
        for (region, script) in ["TW": "Hant", "HK": "Hant", "MO": "Hant", "CN": "Hans", "SG": "Hans", "MY": "Hans"] {
            let short = "zh-" + region, long = "zh-\(script)-\(region)"
            guard let place = all.firstIndex(where: { $0.description == short || $0.description == long }) else { continue }
            let others = all[place].description == short ? [long, "zh-" + script] : [short]
            all.insert(contentsOf: others.map { LanguageTag(trusted: $0) }, at: place + 1)
        }
        return all
    }
}
