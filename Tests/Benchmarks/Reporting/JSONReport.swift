internal import Foundation

/// The result as JSON.
struct JSONReport {
    private struct Report: Codable {
        var cores: Int
        var system: String
        var rows: [Row]
    }

    private struct Row: Codable {
        var name: String
        var title: String
        var unit: Unit
        var figures: [String: Spread]
        var kind: Budget.Kind?
        var reference: Contestant?
        var compared: Spread?
        var limit: Double?
        var verdict: Outcome.Verdict
    }

    let text: String

    init(_ outcomes: [Outcome]) throws {
        let rows = outcomes.map { outcome in
            Row(
                name: outcome.figure.name, title: outcome.figure.title, unit: outcome.figure.unit,
                figures: Dictionary(uniqueKeysWithValues: outcome.spreads.map { ($0.key.rawValue, $0.value) }),
                kind: outcome.budget?.kind, reference: outcome.reference, compared: outcome.judged, limit: outcome.budget?.limit,
                verdict: outcome.verdict)
        }
        let machine = ProcessInfo.processInfo
        let report = Report(cores: machine.activeProcessorCount, system: machine.operatingSystemVersionString, rows: rows)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        text = String(decoding: try encoder.encode(report), as: UTF8.self) + "\n"
    }
}
