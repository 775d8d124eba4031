/// One printed row, independent of the table's format.
struct Cells {
    var title: String
    var figures: [String]
    var judged: String
    var budget: String
    var verdict: String

    static let headings = ["Work"] + Contestant.allCases.map(\.title) + ["compared (95 %)", "budget", ""]

    init(_ outcome: Outcome) {
        let unit = outcome.figure.unit
        title = outcome.figure.title
        figures = Contestant.allCases.map { contestant in outcome.spreads[contestant].map { unit.text($0.median) } ?? "–" }
        budget = outcome.budget?.text(in: unit) ?? "–"
        judged =
            switch (outcome.judged, outcome.budget?.kind) {
            case (let judged?, .ratio): "\(digits(judged.median)) × (\(digits(judged.low))–\(digits(judged.high)))"
            case (let judged?, .difference):
                "\(judged.median < 0 ? "" : "+")\(unit.text(judged.median)) (\(unit.text(judged.low)) – \(unit.text(judged.high)))"
            case (let judged?, _): unit.text(judged.median)
            case (nil, _): "–"
            }
        verdict =
            switch outcome.verdict {
            case .met: "ok"
            case .unsure: "ok?"
            case .broken: "BROKEN"
            case .open: "open"
            case .noBudget: ""
            }
    }

    var all: [String] { [title] + figures + [judged, budget, verdict] }
}
