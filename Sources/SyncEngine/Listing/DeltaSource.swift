#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

internal import StoreCore
internal import StoreFiles
internal import StorePlatform

/// A remote list that is requested once as a whole, and afterward as the changes since a token.
///
/// ```swift
/// let list = DeltaSource(saving: stateFile) {
///     let answer = try await api.allFiles()
///     return (ListedSource(answer.files), token: answer.token)
/// } changes: { token in
///     try await api.changes(since: token)
/// }
/// ```
///
/// A file keeps the list and its token. Both are replaced in one step, after a pass has made the local side equal to the list. A pass that
/// fails or is killed leaves the old token with its list, and the next pass requests the same changes again. The engine always compares the
/// whole list, so a change that comes twice, or removes an unknown item, does no harm.
///
/// <doc:ChangesSinceAToken> states its rules.
public struct DeltaSource<Full: SourceList>: SourceList where Full.Item: Codable {
    /// An item of the list.
    public typealias Item = Full.Item

    private let file: URL
    private let interval: Int
    private let full: @Sendable () async throws -> (list: Full, token: String)
    private let changes: @Sendable (String) async throws -> ListChanges<Item>?

    /// Creates a list without reading anything.
    ///
    /// - Parameters:
    ///   - file: The file that keeps the list and its token; a missing directory of it is created. If the file is missing or damaged, the
    ///     whole list is requested. A file that another version of the framework has written stays as it is: the whole list is requested,
    ///     and the pass fails at its end.
    ///   - interval: The number *n*, where every *n*th pass requests the whole list; 0 and 1 request it in every pass.
    ///   - full: Requests the whole list and the token of its state.
    ///   - changes: Requests the changes since a token; returns `nil` if the token has expired.
    public init(
        saving file: URL, fullEvery interval: Int = 20, full: @escaping @Sendable () async throws -> (list: Full, token: String),
        changes: @escaping @Sendable (_ token: String) async throws -> ListChanges<Item>?
    ) {
        precondition(file.isFileURL, "a DeltaSource needs the URL of a file, not \(file)")
        self.file = file
        self.interval = interval
        self.full = full
        self.changes = changes
    }

    /// Creates a reader that requests the changes or the whole list.
    public func makeReader() -> Reader { Reader(source: self) }

    /// A reader that returns the whole list as one page, or the pages of the whole list and an empty one.
    public struct Reader: SourceReader {
        fileprivate let source: DeltaSource
        /// The reader of the whole list with the list that it has read; `nil` if changes are enough.
        fileprivate var whole: (reader: Full.Reader, list: SavedList<Item>)?
        fileprivate var hasEnded = false

        /// Requests the changes, or reads the next page of the whole list.
        ///
        /// - Throws: ``SyncError/Code/incompleteList`` if the whole list ends without a mark; any error of the requests.
        public mutating func next() async throws -> SourcePage<Item>? {
            guard !hasEnded else { return nil }
            if whole == nil {
                if var saved = await SavedList<Item>(reading: source.file), saved.passes + 1 < source.interval,
                    let changes = try await source.changes(saved.token), changes.since.map({ $0 == saved.token }) ?? true
                {
                    saved.apply(changes)
                    return end(with: saved.items, saved, .complete(count: saved.items.count))
                }
                let (list, token) = try await source.full()
                whole = (list.makeReader(), SavedList(token: token, passes: 0, items: []))
            }
            guard let page = try await whole?.reader.next() else { return nil }
            whole?.list.items += page.items
            guard let mark = page.end, let list = whole?.list else { return page }
            return end(with: page.items, list, mark, after: page.whenApplied)
        }

        private mutating func end(
            with items: [Item], _ state: SavedList<Item>, _ mark: SourceEnd, after whenApplied: (@Sendable () async throws -> Void)? = nil
        ) -> SourcePage<Item> {
            hasEnded = true
            var page = SourcePage(items, end: mark)
            // The token is written last. Without it, the next pass requests the whole list again, and repeats what has failed here.
            page.whenApplied = { [file = source.file] in
                try await whenApplied?()
                try await state.write(to: file)
            }
            return page
        }
    }
}

