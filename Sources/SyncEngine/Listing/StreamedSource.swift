public import Foundation
internal import StoreCore

/// A remote list that is read from bytes while they arrive, in NDJSON or JSON.
///
/// ```swift
/// let list = StreamedSource<ListedFile> {
///     let bytes = try await host.bytes(for: Route(path: "/films.ndjson"))
///     return ListBytes(bytes, length: bytes.length)
/// }
/// ```
///
/// The list is one JSON object for each item: one on each line (NDJSON), or all of them in an array (JSON). An array ends with its bracket.
/// Lines have no such end, so a list that is cut at the end of a line looks like a shorter list. Therefore the end of a list in lines must be
/// marked: by a last line `{"count": 1000}` with the number of items before it, or by a `Content-Length` that the bytes match. The end of a
/// chunked response is no mark, because proxies and servers that fail end it well too. An array may have the marker as its last object.
///
/// Memory holds a piece of the list at a time, whatever the length of the list.
public struct StreamedSource<Item: SyncItem & Decodable>: SourceList {
    /// The order in which the items come.
    public let order: SourceOrder
    private let itemLimit: Int
    private let onUnknownKey: (@Sendable (String) -> Void)?
    private let open: @Sendable () async throws -> ListBytes

    /// Makes a list.
    ///
    /// - Parameters:
    ///   - order: The order in which the items come.
    ///   - itemLimit: The largest size of an item, in bytes.
    ///   - open: Requests the list; called once for each reading.
    public init(
        order: SourceOrder = .unsorted, itemLimit: Int = 1 << 20, _ open: @escaping @Sendable () async throws -> ListBytes
    ) {
        self.order = order
        self.itemLimit = itemLimit
        self.open = open
        onUnknownKey = nil
    }

    /// Makes a reader at the list's beginning.
    public func makeReader() -> Reader { Reader(itemLimit: itemLimit, onUnknownKey: onUnknownKey, open: open) }

    /// Reads the items of each piece as one page.
    public struct Reader: SourceReader {
        private let open: @Sendable () async throws -> ListBytes
        private let decoder = JSONDecoder()
        private var scanner: ListScanner
        private var nextPiece: (() async throws -> [UInt8]?)?
        private var length: Int64?
        private var itemCount = 0
        private var hasEnded = false

        fileprivate init(
            itemLimit: Int, onUnknownKey: (@Sendable (String) -> Void)?, open: @escaping @Sendable () async throws -> ListBytes
        ) {
            self.open = open
            scanner = ListScanner(limit: itemLimit)
            if let onUnknownKey, let key = UnknownKeys.userInfoKey { decoder.userInfo[key] = UnknownKeys(onUnknownKey) }
        }

        /// Reads the items of the next piece; the last page is empty and carries the end.
        ///
        /// - Throws: ``SyncError/Code/incompleteList`` where the list may have been cut, ``SyncError/Code/unreadableList`` where it is none;
        ///   any error thrown while the bytes are read.
        public mutating func next() async throws -> SourcePage<Item>? {
            guard !hasEnded else { return nil }
            if nextPiece == nil {
                let bytes = try await open()
                length = bytes.length
                nextPiece = bytes.makePieces()
            }
            do {
                while let piece = try await nextPiece?() {
                    try scanner.take(piece)
                    if let text = scanner.takeItems() { return SourcePage(try decode(text)) }
                }
                hasEnded = true
                return SourcePage([], end: try scanner.end(length: length))
            } catch let fault as ListScanner.Fault {
                throw SyncError(fault)
            }
        }

        private mutating func decode(_ text: [UInt8]) throws -> [Item] {
            do {
                let items = try decoder.decode([Item].self, from: Data(text))
                itemCount += items.count
                return items
            } catch let error as DecodingError {
                let (path, reason) = error.placeAndReason
                let number = itemCount + 1 + (path.first?.intValue ?? 0)
                let key = path.dropFirst().map { "“\($0.stringValue.shownSafely)”: " }.joined()
                throw SyncError(
                    .unreadableList,
                    "reading the remote list: item \(number) cannot be read: \(key)\(reason.shownSafely); nothing was replaced or removed. "
                        + "Correct the list",
                    stage: .sourceList, underlyingError: error)
            }
        }
    }
}

