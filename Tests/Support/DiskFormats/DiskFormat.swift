public import Foundation
internal import StoreCore
internal import StoreFiles
internal import StorePlatform

/// A kind of file on disk, with the code that writes and reads it as its owner does.
public struct DiskFormat: Sendable, CustomStringConvertible {
    private enum Kind: Sendable {
        case log(LogFormat)
        case sealed(SealedFile)
        case record
        case note
    }

    private let kind: Kind

    /// The note in the file of a lease. It has no checksum and is written in place, so its reader cannot tell every damage.
    public static let leaseNote = DiskFormat(kind: .note)
    fileprivate static let leaseName = "1.lease"

    /// Every kind that keeps its values complete or absent.
    public static let all: [DiskFormat] = {
        var kinds = LogFormat.all.map { Kind.log($0) }
        kinds += SealedFile.all.map { .sealed($0) }
        return (kinds + [.record]).map { DiskFormat(kind: $0) }
    }()

    /// The kind in words.
    public var description: String {
        switch kind {
        case .log(let format): format.noun
        case .sealed(let format): "a sealed file of kind \(format.temporaryKind)"
        case .record: "a record"
        case .note: "a note of a lease"
        }
    }

    /// Whether a write is kept beside the earlier ones. Otherwise it replaces them.
    public var isLog: Bool { if case .log = kind { true } else { false } }

    /// Whether a reader notices each changed bit.
    public var hasChecksum: Bool { if case .note = kind { false } else { true } }

    /// The values that a start finds.
    public struct Found: Sendable, Hashable {
        /// The values in order; −1 for a torn one.
        public var values: [Int]
        /// Whether damage was reported.
        public var isDamaged: Bool

        /// Makes the values to compare with.
        public init(values: [Int], isDamaged: Bool) { (self.values, self.isDamaged) = (values, isDamaged) }
    }

    /// Returns the values that a start finds after some were written.
    public func expected(_ written: [Int]) -> [Int] { isLog ? written : written.suffix(1) }

    /// Returns the file in a directory; `nil` if there is none.
    public func file(in directory: URL) throws -> URL? {
        let ending = isLog ? "log" : "ed"
        return try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
            .first { $0.lastPathComponent.hasSuffix(ending) || ["record", "lease"].contains($0.pathExtension) }
    }

    /// Reads the file as a new start does.
    public func read(_ url: URL) async throws -> Found {
        switch kind {
        case .log(let format): try Self.read(format, url)
        case .sealed(let format): try Self.read(format, url)
        case .record: try await Self.readRecord(url)
        case .note: try Self.readNote(url)
        }
    }

    private static func readNote(_ url: URL) throws -> Found {
        let folder = try DirectoryHandle(opening: directory(url))
        let holder = try folder.flatMap { try LeaseNote.read(leaseName, in: $0).note.holder }
        return Found(values: holder.map { [Int(clamping: $0)] } ?? [], isDamaged: false)
    }

    private static func read(_ format: LogFormat, _ url: URL) throws -> Found {
        try found { () throws(StoreError) in
            let news = try log(format, url).read()
            return Found(values: news.entries.map(\.number), isDamaged: !news.damages.isEmpty)
        }
    }

    private static func read(_ format: SealedFile, _ url: URL) throws -> Found {
        let folder = try DirectoryHandle(opening: directory(url))
        return try found { () throws(StoreError) in
            var reader = SealedFile.Reader(format, in: folder)
            let number = try reader.read("sealed") { Value(reading: $0).number }
            return Found(values: number.map { [$0] } ?? [], isDamaged: false)
        }
    }

    /// Returns the values that a reader finds; a file that it refuses counts as damaged.
    private static func found(_ read: () throws(StoreError) -> Found) throws(StoreError) -> Found {
        do throws(StoreError) { return try read() } catch {
            guard error.code == .unreadableRecord else { throw error }
            return Found(values: [], isDamaged: true)
        }
    }

    private static func readRecord(_ url: URL) async throws -> Found {
        let isDamaged = Lock(false)
        let cacher = FileCacher<Int, String>(directory: url) { fault in if fault.kind == .damaged { isDamaged.withLock { $0 = true } } }
        let text = try await cacher.load(param: 0)?.content
        return Found(values: text.map { [Value(text: $0).number] } ?? [], isDamaged: isDamaged.withLock { $0 })
    }

    /// Replaces the file with one of a single value, as another process does.
    public func replace(_ url: URL, by number: Int) async throws {
        if case .log(let format) = kind {
            try Self.log(format, url).compact { _ in [Value(number)] }
        } else {
            try await open(url).write(number)
        }
    }

    private static func log(_ format: LogFormat, _ url: URL) throws(StoreError) -> SharedLog<Value> {
        let log = SharedLog<Value>(directory(url), format)
        try log.prepare()
        return log
    }

    private static func directory(_ url: URL) -> Directory { Directory(path: url.path(percentEncoded: false)) }

    /// An owner of the file that stays open.
    public struct Owner: Sendable {
        fileprivate enum Kind: Sendable {
            case log(SharedLog<Value>)
            case sealed(SealedFile, Directory)
            case record(FileCacher<Int, String>)
            case note(Directory)
        }

        fileprivate let kind: Kind

        /// Writes a value.
        public func write(_ number: Int) async throws {
            switch kind {
            case .log(let log): _ = try log.append([Value(number)], durability: .crash)
            case .sealed(let format, let directory):
                try directory.create()
                try format.write(Array(Value(number).text.utf8), as: "sealed", in: directory)
            case .record(let cacher): try await cacher.save(CacheRecord(content: Value(number).text, fetchedAt: Date()), param: 0)
            case .note(let directory):
                try directory.create()
                guard let folder = try DirectoryHandle(opening: directory) else { return }
                try LeaseNote(holder: UInt64(number)).write(to: WritableFile(DiskFormat.leaseName, in: folder, mode: 0o600))
            }
        }
    }

    /// Opens the file.
    public func open(_ url: URL) throws -> Owner {
        switch kind {
        case .log(let format): Owner(kind: .log(try Self.log(format, url)))
        case .sealed(let format): Owner(kind: .sealed(format, Self.directory(url)))
        case .record: Owner(kind: .record(FileCacher(directory: url)))
        case .note: Owner(kind: .note(Self.directory(url)))
        }
    }
}

/// A number as a text, from which a reader can tell whether it is whole. A number of a thousand or more has as many bytes.
private struct Value: LogEntry {
    let number: Int

    init(_ number: Int) { self.number = number }

    var text: String { "\(number) " + String(repeating: "x", count: number < 1000 ? number * 17 % 60 : number) }

    init(text: String) {
        let found = Self(text.split(separator: " ").first.flatMap { Int($0) } ?? -1)
        self = found.text == text ? found : Self(-1)
    }

    init(reading bytes: UnsafeRawBufferPointer) { self.init(text: String(decoding: bytes, as: UTF8.self)) }

    func write(to writer: inout ByteWriter) { writer.append(text.utf8) }
}
