internal import Foundation

/// The unread bytes of a body: in memory up to a limit, and beyond it in an unlinked file.
struct BodyBuffer {
    private let memoryLimit: Int
    private let spillLimit: Int
    /// A slice, because its first element is removed in constant time and its storage stays as small as its use.
    private var pieces: ArraySlice<Data> = []
    private(set) var memoryBytes = 0
    private var spill: SpillFile?
    private var spillStart = 0
    private var spillEnd = 0

    init(memoryLimit: Int, spillLimit: Int) {
        self.memoryLimit = memoryLimit
        self.spillLimit = spillLimit
    }

    var spilledBytes: Int { spillEnd - spillStart }

    var isEmpty: Bool { pieces.isEmpty && spilledBytes == 0 }

    /// Appends received bytes; ignores the memory limit if the reader waits for the whole body or the source pauses.
    mutating func push(_ data: Data, staysInMemory: Bool) throws(TransportFailure) {
        // While the file contains unread bytes, all later bytes must go there to keep their order.
        let fits = spilledBytes == 0 && (staysInMemory || memoryBytes + data.count <= memoryLimit)
        guard !fits else {
            pieces.append(data)
            memoryBytes += data.count
            return
        }
        guard spilledBytes + data.count <= spillLimit else {
            throw TransportFailure(
                .bodyTooLarge, "more than \(spillLimit) unread bytes would be spilled to disk; read the body faster, or raise spillBytes")
        }
        if spill == nil { spill = try SpillFile() }
        guard let spill else { return }
        if spilledBytes == 0 { (spillStart, spillEnd) = (0, 0) }
        try spill.write(data, at: spillEnd)
        spillEnd += data.count
    }

    mutating func take() throws(TransportFailure) -> Data? {
        if let piece = pieces.first {
            // The storage of the slice would otherwise retain the bytes.
            pieces[pieces.startIndex] = Data()
            pieces.removeFirst()
            memoryBytes -= piece.count
            if pieces.isEmpty { pieces = [] }
            return piece
        }
        guard let spill, spilledBytes > 0 else { return nil }
        let data = try spill.read(upTo: min(65_536, spilledBytes), at: spillStart)
        spillStart += data.count
        if spilledBytes == 0 { spill.empty() }
        return data
    }

    mutating func takeAll() throws(TransportFailure) -> Data {
        // The common case: a small body in one chunk.
        if spilledBytes == 0, pieces.count == 1, let piece = try take() { return piece }
        var all = Data()
        all.reserveCapacity(memoryBytes + spilledBytes)
        while let piece = try take() { all.append(piece) }
        return all
    }

    mutating func discard() {
        (pieces, memoryBytes) = ([], 0)
        spill = nil
        (spillStart, spillEnd) = (0, 0)
    }
}
