import Testing
import Trials
@testable import StoreFiles
@testable import StoreCore
@testable import StorePlatform

private func name(_ number: Int) -> SHA256.Digest { SHA256.Digest(UInt64(number), 0, 0, 0) }

extension FileLedger {
    /// Changes the size of a file at once.
    fileprivate mutating func change(_ number: Int, from old: Int = 0, to new: Int) -> Action {
        changeBegan(name(number))
        return changeEnded(name(number), from: old, to: new)
    }
}

struct FileLedgerTests {
    @Test func `F8: the first save requests a scan, a removal does not`() {
        var ledger = FileLedger(limit: 100)
        #expect(ledger.change(1, from: 10, to: 0) == .none)
        #expect(ledger.change(1, to: 10) == .scan)
        #expect(ledger.change(2, to: 10) == .none)
        #expect(ledger.scanEnded(found: [(name(1), 10), (name(3), 5)], freed: false) == .none)
        #expect(ledger.bytes == 25)
    }

    @Test func `F8: a sum above the limit requests a scan, and repeats it only if the last one freed space`() {
        var ledger = FileLedger(limit: 100)
        #expect(ledger.change(0, to: 100) == .scan)
        #expect(ledger.scanEnded(found: [(name(0), 100)], freed: false) == .none)
        #expect(ledger.change(1, to: 1) == .scan)
        #expect(ledger.scanEnded(found: [(name(0), 100), (name(1), 1)], freed: true) == .scan)
        #expect(ledger.scanEnded(found: [(name(0), 100), (name(1), 1)], freed: false) == .none)
        #expect(ledger.change(2, to: 10) == .none)
        #expect(ledger.change(3, to: 1) == .scan)
    }

    @Test func `F8: a failed scan is retried after another tenth of the limit`() {
        var ledger = FileLedger(limit: 100)
        #expect(ledger.change(1, to: 95) == .scan)
        ledger.scanFailed()
        #expect(ledger.change(2, to: 9) == .none)
        #expect(ledger.change(3, to: 9) == .scan)
    }

    /// Interleaves saves, removals and scans, each in two steps. A scan reads each file at a separate moment.
    @Test(arguments: part(of: 0..<rounds(300), each: 8))
    func `F8: the sum is right after any interleaving of changes and scans`(seed: Int) {
        var random = SplitMix(seed: UInt64(seed))
        var ledger = FileLedger(limit: Int.random(in: 100...2000, using: &random))
        var disk: [Int: Int] = [:]
        var history: [String] = []

        struct Change {
            var file: Int
            var old: Int
            var new: Int
            var isWritten = false
        }
        var changes: [Change] = []
        var scan: (left: [Int], found: [(name: SHA256.Digest, size: Int)])?

        func began(_ action: FileLedger.Action) {
            guard action == .scan else { return }
            #expect(scan == nil)
            scan = (Array(0..<6).shuffled(using: &random), [])
            history.append("scan")
        }

        func step() {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<3:
                let file = Int.random(in: 0..<6, using: &random)
                guard !changes.contains(where: { $0.file == file }) else { return }
                ledger.changeBegan(name(file))
                let new = Bool.random(using: &random) ? Int.random(in: 1...300, using: &random) : 0
                changes.append(Change(file: file, old: disk[file] ?? 0, new: new))
                history.append("began \(file) \(disk[file] ?? 0)→\(new)")
            case 3..<5:
                guard let index = changes.indices.randomElement(using: &random), !changes[index].isWritten else { return }
                disk[changes[index].file] = changes[index].new
                changes[index].isWritten = true
                history.append("written \(changes[index].file)")
            case 5..<7:
                guard let index = changes.indices.randomElement(using: &random), changes[index].isWritten else { return }
                let change = changes.remove(at: index)
                history.append("ended \(change.file)")
                began(ledger.changeEnded(name(change.file), from: change.old, to: change.new))
            case 7..<9:
                guard let file = scan?.left.popLast() else { return }
                history.append("saw \(file) \(disk[file] ?? 0)")
                if let size = disk[file], size > 0 { scan?.found.append((name(file), size)) }
            default:
                guard let ended = scan, ended.left.isEmpty else { return }
                scan = nil
                history.append("scan ended")
                began(ledger.scanEnded(found: ended.found, freed: false))
            }
        }

        for _ in 0..<200 { step() }
        // Finishes all changes and scans in progress.
        while !changes.isEmpty || scan != nil { step() }
        let sum = disk.values.reduce(0, +)
        #expect(ledger.bytes == sum || !history.contains("scan ended"), "\(history)")
    }
}
