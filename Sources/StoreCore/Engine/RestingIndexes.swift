/// The merge indexes of the lists that were extended last and about which nothing goes on now.
///
/// A key is forgotten when nobody is there, also between two pages of a loop that loads all of them; with its index forgotten too, each
/// page would cost a pass over the list.
struct RestingIndexes<Param: Hashable & Sendable> {
    /// An index is as large as its list, so only a few are kept.
    private static var limit: Int { 4 }

    private struct Resting {
        let param: Param
        /// Whose index it is: each truth of a list has details of its own, for its page key is there.
        let details: RecordDetails
        let index: AnyObject
    }

    /// The oldest first.
    private var resting: [Resting] = []

    var count: Int { resting.count }

    /// Keeps the index of a list that is about to be forgotten, or drops the one that is out of date; keys that are let go of are the user's.
    mutating func keep(_ index: AnyObject?, of param: Param, _ details: RecordDetails?, _ leftovers: inout [any Sendable]) {
        // Most stores hold no lists: nothing to look for, nothing to keep.
        if resting.isEmpty, index == nil { return }
        _ = take(param, nil, &leftovers)
        guard let index, let details else { return }
        if resting.count == Self.limit { leftovers.append(resting.removeFirst().param) }
        resting.append(Resting(param: param, details: details, index: index))
    }

    /// Takes out the index of a list that is wanted again, if it is still the same list.
    mutating func take(_ param: Param, _ details: RecordDetails?, _ leftovers: inout [any Sendable]) -> AnyObject? {
        guard let position = resting.firstIndex(where: { $0.param == param }) else { return nil }
        let found = resting.remove(at: position)
        leftovers.append(found.param)
        return found.details === details ? found.index : nil
    }

    /// Drops all of them.
    mutating func removeAll(_ leftovers: inout [any Sendable]) {
        for index in resting { leftovers.append(index.param) }
        resting = []
    }
}
