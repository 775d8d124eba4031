/// The line-by-line difference of two texts.
struct LineDifference {
    enum Line: Equatable {
        case same(String)
        case removed(String)
        case added(String)
    }

    let lines: [Line]

    init(from old: String, to new: String) {
        let oldLines = old.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let newLines = new.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let changes = newLines.difference(from: oldLines)
        var removed: Set<Int> = []
        var added: Set<Int> = []
        for change in changes {
            switch change {
            case .remove(let offset, _, _): removed.insert(offset)
            case .insert(let offset, _, _): added.insert(offset)
            }
        }
        var lines: [Line] = []
        var left = 0, right = 0
        while left < oldLines.count || right < newLines.count {
            if left < oldLines.count, removed.contains(left) {
                lines.append(.removed(oldLines[left]))
                left += 1
            } else if right < newLines.count, added.contains(right) {
                lines.append(.added(newLines[right]))
                right += 1
            } else {
                lines.append(.same(newLines[right]))
                left += 1
                right += 1
            }
        }
        self.lines = lines
    }
}
