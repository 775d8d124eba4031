public import Foundation

/// A record that the user has accepted a text.
///
/// <doc:GatingOnAcceptance> explains when a text needs acceptance.
public struct Acceptance: Hashable, Codable, Sendable {
    /// The identifier of the accepted text, as in its source.
    public var identifier: String
    /// The accepted version; `nil` for an unversioned text.
    public var version: SemanticVersion?
    /// The SHA-256 of the accepted text.
    public var digest: String
    /// The wall-clock time of the acceptance.
    public var date: Date
    /// Whether a digest or a verifier had confirmed that the accepted text belongs to the version.
    ///
    /// Otherwise the text may be older than its version, and the acceptance covers no other wording of the same version.
    public var isVerified = true
    /// The language of the accepted text, such as `de-AT`; `nil` for a text in one language.
    public var language: String?
    /// The account that has accepted the text; `nil` for the user of the device.
    public var account: String?

    /// The languages that an acceptance covers.
    public enum Languages: Hashable, Sendable {
        /// Only the accepted one, so each language is asked about.
        case each
        /// All of them: a version that was accepted in one language is accepted in all.
        ///
        /// An acceptance of an unverified text covers no other language of its version.
        case together
    }

    /// The size of a change that requires another acceptance.
    public enum Granularity: Hashable, Sendable {
        /// Any newer version, by the precedence of SemVer.
        case any
        /// A higher first number; versions that differ only in the others need no other acceptance.
        case major
        /// A higher first or second number.
        case minor
        /// Another wording, with any version.
        case digest
    }

    /// Returns whether this acceptance covers a shown text, so that no other one is needed.
    ///
    /// An acceptance of the same or a higher version covers a text. An unversioned text cannot be compared, so only an acceptance of its
    /// wording covers it. An acceptance of an unverified text covers no other wording of the same version.
    func covers(_ text: VersionedText, _ granularity: Granularity, _ languages: Languages = .each) -> Bool {
        let isTranslated = language != text.language
        // The same bytes are accepted, even if the text had no languages then.
        if isTranslated, languages == .each { return version == text.version && digest == text.digest }
        guard let version, let shown = text.version else { return digest == text.digest }
        // The accepted bytes may be those of an older version, which the origin replaced after it had published the version.
        if !isVerified, version == shown, digest != text.digest { return false }
        switch granularity {
        case .any: return version >= shown
        case .major: return version >= shown || version.agrees(with: shown, upTo: .major)
        case .minor: return version >= shown || version.agrees(with: shown, upTo: .minor)
        // The store shows a text below its floor only because the newer one is missing, so its wording is not new.
        case .digest: return digest == text.digest || (text.isBelowFloor && version > shown) || (isTranslated && version == shown)
        }
    }
}

extension Acceptance {
    /// Makes the acceptance of a text.
    package init(of text: VersionedText, by account: String? = nil, at date: Date) {
        self.init(
            identifier: text.identifier, version: text.version, digest: text.digest, date: date, isVerified: text.isVerified,
            language: text.language, account: account)
    }

    /// Decodes an acceptance; without `isVerified`, it counts as verified, so that no user is asked again.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        identifier = try values.decode(String.self, forKey: .identifier)
        version = try values.decodeIfPresent(SemanticVersion.self, forKey: .version)
        digest = try values.decode(String.self, forKey: .digest)
        date = try values.decode(Date.self, forKey: .date)
        isVerified = try values.decodeIfPresent(Bool.self, forKey: .isVerified) ?? true
        language = try values.decodeIfPresent(String.self, forKey: .language)
        account = try values.decodeIfPresent(String.self, forKey: .account)
    }
}

/// All acceptances of one text in the order of their saves, one for each wording of a version.
struct AcceptanceHistory: Hashable, Codable, Sendable {
    private(set) var all: [Acceptance] = []

    /// The newest acceptance of an account: that of the highest version, and the last one among equal versions.
    func newest(by account: String? = nil) -> Acceptance? {
        all.lazy.filter { $0.account == account }.reduce(nil) { best, next in
            guard let best, Rank(version: next.version) < Rank(version: best.version) else { return next }
            return best
        }
    }

    /// Adds an acceptance in place of one by the same account, with the same wording, version, and language.
    mutating func add(_ acceptance: Acceptance) {
        var acceptance = acceptance
        all.removeAll { old in
            guard old.version?.description == acceptance.version?.description, old.digest == acceptance.digest,
                old.language == acceptance.language, old.account == acceptance.account
            else { return false }
            acceptance.isVerified = acceptance.isVerified || old.isVerified
            return true
        }
        all.append(acceptance)
    }

    mutating func withdraw(_ account: String?) { all.removeAll { $0.account == account } }

    func isNeeded(
        for text: VersionedText, _ granularity: Acceptance.Granularity, by account: String? = nil, _ languages: Acceptance.Languages = .each
    ) -> Bool {
        !all.contains { $0.account == account && $0.covers(text, granularity, languages) }
    }
}
