internal import Foundation

/// The median of some samples with its confidence interval.
struct Spread: Hashable, Sendable, Codable {
    var median: Double
    /// The lower end of the interval that contains the median with a confidence of at least 95 %; of too few samples, the minimum.
    var low: Double
    var high: Double

    /// Computes order statistics, which assume no distribution. The probability that the median lies outside the k-th smallest and largest
    /// samples is twice that of fewer than k heads in as many coin tosses.
    init(_ samples: [Double]) {
        precondition(!samples.isEmpty, "a row without samples")
        let sorted = samples.sorted()
        let count = sorted.count
        median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2
        let rank = Self.rank(of: count)
        low = sorted[rank - 1]
        high = sorted[count - rank]
    }

    /// Returns the largest k with a sufficient confidence, at least 1.
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
