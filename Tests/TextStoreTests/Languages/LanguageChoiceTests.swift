import StoreCore
import Testing
import Trials

@testable import TextStore

/// T18: tags, and the pure choice among the languages of a text.
struct LanguageChoiceTests {
    private func chain(_ preferred: [String], _ listed: [String], _ development: String = "en", _ fallbacks: [String: String] = [:]) throws
        -> [String]
    {
        let languages = TextLanguages(
            Dictionary(uniqueKeysWithValues: listed.map { ($0, TextLanguages.Files()) }), development: development, fallbacks: fallbacks)
        return try LanguageChoice(languages).chain(for: LanguageChoice.preferred(preferred)).map(\.description)
    }

    @Test(
        arguments: [
            ("de", "de"), ("DE-at", "de-AT"), ("ZH-hANT-tw", "zh-Hant-TW"), ("sl-rozaj-biske", "sl-rozaj-biske"), ("es-419", "es-419"),
            ("de-CH-1996", "de-CH-1996"), ("en-a-MYEXT-b-another", "en-a-myext-b-another"), ("de-x-AB-Latn", "de-x-ab-latn"),
        ])
    func `T18: a tag has one spelling`(written: String, usual: String) throws {
        #expect(try LanguageTag(written).description == usual)
        #expect(try LanguageTag(written) == LanguageTag(usual))
    }

    @Test(
        arguments: [
            "", " ", "d", "*", "de_AT", "de-", "-de", "de--AT", "deutschland", "de-Österreich", "1a", "x-private", "i-klingon", "de-x",
            "../x",
            "de/en", "de AT", "🇩🇪", String(repeating: "de-", count: 50) + "AT", "de\u{0}",
        ])
    func `T18: a tag that is none is refused with the remedy`(written: String) {
        let error = #expect(throws: TextStoreError.self) { try LanguageTag(written) }
        #expect(error?.code == .invalidLanguage && error?.message.contains("; write a tag of BCP 47") == true, "\(written)")
    }

    @Test func `T18: a lookup drops subtags from the end, and single letters with them (RFC 4647 §3.4)`() throws {
        // The example of the RFC, without its last step, the default.
        let tags = ["zh-Hant-CN-x-private1-private2", "zh-Hant-CN-x-private1", "zh-Hant-CN", "zh-Hant", "zh"]
        #expect(Array(sequence(first: try LanguageTag(tags[0]), next: \.parent)).map(\.description) == tags)
    }

    typealias Row = (preferred: [String], listed: [String], chain: [String])

    @Test(
        arguments: [
            (["de-AT"], ["en", "de"], ["de", "en"]), (["de-AT"], ["en", "de", "de-AT"], ["de-AT", "de", "en"]),
            (["fr"], ["en", "de"], ["en"]), (["fr", "de-AT"], ["en", "de"], ["de", "en"]), (["DE-at"], ["en", "De"], ["de", "en"]),
            (["en-GB", "de"], ["de", "en"], ["en", "de"]), (["en"], ["en", "de"], ["en"]),
            // Scripts of Chinese, as Apple's systems choose them.
            (["zh-TW"], ["en", "zh-Hans", "zh-Hant"], ["zh-Hant", "en"]), (["zh-CN"], ["en", "zh-Hans", "zh-Hant"], ["zh-Hans", "en"]),
            (["zh-Hant-HK"], ["en", "zh-Hans", "zh-Hant"], ["zh-Hant", "en"]),
            (["zh-HK"], ["en", "zh-HK", "zh-Hant"], ["zh-HK", "zh-Hant", "en"]),
            (["zh-TW"], ["en", "zh-Hans-CN", "zh-Hant-TW"], ["zh-Hant-TW", "en"]),
            (["zh-Hant-TW", "en"], ["en", "zh-CN", "zh-TW"], ["zh-TW", "en"]),
            // A dialect is better than another language, unless a later preference is listed.
            (["pt-PT"], ["en", "pt-BR"], ["pt-BR", "en"]), (["pt"], ["en", "pt-BR"], ["pt-BR", "en"]),
            (["pt-PT", "fr"], ["en", "fr", "pt-BR"], ["fr", "en"]), (["de"], ["en", "de-CH", "de-AT"], ["de-AT", "en"]),
            (["de"], ["en", "de"], ["de", "en"]),
            // A dialect in the same script is better than another one.
            (["zh-HK"], ["en", "zh-CN", "zh-TW"], ["zh-TW", "en"]), (["zh-Hant"], ["en", "zh-CN", "zh-TW"], ["zh-TW", "en"]),
            (["zh-SG"], ["en", "zh-CN", "zh-TW"], ["zh-CN", "en"]), (["sr-Latn"], ["en", "sr-Cyrl-RS"], ["sr-Cyrl-RS", "en"]),
            (["sr-Latn"], ["en", "sr-Cyrl-RS", "sr-Latn-RS"], ["sr-Latn-RS", "en"]), (["de-x-abcd"], ["en", "de-AT"], ["de-AT", "en"]),
        ] as [Row])
    func `T18: the preferred languages decide in their order, then a dialect, then the development language`(row: Row) throws {
        #expect(try chain(row.preferred, row.listed) == row.chain)
    }

