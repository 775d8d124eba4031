import Foundation
import LoopbackOrigin
import StoreCore
internal import StorePlatform
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T19: the evidence of acceptances and withdrawals.
struct EvidenceTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private func store(_ version: String = "1.0.0", _ text: String = "Terms 1\nBe kind.", keeps: Bool = true) async throws -> TextStore {
        bench.origin.goDown()
        let bundle = try bench.bundle(["eula.txt": text, "privacy.txt": "Privacy", "versions.json": #"{"eula":"\#(version)"}"#])
        return try await bench.started(bundle: bundle, policy: TextStorePolicy(evidence: keeps ? .allAcceptances : .none))
    }

    private func brief(_ records: [AcceptanceRecord]) -> [String] {
        records.map { record in
            let (acceptance, wording) = (record.acceptance, record.wording ?? "lost")
            return
                "\(record.kind) \(acceptance.identifier) \(acceptance.version?.description ?? "-") \(acceptance.account ?? "-"): \(wording)"
        }
    }

    @Test func `T19: every acceptance and withdrawal is kept with its wording, over restarts`() async throws {
        let first = try await store()
        let eula = try await first.text(for: "eula")
        try await first.accept(eula)
        bench.time.advance(by: .seconds(60))
        try await first.accept(eula)
        try await first.accept(eula, account: "ada")
        let next = try await store("2.0.0", "Terms 2\nBe kind.")
        try await next.accept(next.text(for: "eula"), account: "ada")
        #expect(try await next.withdrawAcceptances(of: "eula", account: "ada"))
        #expect(try await !next.withdrawAcceptances(of: "eula", account: "ada"))
        #expect(try await !next.withdrawAcceptances(of: "eula", account: "eve"))
        try await next.accept(next.text(for: "privacy"), account: "ada")
        try await next.clear()
        let expected = [
            "accepted eula 1.0.0 -: Terms 1\nBe kind.", "accepted eula 1.0.0 -: Terms 1\nBe kind.",
            "accepted eula 1.0.0 ada: Terms 1\nBe kind.",
            "accepted eula 2.0.0 ada: Terms 2\nBe kind.", "withdrawn eula 2.0.0 ada: Terms 2\nBe kind.", "accepted privacy - ada: Privacy",
        ]
        for store in [next, try await store()] {
            let records = try await store.acceptanceRecords()
            #expect(brief(records) == expected)
            #expect(records[1].acceptance.date == records[0].acceptance.date.addingTimeInterval(60))
            for record in records { #expect(record.acceptance.digest == record.wording.map(sha256)) }
        }
        // The wording is saved once.
        let path = try #require(bench.place.files.first { $0.hasSuffix("/evidence") })
        let log = String(decoding: try Data(contentsOf: bench.place.file(path)), as: UTF8.self)
        #expect(log.ranges(of: "Terms 1").count == 1)
    }

    @Test func `T19: acceptances count although the lock of the evidence cannot be opened`() async throws {
        let first = try await store()
        let eula = try await first.text(for: "eula")
        try await first.accept(eula)
        let lock = bench.place.file(try #require(bench.place.files.first { $0.hasSuffix("/evidence.lock") }))
        try FileManager.default.removeItem(at: lock)
        try FileManager.default.createDirectory(at: lock, withIntermediateDirectories: false)
        let next = try await store()
        #expect(await !next.needsAcceptance(of: eula))
        #expect(try await brief(next.acceptanceRecords()) == ["accepted eula 1.0.0 -: Terms 1\nBe kind."])
        await #expect(throws: TextStoreError.self) { try await next.accept(eula, account: "ada") }
    }

    @Test func `T19: without the policy nothing is kept, and no file is written`() async throws {
        let store = try await store(keeps: false)
        try await store.accept(store.text(for: "eula"))
        #expect(try await store.acceptanceRecords() == [])
        #expect(bench.place.files.filter { $0.contains("evidence") } == [])
        let acceptance = try #require(try await store.acceptance(of: "eula"))
        let error = await #expect(throws: TextStoreError.self) { try await store.changes(since: acceptance) }
        #expect(error?.code == .notAvailable && error?.message.contains("keep all acceptances in the policy") == true)
    }

    @Test func `T19, T13: acceptances belong to an account, and a withdrawal concerns no other one`() async throws {
        let store = try await store()
        let eula = try await store.text(for: "eula")
        try await store.accept(eula, account: "ada")
        for account in [nil, "eve", "Ada", ""] { #expect(await store.needsAcceptance(of: eula, account: account), "\(account ?? "-")") }
        #expect(await !store.needsAcceptance(of: eula, account: "ada"))
        try await store.accept(eula, account: "eve")
        try await store.accept(eula)
        #expect(try await store.withdrawAcceptances(of: "eula", account: "ada"))
        for store in [store, try await self.store()] {
            #expect(await store.needsAcceptance(of: eula, account: "ada"))
            #expect(try await store.acceptance(of: "eula", account: "ada") == nil)
            for account in [nil, "eve"] { #expect(await !store.needsAcceptance(of: eula, account: account)) }
        }
        try await store.accept(eula, account: "ada")
        #expect(await !store.needsAcceptance(of: eula, account: "ada"))
    }

    @Test func `T19: acceptances that were saved before the evidence count, and survive a withdrawal by another account`() async throws {
        let before = try await store(keeps: false)
        let eula = try await before.text(for: "eula")
        try await before.accept(eula)
        try await before.accept(eula, account: "ada")
        let store = try await store()
        #expect(try await store.withdrawAcceptances(of: "eula", account: "ada"))
        for store in [store, try await self.store(), try await self.store(keeps: false)] {
            #expect(await !store.needsAcceptance(of: eula))
            #expect(await store.needsAcceptance(of: eula, account: "ada"))
        }
        #expect(brief(try await store.acceptanceRecords()) == ["withdrawn eula 1.0.0 ada: lost"])
    }

    @Test func `T13, T19: a withdrawal by a store without evidence stays in stores that keep it`() async throws {
        let first = try await store()
        let eula = try await first.text(for: "eula")
        try await first.accept(eula)
        #expect(try await store(keeps: false).withdrawAcceptances(of: "eula"))
        for store in [first, try await store()] { #expect(await store.needsAcceptance(of: eula)) }
    }

    enum Loss: CaseIterable { case saved, removed, damaged }

    /// The record is saved, and the process ends before the acceptances are, or these are lost later.
    @Test(arguments: Loss.allCases)
    func `T19: a record that the saved acceptances lack counts at the next start`(loss: Loss) async throws {
        let first = try await store()
        let eula = try await first.text(for: "eula")
        try await first.accept(eula, account: "ada")
        let names = bench.place.files.filter { $0.contains("/accepted.") }
        #expect(names.count == 2)
        let old = try names.map { try Data(contentsOf: bench.place.file($0)) }
        try await first.accept(eula, account: "eve")
        try await first.withdrawAcceptances(of: "eula", account: "ada")
        switch loss {
        case .saved: for (name, bytes) in zip(names, old) { try bytes.write(to: bench.place.file(name)) }
        case .removed: for name in names { try FileManager.default.removeItem(at: bench.place.file(name)) }
        case .damaged: try bench.place.damage("/accepted.")
        }
        let next = try await store()
        #expect(await next.needsAcceptance(of: eula, account: "ada"))
        #expect(await !next.needsAcceptance(of: eula, account: "eve"))
        try await next.accept(eula, account: "bob")
        for account in ["eve", "bob"] { #expect(await !next.needsAcceptance(of: eula, account: account)) }
        #expect(try await next.acceptanceRecords().count == 4)
    }

    @Test func `T19: damage loses only the records that it hits, is reported, and the wording is saved again`() async throws {
        let first = try await store()
        let eula = try await first.text(for: "eula")
        for account in ["ada", "eve", "bob"] { try await first.accept(eula, account: account) }
        let path = try #require(bench.place.files.first { $0.hasSuffix("/evidence") })
        var bytes = try Data(contentsOf: bench.place.file(path))
        let hit = try #require(bytes.firstRange(of: Data("Terms 1".utf8)))
        bytes[hit.lowerBound] ^= 1
        try bytes.write(to: bench.place.file(path))
        let next = try await store()
        #expect(brief(try await next.acceptanceRecords()) == ["accepted eula 1.0.0 eve: lost", "accepted eula 1.0.0 bob: lost"])
        #expect(bench.events.faults.contains { $0.code == .damagedFile && $0.message.contains("evidence") })
        try await next.accept(eula, account: "cleo")
        #expect(brief(try await next.acceptanceRecords()).last == "accepted eula 1.0.0 cleo: Terms 1\nBe kind.")
        #expect(try await next.acceptanceRecords().allSatisfy { $0.wording != nil })
    }

    @Test func `T19: a file that is no evidence is kept, and acceptance and withdrawal fail with the reason`() async throws {
        let store = try await store()
        let eula = try await store.text(for: "eula")
        try await store.accept(eula)
        let path = try #require(bench.place.files.first { $0.hasSuffix("/evidence") })
        try Data("a letter".utf8).write(to: bench.place.file(path))
        let next = try await self.store()
        await #expect(throws: TextStoreError.self) { try await next.accept(eula, account: "ada") }
        await #expect(throws: TextStoreError.self) { try await next.withdrawAcceptances(of: "eula") }
        #expect(await next.needsAcceptance(of: eula, account: "ada"))
        #expect(try Data(contentsOf: bench.place.file(path)) == Data("a letter".utf8))
    }

    // MARK: Exports

    /// A reader of RFC 4180.
    private func table(_ data: Data) -> [[String]] {
        var rows: [[String]] = [], row: [String] = [], cell = "", isQuoted = false
        var scalars = Array(String(decoding: data, as: UTF8.self).unicodeScalars)[...]
        while let scalar = scalars.popFirst() {
            switch (scalar, isQuoted) {
            case ("\"", true) where scalars.first == "\"":
                scalars.removeFirst()
                cell.unicodeScalars.append("\"")
            case ("\"", _): isQuoted.toggle()
            case (",", false):
                row.append(cell)
                cell = ""
            case ("\r", false) where scalars.first == "\n":
                scalars.removeFirst()
                rows.append(row + [cell])
                (row, cell) = ([], "")
            default: cell.unicodeScalars.append(scalar)
            }
        }
        #expect(row.isEmpty && cell.isEmpty && !isQuoted)
        return rows
    }

    private static let hostile = [
        "plain", "", "a,b", "say \"hello\"", "two\nlines", "two\r\nlines", "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1",
        "\u{FEFF}=1", "＝1", "＋1", "－1", "＠1", "'=1", "\u{2028}\u{85}\u{7F}\u{0}\u{1F}", "🇩🇪 é e\u{301}", "\"", "\",\"=1", "x\"\u{301},=1",
        "a=1", "\\ud800\\",
    ]

    @Test(arguments: hostile)
    func `T19: an export gives every text back, and no cell is a formula`(text: String) throws {
        let date = Date(timeIntervalSince1970: 1_700_000_000.25)
        let acceptance = Acceptance(
            identifier: text, version: SemanticVersion("1.2.3"), digest: "00ff", date: date, language: "de", account: text)
        let records = [
            AcceptanceRecord(kind: .accepted, acceptance: acceptance, wording: text),
            AcceptanceRecord(kind: .withdrawn, acceptance: acceptance),
        ]
        let lines = String(decoding: AcceptanceRecord.export(records, as: .jsonLines), as: UTF8.self).split(
            separator: /\n|\r\n|\u{2028}|\u{85}/)
        #expect(lines.count == 2)
        for (number, line) in lines.enumerated() {
            let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            #expect(
                object["identifier"] as? String == text && object["account"] as? String == text && object["language"] as? String == "de")
            #expect(object["kind"] as? String == ["accepted", "withdrawn"][number] && object["verified"] as? Bool == true)
            #expect(object["date"] as? String == "2023-11-14T22:13:20.250Z" && object["version"] as? String == "1.2.3")
            #expect(number == 0 ? object["wording"] as? String == text : object["wording"] is NSNull)
        }
        let rows = table(AcceptanceRecord.export(records, as: .csv))
        #expect(
            rows.count == 3 && rows[0] == ["kind", "identifier", "version", "digest", "language", "account", "date", "verified", "wording"])
        let shown = rows[1][1], signs = "=+-@\t\r\n＝＋－＠".unicodeScalars
        #expect(shown == text || shown == "'" + text)
        #expect(rows[1][8] == shown && rows[2][8] == "")
        let first = shown.unicodeScalars.first { ![" ", "\u{A0}", "\u{FEFF}"].contains($0) }
        #expect(first.map { !signs.contains($0) } ?? true, "\(shown.debugDescription) is a formula")
    }

    @Test func `T19: an export while accepting has whole records, in order, and none is missing`() async throws {
        let (writer, reader) = (try await store(), try await store())
        let eula = try await writer.text(for: "eula")
        let count = isWholeRun ? 400 : 60
        try await withThrowingTaskGroup { group in
            group.addTask { for number in 0..<count { try await writer.accept(eula, account: "\(number)") } }
            group.addTask {
                var last = 0
                while last < count {
                    let records = try await reader.acceptanceRecords()
                    #expect(records.map(\.acceptance.account) == (0..<records.count).map { "\($0)" } && records.count >= last)
                    #expect(records.allSatisfy { $0.wording == eula.text })
                    last = records.count
                    await Task.yield()
                }
            }
            try await group.waitForAll()
        }
        #expect(String(decoding: try await reader.exportAcceptances(as: .jsonLines), as: UTF8.self).split(separator: "\n").count == count)
        #expect(table(try await reader.exportAcceptances(as: .csv)).count == count + 1)
    }
}

#if os(macOS) || os(Linux)

/// T19: processes that are killed while they save acceptances and withdrawals.
@Suite(.serialized, .timeLimit(.minutes(hangMinutes)))
struct EvidenceCrashTests {
    private let bench: Bench
    private let program: String

    init() throws {
        bench = try Bench()
        program = try ChildProcess.path(of: "TextCrashWriter")
    }

    private func store(_ directory: String) throws -> TextStore {
        try TextStore(
            session: "crash", directory: URL(filePath: directory, directoryHint: .isDirectory), bundle: .main,
            fetcher: HTTPTextFetcher(), policy: TextStorePolicy(evidence: .allAcceptances), time: .system, options: FileWriteOptions(),
            patience: hangLimit, onEvent: { [bench] in bench.events.record($0) })
    }

    /// Checks that the records are whole and in order, and that the acceptances follow from them.
    private func check(_ directory: String, saved: [Int], _ comment: String) async throws {
        let store = try store(directory)
        let records = try await store.acceptanceRecords()
        var accepted: Set<Int> = [], numbers: [Int] = []
        for record in records {
            let version = Int(record.acceptance.version?.major ?? 0)
            #expect(
                record.wording == "one \(version)" && record.acceptance.digest == sha256("one \(version)"), "\(comment): \(version) is torn"
            )
            // Each third version is withdrawn after its acceptance.
            if record.kind == .accepted { accepted.insert(version) } else { accepted.remove(version) }
            numbers.append(record.kind == .accepted ? version : -version)
            #expect(record.acceptance.account == "\(version)", "\(comment)")
        }
        #expect(Set(numbers).isSuperset(of: saved), "\(comment): \(Set(saved).subtracting(numbers)) lost")
        #expect(Set(numbers).count == numbers.count, "\(comment): a record is there twice")
        for version in Set(numbers.map(abs)) {
            let text = VersionedText(identifier: "one", text: "one \(version)", version: SemanticVersion("\(version).0.0"))
            #expect(
                await store.needsAcceptance(of: text, granularity: .digest, account: "\(version)") == !accepted.contains(version),
                "\(comment): \(version)")
        }
        #expect(bench.events.faults.isEmpty, "\(comment)")
    }

    @Test func `T19: kill -9 at a random moment loses and tears no acceptance and no withdrawal`() async throws {
        let directory = bench.place.file("evidence").path(percentEncoded: false)
        var saved: [Int] = []
        var first = 0
        for seed in seeds(UInt64(200), quick: 3) {
            var dice = SplitMix(seed: seed)
            // No version twice: the last version of a process may be saved, and not printed, even if it is its first.
            first = max(first, saved.map(abs).max() ?? 0) + 2
            let children = try (0..<Int.random(in: 1...2, using: &dice)).map { number in
                try ChildProcess(program, [directory, "-", "\(first + number * 10_000)", "-", "one", "1", "5000", "evidence"])
            }
            saved += numbers(of: children, killedAfter: 0...12, &dice)
            try await check(directory, saved: saved, "seed \(seed)")
        }
    }

    @Test(arguments: Array(1...6))
    func `T19: kill -9 after any step of saving the acceptances leaves the record in both or the earlier state`(step: Int) async throws {
        let directory = bench.place.file("evidence").path(percentEncoded: false)
        var saved: [Int] = []
        for (first, death, count) in [(2, "-", 3), (6, "\(step)", 1), (9, "\(step)", 1)] {
            let child = try ChildProcess(program, [directory, "-", "\(first)", death, "one", "1", "\(count)", "evidence"])
            while let line = child.readLine() { if let number = Int(line) { saved.append(number) } }
        }
        try await check(directory, saved: saved, "step \(step)")
    }
}

#endif
