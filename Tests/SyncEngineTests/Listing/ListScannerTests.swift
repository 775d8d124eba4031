import Foundation
import StoreCore
import Testing
import Trials
@testable import SyncEngine

/// S2, S17: the items and the end of a list, for any cut and any size of pieces.
struct ListScannerTests {
    private static let items = [
        #"{"path":"a","version":"1"}"#, #"{"path":"b}\"]","version":"{["}"#, #"{"path":"ü","version":"3","more":[{"x":[]},{}]}"#,
    ]
    private static let lines = items.map { $0 + "\n" }.joined()
    private static let array = "[\n" + items.joined(separator: ",\n") + "\n]\n"

    /// Returns the items and the end of a text that arrives in pieces.
    private func scan(_ text: some Sequence<UInt8>, length: Int64?, pieces: Int = .max, limit: Int = 1 << 20) throws -> (
        items: [ListedFile], end: SourceEnd
    ) {
        var scanner = ListScanner(limit: limit)
        var items: [ListedFile] = []
        var rest = Array(text)[...]
        while !rest.isEmpty {
            try scanner.take(Array(rest.prefix(pieces)))
            rest = rest.dropFirst(pieces)
            if let text = scanner.takeItems() { items += try JSONDecoder().decode([ListedFile].self, from: Data(text)) }
        }
        return (items, try scanner.end(length: length))
    }

    private func fault(_ text: String, length: Int64? = nil) -> ListScanner.Fault? {
        do {
            _ = try scan(text.utf8, length: length)
            return nil
        } catch { return error as? ListScanner.Fault }
    }

    @Test(arguments: [
        lines + "{\"count\":3}\n", lines + " { \"count\" : 3 } ", array, "[" + items.joined(separator: ",") + ",{\"count\":3}]",
    ])
    func `S2, S17: a list is read in pieces of any size`(text: String) throws {
        for pieces in Array(1...70) + [1 << 20] {
            let (items, end) = try scan(text.utf8, length: nil, pieces: pieces)
            #expect(items.map(\.path) == ["a", "b}\"]", "ü"])
            #expect(end == .complete(count: text.contains("count") ? 3 : nil))
        }
    }

    // The text, and the number of blanks after its end.
    @Test(
        arguments: [
            (lines + "{\"count\":3}\n", 1), (array, 1), ("\u{FEFF}[" + items.joined(separator: ",") + ",{\"count\":3}]", 0), (lines, 0),
        ])
    func `S2: a list cut at any byte has no end, with or without a length`(text: String, blanks: Int) throws {
        let bytes = Array(text.utf8)
        for cut in 0..<bytes.count {
            let part = bytes.prefix(cut)
            #expect(throws: ListScanner.Fault.self, "\(cut) of \(bytes.count)") { try scan(part, length: Int64(bytes.count)) }
            // Without a length, the list may lack only blanks.
            guard cut < bytes.count - blanks else { continue }
            #expect(throws: ListScanner.Fault.self, "\(cut) of \(bytes.count)") { try scan(part, length: nil) }
        }
        _ = try scan(bytes, length: Int64(bytes.count))
    }

