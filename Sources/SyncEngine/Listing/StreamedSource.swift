#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

internal import StoreCore

/// A remote list that is decoded from NDJSON or JSON while its bytes arrive.
///
/// ```swift
/// let list = StreamedSource<ListedFile> {
///     let bytes = try await host.bytes(for: Route(path: "/films.ndjson"))
///     return ListBytes(bytes, length: bytes.length)
/// }
/// ```
///
/// The list contains one JSON object per item: one per line (NDJSON), or all of them in an array (JSON). An array ends with its bracket.
/// Lines have no end marker, so a list cut after a complete line looks like a shorter list. The end of such a list must therefore be
/// marked. Either its last line is `{"count": 1000}` with the number of items before it, or the bytes match a `Content-Length`. The end of
/// a chunked response is not a mark, because failing proxies and servers can end it normally. An array may have the marker as its last
/// object.
///
/// Memory holds one piece of the list at a time, so a longer list needs no more of it.
///
/// <doc:MirrorsOfFiles> explains the format, and <doc:LargeCollections> the memory.
public struct StreamedSource<Item: SyncItem & Decodable>: SourceList {
    /// The order of the items in the stream; a list that violates it is refused.
    public let order: SourceOrder
    /// The largest size of the list in bytes; 1 GiB by default.
    ///
    /// A larger list is refused with ``SyncError/Code/listLimit``. An origin whose list never ends would otherwise fill the memory with large items.
    public var byteLimit: Int64 = 1 << 30
    private let itemLimit: Int
    private var onUnknownKey: (@Sendable (String) -> Void)?
    private let open: @Sendable () async throws -> ListBytes

    /// Creates a list.
    ///
    /// - Parameters:
    ///   - order: The order of the items.
    ///   - itemLimit: The largest size of an item, in bytes.
    ///   - open: Requests the list; called each time the list is read.
    public init(
        order: SourceOrder = .unsorted, itemLimit: Int = 1 << 20, _ open: @escaping @Sendable () async throws -> ListBytes
    ) {
        self.order = order
        self.itemLimit = itemLimit
        self.open = open
    }

    /// Creates a reader that starts at the first byte.
    public func makeReader() -> Reader {
        Reader(ListScanner(limit: itemLimit, byteLimit: byteLimit), onUnknownKey: onUnknownKey, open: open)
    }

    /// A reader that returns the items of each piece as one page.
    public struct Reader: SourceReader {
        private let open: @Sendable () async throws -> ListBytes
        private let decoder = JSONDecoder()
        private var scanner: ListScanner
        private var nextPiece: (() async throws -> [UInt8]?)?
        private var length: Int64?
        private var itemCount = 0
        private var hasEnded = false

        fileprivate init(
            _ scanner: ListScanner, onUnknownKey: (@Sendable (String) -> Void)?, open: @escaping @Sendable () async throws -> ListBytes
        ) {
            self.open = open
            self.scanner = scanner
            if let onUnknownKey, let key = UnknownKeys.userInfoKey { decoder.userInfo[key] = UnknownKeys(onUnknownKey) }
        }

        /// Decodes the items of the next piece; the last page is empty and marks the end.
        ///
        /// - Throws: ``SyncError/Code/incompleteList`` if the list may have been cut, ``SyncError/Code/unreadableList`` if it cannot be
        ///   parsed, and ``SyncError/Code/listLimit`` if it is too large. Rethrows any error of reading the bytes.
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
                    guard let text = scanner.takeItems() else { continue }
                    let items = try decode(text)
                    itemCount += items.count
                    return SourcePage(items)
                }
                hasEnded = true
                return SourcePage([], end: try scanner.end(length: length))
            } catch let fault as ListScanner.Fault {
                throw SyncError(fault)
            }
        }

        private func decode(_ text: [UInt8]) throws -> [Item] {
            if Item.self == ListedFile.self {
                // Cast as a whole, because a cast of an array casts its elements.
                let files: Any? = ListedFile.parse(text)
                if let files = files as? [Item] { return files }
            }
            do {
                return try decoder.decode([Item].self, from: Data(text))
            } catch let error as DecodingError {
                let (path, reason) = error.placeAndReason
                let number = itemCount + 1 + (path.first?.intValue ?? 0)
                let key = path.dropFirst().map { "“\($0.stringValue.shownSafely)”: " }.joined()
                throw SyncError.ofList(
                    .unreadableList, "item \(number) cannot be decoded: \(key)\(reason.shownSafely)", remedy: "correct the list",
                    underlyingError: error)
            }
        }
    }
}

