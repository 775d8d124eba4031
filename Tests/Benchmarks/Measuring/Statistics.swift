internal import Foundation

/// The middle of some samples, and between which of them the true one lies.
struct Spread: Hashable, Sendable, Codable {
    var median: Double
    /// The interval in which the median lies with a confidence of at least 95 %; of too few samples, all of them.
    var low: Double
    var high: Double

    /// Order statistics, which ask nothing of how the samples are distributed: the chance that a median lies outside the k-th smallest and
    /// the k-th largest is twice that of fewer than k heads in as many throws of a coin.
    init(_ samples: [Double]) {
        precondition(!samples.isEmpty, "a row without samples")
        let sorted = samples.sorted()
        let count = sorted.count
        median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2
        let rank = Self.rank(of: count)
        low = sorted[rank - 1]
        high = sorted[count - rank]
    }

    /// The largest k whose interval is sure enough, at least 1.
    private static func rank(of count: Int) -> Int {
        var rank = 1
        var fewer = 0.0
        var ways = 1.0
        for heads in 0..<count / 2 {
            fewer += ways * pow(0.5, Double(count))
            ways *= Double(count - heads) / Double(heads + 1)
            guard 2 * fewer <= 0.05 else { break }
            rank = heads + 1
        }
        return rank
    }
}
