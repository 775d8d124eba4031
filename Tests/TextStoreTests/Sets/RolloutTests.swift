import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T21: entries with conditions: an app version, a platform, a date, a share of devices.
struct RolloutTests {
    private let bench: Bench
    private static let start = Date(timeIntervalSince1970: 1_800_000_000)

    init() throws { bench = try Bench() }

    private func manifest(_ text: String) throws -> VersionManifest { try VersionManifest(parsing: Data(text.utf8)) }

    private func chosen(
        _ entry: String, _ audience: TextAudience? = TextAudience(appVersion: SemanticVersion("2.0.0"), platform: "ios"),
        device: UInt64? = 1,
        at now: Date = start
    ) throws -> VersionManifest {
        try manifest(#"{"texts":{"eula":\#(entry),"privacy":"1.0.0"}}"#).chosen(for: audience, on: device, at: now)
    }

    @Test(
        arguments: [
            (#"{"app":"2.0.0"}"#, true), (#"{"app":"2"}"#, true), (#"{"app":"2.0.1"}"#, false), (#"{"app":"1.9.9"}"#, true),
            (#"{"platforms":["ios","macos"]}"#, true), (#"{"platforms":["linux"]}"#, false), (#"{"from":"2027-01-15T08:00:00Z"}"#, true),
            (#"{"from":"2027-01-15T08:00:01Z"}"#, false), (#"{"percent":100}"#, true), (#"{"percent":0}"#, false),
            (#"{"app":"2.0.0","platforms":["linux"]}"#, false), (#"{"app":"2.0.0","platforms":["ios"],"percent":100}"#, true),
        ])
    func `T21: the first entry whose conditions are all met counts`(when: String, isMet: Bool) throws {
        let list = try chosen(#"[{"version":"2.0.0","when":\#(when)},{"version":"1.5.0"}]"#)
        #expect(list.entries["eula"]?.version.description == (isMet ? "2.0.0" : "1.5.0"))
        let alone = try chosen(#"{"version":"2.0.0","when":\#(when)}"#)
        #expect(alone.entries["eula"]?.version.description == (isMet ? "2.0.0" : nil))
        #expect(list.entries["privacy"] != nil && list.problems == [] && alone.problems == [])
        // An app that states nothing meets no condition of its version or platform.
        let silent = try chosen(#"{"version":"2.0.0","when":\#(when)}"#, TextAudience()).entries["eula"]
        if when.contains("app") || when.contains("platforms") { #expect(silent == nil) }
    }

    private static let malformed = [
        #"{"percent":120}"#, #"{"percent":-1}"#, #"{"percent":1e999}"#, #"{"percent":"NaN"}"#, #"{"percent":"10 %"}"#, #"{"percent":null}"#,
        #"{"app":"soon"}"#, #"{"app":2}"#, #"{"platforms":[]}"#, #"{"platforms":"ios"}"#, #"{"platforms":["ios",1]}"#,
        #"{"from":"tomorrow"}"#, #"{"draw":""}"#, "{}", "[]", "true", #"{"percent":10,"percent":20}"#, #"{"country":"AT","percent":10}"#,
    ]

    private static let malformedLists = ["[]", #"["2.0.0","1.0.0"]"#, #"[{"version":"x","when":{"percent":1}},"1.0.0"]"#, "[[]]"]

    @Test(
        arguments: malformedLists
            + malformed.flatMap { [#"{"version":"2.0.0","when":\#($0)}"#, #"[{"version":"2.0.0","when":\#($0)},{"version":"1.0.0"}]"#] })
    func `T21: malformed conditions or a malformed list refuse their text with the reason, and no other one`(entry: String) throws {
        let found = try chosen(entry)
        #expect(found.entries.keys.sorted() == ["privacy"] && found.problems.map(\.identifier) == ["eula"])
        #expect(found.problems.first?.refusal.code == .malformedEntry && found.problems.first?.reason.isEmpty == false)
    }

    @Test func `T21: NaN in a manifest is no JSON, and conditions without an audience are a problem of their text alone`() throws {
        let error = #expect(throws: TextStoreError.self) { try manifest(#"{"texts":{"eula":{"version":"1.0.0","when":{"percent":NaN}}}}"#) }
        #expect(error?.code == .malformedManifest)
        let found = try chosen(#"{"version":"2.0.0","when":{"percent":50}}"#, nil)
        #expect(found.problems.map(\.identifier) == ["eula"] && found.entries.keys.sorted() == ["privacy"])
        #expect(found.problems.first?.reason.contains("set the audience") == true)
    }

    @Test func `T21: a larger share contains the devices of a smaller one, and about as many as it says`() {
        var dice = SplitMix(seed: 7)
        let devices = (0..<1_000).map { _ in UInt64.random(in: .min ... .max, using: &dice) }
        var before: Set<UInt64> = []
        for percent in [0, 1, 5, 10, 25, 50, 75, 99, 100] {
            let conditions = Conditions(share: Double(percent) / 100)
            let reached = Set(devices.filter { conditions.areMet(by: TextAudience(), "eula", on: $0, at: Self.start) })
            #expect(reached.isSuperset(of: before), "\(percent)")
            #expect(abs(Double(reached.count) / 1_000 - Double(percent) / 100) < 0.025, "\(percent): \(reached.count)")
            before = reached
        }
        // Draws of different names are independent, and those of one name are the same.
        func reached(_ name: String, _ draw: String?) -> [UInt64] {
            devices.filter { Conditions(share: 0.5, draw: draw).areMet(by: TextAudience(), name, on: $0, at: Self.start) }
        }
        #expect(reached("eula", "winter") == reached("privacy", "winter") && reached("eula", nil) != reached("privacy", nil))
        let both = Set(reached("eula", nil)).intersection(reached("privacy", nil)).count
        #expect(abs(Double(both) / 1_000 - 0.25) < 0.03)
        // A number that cannot be read is in no share but the whole.
        for (share, isMet) in [(0.99, false), (1, true)] {
            #expect(Conditions(share: share).areMet(by: TextAudience(), "eula", on: nil, at: Self.start) == isMet)
        }
        // The place is part of the format: another hash would draw other devices after an update.
        #expect(Conditions.place(of: 1, in: "eula") == Self.placeOfOne)
        #expect(Conditions.place(of: 1, in: "é") == Conditions.place(of: 1, in: "e\u{301}"))
    }

    /// The first 53 bits of the SHA-256 of `eula`, a line feed, and `1`.
    private static let placeOfOne: Double = {
        let hex = sha256("eula\n1").prefix(16)
        return Double((UInt64(hex, radix: 16) ?? 0) >> 11) / 9_007_199_254_740_992
    }()

    private func store(_ session: String, bundle: Bundle? = nil, _ names: String...) async throws -> TextStore {
        let store = try bench.store(session, bundle: bundle, policy: TextStorePolicy(checkInterval: .zero))
        try await store.register((["eula"] + names).map { bench.source($0) })
        var source = bench.versions
        source.audience = TextAudience(platform: "linux")
        await store.setVersionSource(source)
        return store
    }

    private func serve(percent: Double, revision: Int) {
        bench.serve(
            manifest:
                #"{"revision":\#(revision),"texts":{"eula":[{"version":"2.0.0","when":{"percent":\#(percent)}},{"version":"1.0.0"}]}}"#)
    }

    @Test func `T21: raising a share takes no text back, and each device decides alike at each start, also offline`() async throws {
        bench.serve("eula", "Remote terms 2")
        var reached: Set<String> = []
        let (percents, devices) = isWholeRun ? ([0, 20, 50, 80, 100, 30], 0..<8) : ([0, 50, 100, 30], 0..<3)
        for (number, percent) in percents.enumerated() {
            try? bench.origin.comeBack()
            serve(percent: Double(percent), revision: number + 1)
            // A device that drew again at each start would be reached sooner or later.
            for pass in 0..<(percent == 50 ? 4 : 1) {
                for device in devices {
                    let name = "device-\(device)", store = try await store(name)
                    // A share that was lowered lists a version below the floor, which changes nothing.
                    _ = try? await store.refresh()
                    let isNew = try await store.text(for: "eula").version == SemanticVersion("2.0.0")
                    #expect(isNew || !reached.contains(name), "\(percent) % takes the text of \(name) back")
                    if pass > 0 { #expect(isNew == reached.contains(name), "\(name) decides anew") }
                    if isNew { reached.insert(name) }
                    if percent == 0 { #expect(!isNew) }
                    if percent == 100 { #expect(isNew) }
                }
            }
            bench.origin.goDown()
            for device in devices {
                let name = "device-\(device)"
                let isNew = try await store(name).text(for: "eula").version == SemanticVersion("2.0.0")
                #expect(isNew == reached.contains(name), "\(percent) %, \(name)")
            }
        }
        #expect(bench.place.files.filter { $0.contains("/device.") }.count == 2 * devices.count)
    }

    @Test(
        arguments: [
            (#"{"percent":0}"#, "3.0.0", false), (#"{"percent":0}"#, "2.0.0", true), (#"{"app":"9.0.0"}"#, "3.0.0", true),
        ])
    func `T21: a lowered share takes no text back, even if the other devices get a rollback`(
        when: String, shown: String, isBack: Bool
    ) throws {
        let list = #"[{"version":"3.0.0","when":\#(when)},{"version":"1.0.0","rollback":true}]"#
        let found = try manifest(#"{"revision":9,"texts":{"eula":\#(list)}}"#).chosen(for: TextAudience(), on: 1, at: Self.start)
        let entry = try #require(found.entries["eula"])
        let floor = Floor(rank: Rank(version: SemanticVersion(shown)), withdrawn: nil, digest: digest("shown"))
        #expect((floor.rankOfOffered(entry, edition: found.edition) > floor.rank) == isBack)
    }

    @Test func `T21: a device that meets no conditions does not fetch the text without them`() async throws {
        bench.serve("eula", "Remote terms 2")
        bench.serve(manifest: #"{"texts":{"eula":{"version":"2.0.0","when":{"percent":0}}}}"#)
        let store = try await store("none", bundle: bench.bundle([:])).refreshed()
        let error = await #expect(throws: TextStoreError.self) { try await store.text(for: "eula", awaiting: patient) }
        #expect(error?.code == .notAvailable && bench.origin.requests(to: "/eula.txt").isEmpty)
    }

    @Test func `T21: a date takes effect at the first check after it, even if the manifest is unchanged`() async throws {
        bench.serve("eula", "Remote terms 2")
        let date = bench.time.date.addingTimeInterval(600).formatted(.iso8601)
        bench.serve(manifest: #"{"texts":{"eula":[{"version":"2.0.0","when":{"from":"\#(date)"}},{"version":"1.0.0"}]}}"#)
        let store = try await store("dated")
        try await store.refresh()
        #expect(line(try await store.text(for: "eula")) == "1.0.0 bundle: Bundled terms 1")
        bench.time.advance(by: .seconds(601))
        try await store.refresh()
        #expect(line(try await store.text(for: "eula")) == "2.0.0 remote: Remote terms 2")
        #expect(bench.origin.requests(to: "/versions.json").last?.status == 304)
    }

    @Test func `T21, T7: a set reaches a device as a whole`() async throws {
        bench.serve("eula", "Remote terms 2")
        bench.serve("privacy", "Remote privacy 2")
        func entry(_ percent: Int) -> String {
            #"[{"version":"2.0.0","group":"legal","when":{"percent":\#(percent)}},{"version":"1.0.0","group":"legal"}]"#
        }
        bench.serve(manifest: #"{"texts":{"eula":\#(entry(50)),"privacy":\#(entry(50))}}"#)
        for device in 0..<8 {
            let versions = try await store("set-\(device)", "privacy").refreshed().versions()
            #expect(versions[0] == versions[1])
        }
    }
}