extension StreamedSource where Item == ListedFile {
    /// Creates a list of files that reports keys unknown to `ListedFile`, such as a misspelled `sha256`.
    ///
    /// - Parameters:
    ///   - order: The order of the items.
    ///   - itemLimit: The largest size of an item, in bytes.
    ///   - onUnknownKey: Called with each unknown key, once per reading.
    ///   - open: Requests the list; called each time the list is read.
    public init(
        order: SourceOrder = .unsorted, itemLimit: Int = 1 << 20, onUnknownKey: @escaping @Sendable (String) -> Void,
        _ open: @escaping @Sendable () async throws -> ListBytes
    ) {
        self.init(order: order, itemLimit: itemLimit, open)
        self.onUnknownKey = onUnknownKey
    }
}

/// The bytes of a remote list as they arrive, with their announced length.
public struct ListBytes: Sendable {
    let length: Int64?
    let makePieces: @Sendable () -> () async throws -> [UInt8]?

    /// Wraps a sequence of pieces.
    ///
    /// - Parameters:
    ///   - pieces: The pieces; a response body such as RemoteRouting's `RemoteBytes`.
    ///   - length: The number of bytes that the origin announced, for example by `Content-Length`; `nil` if it announced none. The list
    ///     must then mark its end itself.
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

/// A collector of the keys that a list contains but its items do not read.
final class UnknownKeys: Sendable {
    /// The collector's key in a decoder's user info.
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
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context), .dataCorrupted(let context):
            (context.codingPath, context.debugDescription)
        @unknown default: ([], "\(self)")
        }
    }
}

extension SyncError {
    /// Creates the error for a fault of a list.
    init(_ fault: ListScanner.Fault) {
        self =
            switch fault {
            case .noList(let beginning):
                .ofList(
                    .unreadableList,
                    "it begins with “\(String(decoding: beginning, as: UTF8.self).shownSafely)”, so it is not a list of items",
                    remedy: "check the address, because a login page or an error page may be served there")
            case .unexpected(let byte, let count):
                .ofList(
                    .unreadableList,
                    "after \(counted(count, "item")), “\(String(decoding: [byte], as: UTF8.self).shownSafely)” is neither the beginning nor "
                        + "the end of an item", remedy: "write one object per line, or one array of objects")
            case .pastEnd(let count):
                .ofList(
                    .unreadableList, "text follows its end after \(counted(count, "item"))",
                    remedy: "write the end marker once, as the last object")
            case .tooLarge(let item):
                .ofList(.unreadableList, "item \(item) exceeds the size limit", remedy: "correct the list, or raise `itemLimit`")
            case .tooLong(let limit):
                .ofList(
                    .listLimit, "it has more than \(limit) bytes and may never end", remedy: "correct the origin, or raise `byteLimit`")
            case .cut(let count): .ofList(.incompleteList, "it was cut after \(counted(count, "item"))", remedy: "sync again")
            case .noEnd(let count):
                .ofList(
                    .incompleteList, "it stopped after \(counted(count, "item")) without an end marker",
                    remedy: "append a last line {\"count\": \(count)} to the list, or let the server send a Content-Length")
            case .wrongLength(let found, let announced):
                .ofList(
                    .incompleteList, "\(found) bytes arrived, but the origin announced \(announced)", remedy: "sync again")
            }
    }
}