extension StreamedSource where Item == ListedFile {
    /// Makes a list of files, and reports keys that `ListedFile` does not have, such as a digest under a misspelled name.
    ///
    /// - Parameters:
    ///   - order: The order in which the items come.
    ///   - itemLimit: The largest size of an item, in bytes.
    ///   - onUnknownKey: Called with each unknown key, once for each reading.
    ///   - open: Requests the list; called once for each reading.
    public init(
        order: SourceOrder = .unsorted, itemLimit: Int = 1 << 20, onUnknownKey: @escaping @Sendable (String) -> Void,
        _ open: @escaping @Sendable () async throws -> ListBytes
    ) {
        self.order = order
        self.itemLimit = itemLimit
        self.onUnknownKey = onUnknownKey
        self.open = open
    }
}

/// The bytes of a remote list as they arrive, and their announced length.
public struct ListBytes: Sendable {
    let length: Int64?
    let makePieces: @Sendable () -> () async throws -> [UInt8]?

    /// Wraps a sequence of pieces.
    ///
    /// - Parameters:
    ///   - pieces: The pieces; a response body such as RemoteRouting's `RemoteBytes`.
    ///   - length: The number of bytes that the origin announced, as `Content-Length` does; `nil` where it announced none, and then the list
    ///     must mark its end itself.
    public init<Pieces: AsyncSequence & Sendable>(_ pieces: Pieces, length: Int64?) where Pieces.Element: ContiguousBytes {
        self.length = length
        makePieces = {
            var iterator = pieces.makeAsyncIterator()
            return {
                let piece = try await iterator.next(isolation: #isolation)
                return piece?.withUnsafeBytes { Array($0) }
            }
        }
    }
}

/// Collects the keys of a list that its items do not read.
final class UnknownKeys: Sendable {
    /// The key of the collector in a decoder.
    static let userInfoKey = CodingUserInfoKey(rawValue: "storehouse.unknownKeys")

    private let reported = Lock<Set<String>>([])
    private let report: @Sendable (String) -> Void

    init(_ report: @escaping @Sendable (String) -> Void) {
        self.report = report
    }

    func found(_ key: String) {
        if reported.withLock({ $0.insert(key).inserted }) { report(key) }
    }
}

extension DecodingError {
    fileprivate var placeAndReason: (path: [any CodingKey], reason: String) {
        switch self {
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            (context.codingPath, context.debugDescription)
        case .keyNotFound(_, let context): (context.codingPath, context.debugDescription)
        @unknown default: ([], "\(self)")
        }
    }
}

extension SyncError {
    /// A fault of a list, in words.
    init(_ fault: ListScanner.Fault) {
        let unchanged = "nothing was replaced or removed"
        switch fault {
        case .noList(let beginning):
            let text = String(decoding: beginning, as: UTF8.self).shownSafely
            self.init(
                .unreadableList,
                "reading the remote list: it is no list of items, because it begins with “\(text)”; \(unchanged). Check its address: a login "
                    + "page or an error page may be sent in its place",
                stage: .sourceList)
        case .unexpected(let byte, let count):
            let text = String(decoding: [byte], as: UTF8.self).shownSafely
            self.init(
                .unreadableList,
                "reading the remote list: “\(text)” stands after \(counted(count, "item")), where an item must begin or end; \(unchanged). "
                    + "Correct the list: one object on each line, or one array of objects",
                stage: .sourceList)
        case .pastEnd(let count):
            self.init(
                .unreadableList,
                "reading the remote list: something follows its end after \(counted(count, "item")); \(unchanged). Correct the list: the end "
                    + "marker is the last object, and occurs once",
                stage: .sourceList)
        case .tooLarge(let item):
            self.init(
                .unreadableList,
                "reading the remote list: item \(item) is larger than the limit; \(unchanged). Correct the list, or raise `itemLimit`",
                stage: .sourceList)
        case .cut(let count):
            self.init(
                .incompleteList,
                "reading the remote list: it was cut after \(counted(count, "item")); \(unchanged). Read it again", stage: .sourceList)
        case .noEnd(let count):
            self.init(
                .incompleteList,
                "reading the remote list: it stopped after \(counted(count, "item")), and nothing marks this as its end; \(unchanged). Add a "
                    + "last line {\"count\": \(count)} to the list, or let the server send a Content-Length",
                stage: .sourceList)
        case .wrongLength(let found, let announced):
            self.init(
                .incompleteList,
                "reading the remote list: \(found) bytes arrived, and the origin announced \(announced); \(unchanged). Read it again",
                stage: .sourceList)
        }
    }
}