    @Test func `S2: lines without a marker end only at the announced length`() throws {
        let bytes = Array(Self.lines.utf8)
        #expect(fault(Self.lines) == .noEnd(afterItems: 3))
        #expect(try scan(bytes, length: Int64(bytes.count)).end == .complete())
        #expect(
            fault(Self.lines, length: Int64(bytes.count) - 1) == .wrongLength(found: Int64(bytes.count), announced: Int64(bytes.count) - 1))
        // An origin may announce the shorter length of a list that it cut within a line.
        #expect(fault(String(Self.lines.dropLast()), length: Int64(bytes.count) - 1) == .cut(afterItems: 3))
    }

    @Test(
        arguments: [
            ("<!DOCTYPE html>", .noList(beginning: Array("<!DOCTYPE html>".utf8))), ("  404", .noList(beginning: Array("404".utf8))),
            ("\u{FEFF}<html>", .noList(beginning: Array("<html>".utf8))), ("", .noEnd(afterItems: 0)), ("\n\n", .noEnd(afterItems: 0)),
            ("{\"count\":1}\n{\"path\":\"a\"}\n", .pastEnd(afterItems: 0)), ("{\"count\":0}\n{\"count\":0}\n", .pastEnd(afterItems: 0)),
            ("[{\"count\":0},{\"a\":1}]", .pastEnd(afterItems: 0)), ("[{\"a\":1}]\n{\"a\":2}", .pastEnd(afterItems: 1)),
            ("[{\"a\":1}][", .pastEnd(afterItems: 1)), ("{\"a\":1}{\"a\":2}\n", .unexpected(0x7B, afterItems: 1)),
            ("{\"a\":1},\n", .unexpected(0x2C, afterItems: 1)), ("[{\"a\":1} {\"a\":2}]", .unexpected(0x7B, afterItems: 1)),
            ("[{\"a\":1},]", .unexpected(0x5D, afterItems: 1)), ("[1,2]", .unexpected(0x31, afterItems: 0)),
            ("[,]", .unexpected(0x2C, afterItems: 0)),
            ("{\"a\":1}\n]", .unexpected(0x5D, afterItems: 1)), ("[{\"count\":0}", .cut(afterItems: 0)), ("[", .cut(afterItems: 0)),
            ("{\"a\":\"}\n", .cut(afterItems: 0)),
        ] as [(String, ListScanner.Fault)])
    func `S2: bytes that are not a list, or continue past its end, are refused`(text: String, wanted: ListScanner.Fault) {
        var scanner = ListScanner(limit: 1 << 20)
        var found: ListScanner.Fault?
        do throws(ListScanner.Fault) {
            try scanner.take(Array(text.utf8))
            _ = try scanner.end(length: nil)
        } catch { found = error }
        #expect(found == wanted)
        // A matching length does not make the bytes a list, unless the list is empty.
        let isEmpty = text.allSatisfy(\.isNewline)
        var other = ListScanner(limit: 1 << 20)
        let passes: Void? = try? {
            try other.take(Array(text.utf8))
            _ = try other.end(length: Int64(text.utf8.count))
        }()
        #expect((passes != nil) == isEmpty)
    }

    @Test(
        arguments: [
            ("{\"count\":0}", 0), ("{\"count\":1000}", 1000), ("{ \"count\"\t:\r\n 7 }", 7), ("{\"count\":01}", nil),
            ("{\"count\":-1}", nil),
            ("{\"count\":1.5}", nil), ("{\"count\":\"1\"}", nil), ("{\"count\":1,\"path\":\"a\"}", nil), ("{\"count\":}", nil),
            ("{\"count\":99999999999999999999}", nil), ("{\"count\":1 0}", nil), ("{\"counts\":1}", nil), ("{}", nil),
            ("{\"count\":1}}", nil),
        ] as [(String, Int?)])
    func `S2: only an object with count as its only key marks the end`(text: String, count: Int?) {
        #expect(ListScanner.count(marker: Array(text.utf8)) == count)
    }

    @Test func `S17: an item beyond the limit is refused, even if it never ends`() throws {
        let item = "{\"a\":\"" + String(repeating: "x", count: 100) + "\"}"
        #expect(throws: ListScanner.Fault.tooLarge(item: 1)) { try scan((item + "\n").utf8, length: nil, limit: item.utf8.count - 1) }
        var scanner = ListScanner(limit: item.utf8.count)
        try scanner.take(Array((item + "\n" + item).utf8))
        #expect(scanner.takeItems() != nil)
        #expect(throws: ListScanner.Fault.tooLarge(item: 2)) {
            var endless = ListScanner(limit: 1000)
            try endless.take(Array((item + "\n{").utf8))
            for _ in 0..<2000 { try endless.take([0x20]) }
        }
    }

    /// Returns the list as a source that arrives in pieces.
    private func source(_ text: String, length: Int64?, pieces: Int = 50) -> StreamedSource<ListedFile> {
        StreamedSource {
            ListBytes(
                AsyncStream<Data> { continuation in
                    var rest = Data(text.utf8)
                    while !rest.isEmpty {
                        continuation.yield(rest.prefix(pieces))
                        rest = Data(rest.dropFirst(pieces))
                    }
                    continuation.finish()
                }, length: length)
        }
    }

    private func read(_ source: StreamedSource<ListedFile>) async throws -> Int {
        var reading = ListReading(reader: source.makeReader(), board: nil)
        var count = 0
        while let items = try await reading.next() { count += items.count }
        return count
    }

    @Test(arguments: [(2, SyncError.Code?.some(.incompleteList)), (3, nil), (4, .some(.incompleteList)), (0, .some(.incompleteList))])
    func `S2: a marker with a wrong count is refused`(count: Int, code: SyncError.Code?) async throws {
        for text in [Self.lines + "{\"count\":\(count)}\n", "[" + Self.items.joined(separator: ",") + ",{\"count\":\(count)}]"] {
            let error = await syncError { try await read(source(text, length: nil)) }
            #expect(error?.code == code)
            if code != nil { #expect(error?.message.contains("should have \(count)") == true) }
        }
    }

    @Test func `S2: a list without an end is refused with a remedy`() async throws {
        let error = await syncError { try await read(source(Self.lines, length: nil)) }
        #expect(error?.code == .incompleteList)
        #expect(error?.message.contains("{\"count\": 3}") == true && error?.message.contains("Content-Length") == true)
        #expect(try await read(source(Self.lines, length: Int64(Self.lines.utf8.count))) == 3)
    }

    @Test func `S2: a streamed list returns no page after its end`() async throws {
        var reader = source(Self.lines + "{\"count\":3}\n", length: nil).makeReader()
        var page = try await reader.next()
        while page?.end == nil, page != nil { page = try await reader.next() }
        #expect(page?.end == .complete(count: 3))
        #expect(try await reader.next() == nil)
    }

    @Test func `S2: an undecodable item is reported with its number and key`() async throws {
        let error = await syncError { try await read(source(Self.lines + "{\"path\":\"x\",\"version\":7}\n{\"count\":4}\n", length: nil)) }
        #expect(error?.code == .unreadableList)
        #expect(error?.message.contains("item 4 cannot be decoded: “version”") == true)
        let missing = await syncError { try await read(source("[{\"path\":\"x\",\"size\":7}]", length: nil)) }
        #expect(missing?.message.contains("“x” has neither version nor sha256") == true)
        let two = await syncError { try await read(source("[{\"path\":\"x\",\"version\":\"1\",\"size\":7,\"byteCount\":8}]", length: nil)) }
        #expect(two?.message.contains("size 7") == true && two?.message.contains("byteCount 8") == true)
    }

    @Test func `S2: each unknown key is reported once`() async throws {
        let keys = Lock<[String]>([])
        let text = "[{\"path\":\"x\",\"version\":\"1\",\"sha-256\":\"\"},{\"path\":\"y\",\"version\":\"1\",\"sha-256\":\"\",\"Size\":1}]"
        let source = StreamedSource<ListedFile>(onUnknownKey: { key in keys.withLock { $0.append(key) } }) {
            ListBytes(
                AsyncStream<Data> {
                    $0.yield(Data(text.utf8)); $0.finish()
                }, length: nil)
        }
        #expect(try await read(source) == 2)
        #expect(keys.withLock { $0.sorted() } == ["Size", "sha-256"])
    }

    @Test func `S2, S17: mutated lists yield only whole objects and never crash`() throws {
        for seed in seeds(400, quick: 100, sanitized: 40) {
            var chance = SplitMix(seed: seed)
            var bytes = Array((Bool.random(using: &chance) ? Self.array : Self.lines + "{\"count\":3}\n").utf8)
            for _ in 0..<Int.random(in: 1...3, using: &chance) {
                let place = Int.random(in: 0..<bytes.count, using: &chance)
                switch Int.random(in: 0..<3, using: &chance) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &chance)
                case 1: bytes.remove(at: place)
                default: bytes.insert(contentsOf: bytes[Int.random(in: 0..<place + 1, using: &chance)...place], at: place)
                }
            }
            var scanner = ListScanner(limit: 1000)
            // Most mutations cause faults; the others contain only whole objects.
            guard (try? scanner.take(bytes)) != nil, let items = scanner.takeItems(), (try? scanner.end(length: nil)) != nil else {
                continue
            }
            #expect(items.first == 0x5B && items.last == 0x5D, "seed \(seed)")
        }
    }
}
