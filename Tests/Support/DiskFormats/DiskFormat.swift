public import Foundation
internal import StoreCore
internal import StoreFiles
internal import StorePlatform

/// A kind of file on disk, with the code that writes and reads it as its owner does.
public struct DiskFormat: Sendable, CustomStringConvertible {
    /// Writes a value.
    public typealias Write = @Sendable (Int) async throws -> Void

    /// The values that a start finds.
    public struct Found: Sendable, Hashable {
        /// The values in order; −1 for a torn one.
        public var values: [Int]
        /// Whether damage was reported.
        public var isDamaged: Bool
    }

    public let description: String
    /// Whether a write is kept beside the earlier ones. Otherwise it replaces them.
    public let isLog: Bool
    /// The end of the file's name.
    private let ending: String
    /// Returns the code of an owner that stays open.
    public let open: @Sendable (URL) throws -> Write
    /// Reads the file as a new start does.
    public let read: @Sendable (URL) async throws -> Found
    /// Replaces the file by one with a single value, as another process does.
    public let replace: @Sendable (URL, Int) async throws -> Void

    public static let all = LogFormat.all.map { Self(log: $0) } + SealedFile.all.map { Self(sealed: $0) } + [record]

    /// Returns the file in a directory; `nil` if there is none.
    public func file(in directory: URL) throws -> URL? {
        try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
            .first { $0.lastPathComponent.hasSuffix(ending) }
    }

    /// Returns the values that a start finds after some were written.
    public func expected(_ written: [Int]) -> [Int] { isLog ? written : written.suffix(1) }
}

/// A number as a text, from which a reader can tell whether it is whole. A number of a thousand or more has as many bytes.
private struct Value: LogEntry {
    let number: Int

    init(_ number: Int) { self.number = number }

    var text: String { "\(number) " + String(repeating: "x", count: number < 1000 ? number * 7 % 30 : number) }

    init(reading bytes: UnsafeRawBufferPointer) {
        let text = String(decoding: bytes, as: UTF8.self)
        let found = Self(text.split(separator: " ").first.flatMap { Int($0) } ?? -1)
        self = found.text == text ? found : Self(-1)
    }

    func write(to writer: inout ByteWriter) { writer.append(text.utf8) }
}

extension DiskFormat {
    private static func directory(_ url: URL) -> Directory { Directory(path: url.path(percentEncoded: false)) }

    private init(log format: LogFormat) {
        @Sendable func log(_ url: URL) throws -> SharedLog<Value> {
            let log = SharedLog<Value>(Self.directory(url), format)
            try log.prepare()
            return log
        }
        (description, isLog, ending) = (format.noun, true, "log")
        open = { url in
            let log = try log(url)
            return { _ = try log.append([Value($0)], durability: .crash) }
        }
        read = { url in
            do {
                let news = try log(url).read()
                return Found(values: news.entries.map(\.number), isDamaged: !news.damages.isEmpty)
            } catch let error as StoreError where error.code == .unreadableRecord {
                return Found(values: [], isDamaged: true)
            }
        }
        replace = { url, number in try log(url).compact { _ in [Value(number)] } }
    }

    private init(sealed format: SealedFile) {
        (description, isLog, ending) = ("a sealed file of kind \(format.temporaryKind)", false, "sealed")
        let write: @Sendable (URL, Int) throws -> Void = { url, number in
            try Self.directory(url).create()
            try format.write(Array(Value(number).text.utf8), as: "sealed", in: Self.directory(url))
        }
        open = { url in { try write(url, $0) } }
        read = { url in
            var reader = SealedFile.Reader(format, in: try DirectoryHandle(opening: Self.directory(url)))
            do throws(StoreError) {
                return Found(values: try reader.read("sealed") { [Value(reading: $0).number] } ?? [], isDamaged: false)
            } catch  where error.code == .unreadableRecord {
                return Found(values: [], isDamaged: true)
            }
        }
        replace = { try write($0, $1) }
    }

    private static let record: DiskFormat = {
        @Sendable func save(_ cacher: FileCacher<Int, String>, _ number: Int) async throws {
            try await cacher.save(CacheRecord(content: Value(number).text, fetchedAt: Date()), param: 0)
        }
        return DiskFormat(
            description: "a record", isLog: false, ending: ".record",
            open: { url in
                let cacher = FileCacher<Int, String>(directory: url)
                return { try await save(cacher, $0) }
            },
            read: { url in
                let isDamaged = Lock(false)
                let cacher = FileCacher<Int, String>(directory: url) { fault in
                    if fault.kind == .damaged { isDamaged.withLock { $0 = true } }
                }
                let text = try await cacher.load(param: 0)?.content
                let values = text.map { text in Array(text.utf8).withUnsafeBytes { [Value(reading: $0).number] } } ?? []
                return Found(values: values, isDamaged: isDamaged.withLock { $0 })
            },
            replace: { try await save(FileCacher<Int, String>(directory: $0), $1) })
    }()

    private init(
        description: String, isLog: Bool, ending: String, open: @escaping @Sendable (URL) throws -> Write,
        read: @escaping @Sendable (URL) async throws -> Found, replace: @escaping @Sendable (URL, Int) async throws -> Void
    ) {
        (self.description, self.isLog, self.ending, self.open, self.read, self.replace) = (description, isLog, ending, open, read, replace)
    }
}