    @Test func `T18: a language of its own falls back before the next preferred one`() throws {
        #expect(try chain(["gsw-CH", "fr"], ["en", "de", "fr"], "en", ["gsw": "de"]) == ["de", "fr", "en"])
        #expect(try chain(["aab", "fr"], ["en", "fr"], "en", ["aab": "aac", "aac": "aad"]) == ["fr", "en"])
        #expect(try chain(["eu"], ["en", "es", "ca"], "en", ["eu": "ca", "ca": "es"]) == ["ca", "es", "en"])
    }

    @Test(
        arguments: [
            ["de": "de"], ["de": "fr", "fr": "de"], ["aa": "bb", "bb": "cc", "cc": "aa"], ["de": "de-AT"],
            ["de-AT": "de-CH", "de-CH": "de-AT"],
        ] as [[String: String]])
    func `T18: a loop of fallbacks is refused with the remedy`(fallbacks: [String: String]) {
        let error = #expect(throws: TextStoreError.self) { try chain(["de"], ["en", "de"], "en", fallbacks) }
        #expect(error?.code == .invalidLanguage && error?.message.contains("lead back to") == true)
    }

    @Test func `T18: empty lists, too many languages, and a missing development language are refused with the remedy`() {
        let many = (0..<10_000).map { number in "de-x-\(number)" }
        for (preferred, listed, development) in [
            ([], ["en"], "en"), (["de"], [], "en"), (["de"], ["de"], "en"), (["de"], ["de", "DE"], "de"), (["de"], many, many[0]),
            (many, ["en"], "en"), (["de"], ["de", "d"], "de"), (["de", ""], ["de"], "de"), (["de"], ["de"], ""),
        ] as [([String], [String], String)] {
            let error = #expect(throws: TextStoreError.self) { try chain(preferred, listed, development) }
            #expect(error?.code == .invalidLanguage && error?.message.contains("; ") == true, "\(preferred.count) \(listed.count)")
        }
    }

    /// A second form of the rule, over strings alone.
    @Test func `T18: random preferences and languages follow the rule`() throws {
        for seed in seeds(UInt64(2_000), quick: 150) {
            var dice = SplitMix(seed: seed)
            let pool = ["de", "de-AT", "de-CH", "de-CH-1996", "en", "en-GB", "fr", "sr-Latn", "sr-Latn-RS", "es-419", "es", "de-x-a-b"]
            func some(_ count: ClosedRange<Int>) -> [String] {
                Array(pool.shuffled(using: &dice).prefix(Int.random(in: count, using: &dice)))
            }
            let (preferred, listed) = (some(1...4), some(1...6))
            let development = listed[0]
            var expected: [String] = []
            for range in preferred {
                var subtags = range.split(separator: "-")
                while !subtags.isEmpty {
                    let tag = subtags.joined(separator: "-")
                    if listed.contains(tag) { expected.append(tag) }
                    subtags.removeLast()
                    if subtags.last?.count == 1 { subtags.removeLast() }
                }
            }
            if expected.isEmpty {
                for range in preferred {
                    let language = range.prefix { $0 != "-" }
                    if let dialect = listed.sorted().first(where: { $0.prefix { $0 != "-" } == language }) { expected.append(dialect) }
                }
            }
            expected.append(development)
            var seen: Set<String> = []
            #expect(
                try chain(preferred, listed, development) == expected.filter { seen.insert($0).inserted },
                "seed \(seed): \(preferred) in \(listed)")
        }
    }
}