/// The changes of a remote list since a token, in the order of the origin.
public struct ListChanges<Item: SyncItem>: Sendable {
    /// A change of one item.
    public enum Change: Sendable {
        /// The item is new, or replaces the one with its key.
        case set(Item)
        /// The list no longer has the item with this key.
        case removed(Item.Key)
    }

    /// The changes; of several with one key, the last one counts.
    public var changes: [Change]
    /// The token of the state after the changes.
    public var token: String
    /// The token of the state before the changes, as the origin states it; `nil` if it states none.
    ///
    /// With another token than the requested one, the changes do not fit, and the whole list is requested.
    public var since: String?

    /// Creates changes; each parameter sets the property of its name.
    public init(_ changes: [Change], token: String, since: String? = nil) {
        self.changes = changes
        self.token = token
        self.since = since
    }
}

/// A list and its token, as the file of a `DeltaSource` keeps them.
///
/// The file is sealed, because a damaged name would remove a file. It contains the token, the number of passes, and the list in lines with
/// its end marker.
struct SavedList<Item: SyncItem & Codable>: Sendable {
    var token: String
    /// The number of passes since the whole list was requested.
    var passes: Int
    var items: [Item]
}

extension SavedList {
    /// Reads the file; `nil` if it is missing or damaged.
    @concurrent
    init?(reading file: URL) async {
        guard let directory = try? DirectoryHandle(opening: Self.directory(of: file)) else { return nil }
        var reader = SealedFile.Reader(.list, in: directory)
        let found = try? reader.read(file.lastPathComponent) { bytes -> (token: String, passes: Int, text: Data)? in
            var reader = ByteReader(bytes)
            guard let token = try? reader.text(), let passes = try? reader.int(), let text = try? reader.take(reader.rest) else {
                return nil
            }
            return (token, passes, Data(text))
        }
        guard let found, let content = found else { return nil }
        let text = content.text
        let pieces = AsyncStream<Data> { stream in
            stream.yield(text)
            stream.finish()
        }
        // The limits of the list were applied before it was saved.
        var list = StreamedSource<Item>(itemLimit: .max) { ListBytes(pieces, length: nil) }
        list.byteLimit = .max
        var reading = ListReading(reader: list.makeReader(), board: nil)
        items = []
        // A file without its end marker was cut.
        do { while let page = try await reading.next() { items += page } } catch { return nil }
        (token, passes) = (content.token, content.passes)
    }

    private static func directory(of file: URL) -> Directory {
        Directory(path: file.absoluteURL.deletingLastPathComponent().path(percentEncoded: false))
    }

    /// Replaces the file in one step, unless another version of the framework has written it.
    @concurrent
    func write(to file: URL) async throws {
        let encoder = JSONEncoder()
        var text = Data()
        for item in items { text += try encoder.encode(item) + Data([10]) }
        text += Data("{\"count\":\(items.count)}\n".utf8)
        var writer = ByteWriter(capacity: text.count + 64)
        writer.put(token)
        writer.put(passes)
        writer.append(text)
        let (name, directory) = (file.lastPathComponent, Self.directory(of: file))
        if let folder = try DirectoryHandle(opening: directory) {
            try SealedFile.list.checkVersion(of: name, in: folder)
        } else {
            try directory.create(mode: 0o777)
        }
        try SealedFile.list.write(writer.bytes, as: name, in: directory, options: FileWriteOptions(mode: 0o666))
    }

    /// Applies changes: each changed item is there once, at the place of the first item with its key, or at the end.
    mutating func apply(_ delta: ListChanges<Item>) {
        token = delta.token
        passes += 1
        var last: [Item.Key: Item?] = [:]
        var order: [Item.Key] = []
        for change in delta.changes {
            switch change {
            case .set(let item):
                if last.updateValue(item, forKey: item.key) == nil { order.append(item.key) }
            case .removed(let key):
                if last.updateValue(nil, forKey: key) == nil { order.append(key) }
            }
        }
        // The list may repeat a key, and no other item with the key may stay.
        var placed: Set<Item.Key> = []
        items = items.compactMap { item in
            guard let change = last[item.key] else { return item }
            return placed.insert(item.key).inserted ? change : nil
        }
        items += order.compactMap { placed.contains($0) ? nil : last[$0] ?? nil }
    }
}
