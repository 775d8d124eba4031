import Foundation
import StoreCore
import Testing
import Trials

@testable import TextStore

#if os(macOS) || os(Linux)

/// T3, T4, T5, T7: saves that the disk refuses, with real disks and real limits of the system.
struct DiskTests {
    let place: TemporaryDirectory
    let program: String

    init() throws {
        place = try TemporaryDirectory()
        program = try ChildProcess.path(of: "TextCrashWriter")
    }

    private var path: String { place.url.path(percentEncoded: false) }

    private func lines(_ child: ChildProcess) -> [String] { Array(sequence(state: child) { $0.readLine() }) }

    /// The texts of versions 3, 6, 9, and 12 exceed the limit: their sizes, such as 5 757 and 5 514 bytes, are above 5 000.
    @Test(arguments: ["-", "set"])
    func `T3, T4, T7: a file-size limit fails the switch with its reason, keeps the old set, and lets smaller texts pass`(
        group: String
    ) throws {
        let found = lines(try ChildProcess(program, [path, group, "1", "-", "one,two,three", "1", "14", "limited"]))
        var expected: [String] = []
        var last = 0
        for version in 1...14 {
            if version * 7919 % 6000 < 4_700 {
                last = version
                expected.append("\(version)")
            } else {
                expected.append("failed \(version) fileSystem, shows \(last)")
            }
        }
        #expect(found == expected + ["restart \(last) \(last) \(last)"])
        #expect(!place.files.contains { $0.hasSuffix(".tmp") })
    }

    @Test(.enabled(if: canMountSmallDisks(), "this process may not mount a small disk"))
    func `T3, T4, T7: a full disk fails the switch with its reason, and the old set stays whole`() throws {
        let words = [path, "set", "1", "-", "one,two,three", "1", "30"]
        let found = lines(try ChildProcess(onDisk: "size=48k,mode=700", at: path, "TextCrashWriter", words))
        var last = 0
        for line in found.dropLast() {
            if let version = Int(line) { last = version } else { #expect(line.hasSuffix(" fileSystem, shows \(last)"), "\(line)") }
        }
        #expect(found.count == 31 && found.last == "restart \(last) \(last) \(last)", "\(found)")
        let failures = found.filter { $0.hasPrefix("failed") }.count
        #expect(failures > 0 && failures < 30, "\(found)")
    }

    @Test(.enabled(if: canMountSmallDisks(), "this process may not mount a small disk"))
    func `T5: a read-only disk fails the save with its reason, and saved texts are readable`() throws {
        let writing = try ChildProcess(program, [path, "set", "1", "-", "one,two,three", "1", "1"])
        #expect(lines(writing) == ["1", "restart 1 1 1"])
        let script = "mount --bind -o ro '\(path)' '\(path)' && exec '\(program)' '\(path)' set 2 - one,two,three 1 1"
        let found = lines(try ChildProcess("/usr/bin/unshare", ["-m", "/bin/sh", "-c", script]))
        #expect(found == ["failed 2 fileSystem, shows 1", "restart 1 1 1"])
    }

    @Test func `T5: an unwritable directory fails the save with its reason, and a start finds no texts`()
        throws
    {
        try FileManager.default.setAttributes([.posixPermissions: 0o555], ofItemAtPath: path)
        // Lets the test remove its own directory.
        defer { try? FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path) }
        let found = lines(try ChildProcess(program, [path, "set", "1", "-", "one,two,three", "1", "2", "unprivileged"]))
        #expect(found == ["failed 1 fileSystem, shows nothing", "failed 2 fileSystem, shows nothing", "restart nothing nothing nothing"])
    }
}

#endif
