import Foundation
import StoreCore
import StoreOutbox

/// One repository on screen, with the state of its star.
struct StarRow: Hashable {
    var name: String
    /// The number of stars; `nil` if the repository is not in the list.
    var stars: Int?
    var isStarred: Bool
    var mark: Mark?

    /// The state of a star that the origin does not have.
    enum Mark: Hashable {
        case sending
        case waiting(attempts: Int)
        case refused(String)
        case undecodable

        init(_ command: OutboxCommand) {
            switch command.status {
            case .pending: self = .waiting(attempts: command.attempts)
            case .delivering: self = .sending
            case .failed: self = .refused(command.lastError ?? "")
            case .undecodable: self = .undecodable
            }
        }

        /// Whether the star is still to be sent.
        var isUnsent: Bool {
            switch self {
            case .sending, .waiting: true
            case .refused, .undecodable: false
            }
        }

        var text: String {
            switch self {
            case .sending: "◌ is being sent"
            case .waiting(attempts: 0): "◌ waits to be sent"
            case .waiting(let attempts): "◌ waits to be sent, tried \(attempts == 1 ? "once" : "\(attempts) times")"
            case .refused(let reason): "✗ refused: \(reason.escapedForDisplay())"
            case .undecodable: "✗ was kept by a newer version"
            }
        }
    }

    /// Returns the repositories with the commands that change them, and the commands without a repository below them.
    static func rows(_ repositories: [Repository], _ commands: [OutboxCommand]) -> [StarRow] {
        var marks: [String: Mark] = [:]
        for command in commands {
            // The payload of an undecodable command is not ours to read.
            guard let star = try? command.value(as: Star.self) else { continue }
            marks[star.repository] = Mark(command)
        }
        // The store of a list that was never fetched has nothing to patch.
        let listed = repositories.map { StarRow(name: $0.name, stars: $0.stars, isStarred: $0.isStarred, mark: marks[$0.name]) }
        let others = Set(marks.keys).subtracting(repositories.map(\.name)).sorted()
        return listed + others.map { StarRow(name: $0, stars: nil, isStarred: marks[$0]?.isUnsent == true, mark: marks[$0]) }
    }

    /// Returns the lines of a table.
    static func lines(_ rows: [StarRow]) -> [String] {
        let names = rows.map { $0.name.escapedForDisplay() }
        let longest = names.map(\.count).max() ?? 0
        let counts = rows.map { $0.stars.map { "\($0)" } ?? "?" }
        let width = counts.map(\.count).max() ?? 0
        return zip(zip(rows, names), counts).map { row, count in
            let (row, name) = (row.0, row.1 + String(repeating: " ", count: longest - row.1.count))
            let number = String(repeating: " ", count: width - count.count) + count
            return "  \(row.isStarred ? "★" : "☆") \(name)  \(number)" + (row.mark.map { "  \($0.text)" } ?? "")
        }
    }
}
