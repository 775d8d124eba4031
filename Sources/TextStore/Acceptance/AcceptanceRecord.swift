internal import Foundation

/// A record of the evidence: an acceptance, or its withdrawal.
///
/// ```swift
/// for record in try await texts.acceptanceRecords() {
///     print(record.acceptance.date, record.kind, record.acceptance.identifier)
/// }
/// ```
///
/// <doc:Evidence> explains the log of these records.
public struct AcceptanceRecord: Hashable, Codable, Sendable {
    /// The kind of event.
    public enum Kind: String, Hashable, Codable, Sendable {
        /// The account has accepted the text.
        case accepted
        /// The account has withdrawn all its acceptances of the text.
        case withdrawn
    }

    /// The kind of event.
    public var kind: Kind
    /// The acceptance; for a withdrawal, the newest withdrawn acceptance, with the date of the withdrawal.
    public var acceptance: Acceptance
    /// The accepted text, verbatim; `nil` if the part of the log that has it is damaged.
    public var wording: String?

    /// The formats of an export.
    public enum Format: Hashable, Sendable {
        /// A JSON object in each line, with texts verbatim.
        case jsonLines
        /// A table (RFC 4180). A cell that a spreadsheet would run as a formula begins with an apostrophe, which is not part of the text.
        case csv
    }

    static func export(_ records: [AcceptanceRecord], as format: Format) -> Data {
        var bytes = Data()
        if format == .csv { bytes += Data((names.joined(separator: ",") + "\r\n").utf8) }
        for record in records {
            let values = record.values
            switch format {
            case .csv: bytes += Data((values.map { cell($0 ?? "") }.joined(separator: ",") + "\r\n").utf8)
            case .jsonLines:
                let members = zip(names, values).map { name, value in
                    "\"\(name)\":" + (value.map { name == "verified" ? $0 : quoted($0) } ?? "null")
                }
                bytes += Data(("{" + members.joined(separator: ",") + "}\n").utf8)
            }
        }
        return bytes
    }

    private static let names = ["kind", "identifier", "version", "digest", "language", "account", "date", "verified", "wording"]

    private var values: [String?] {
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        return [
            kind.rawValue, acceptance.identifier, acceptance.version?.description, acceptance.digest, acceptance.language,
            acceptance.account, acceptance.date.formatted(style), "\(acceptance.isVerified)", wording,
        ]
    }

    /// Returns a cell (RFC 4180 §2), which no spreadsheet takes for a formula.
    private static func cell(_ text: String) -> String {
        // Spreadsheets skip spaces before a formula, and know the wide forms of the four signs.
        let first = text.unicodeScalars.first { $0 != " " && $0 != "\u{A0}" && $0 != "\u{FEFF}" }
        let isFormula = first.map { "=+-@\t\r\n＝＋－＠".unicodeScalars.contains($0) } ?? false
        let shown = isFormula ? "'" + text : text
        guard shown.unicodeScalars.contains(where: { "\",\r\n".unicodeScalars.contains($0) }) else { return shown }
        // By bytes, because a quotation mark with a combining character is another character.
        let parts = shown.utf8.split(separator: UInt8(ascii: "\""), omittingEmptySubsequences: false)
        return "\"" + parts.map { String(Substring($0)) }.joined(separator: "\"\"") + "\""
    }

    /// Returns a string of JSON on one line (RFC 8259 §7).
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\n": result += "\\n"
            // Some readers of lines end a line at these, too.
            case "\u{0}"..<" ", "\u{7F}", "\u{85}", "\u{2028}", "\u{2029}", "\u{FEFF}":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
