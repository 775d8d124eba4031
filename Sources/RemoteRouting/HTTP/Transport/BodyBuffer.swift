internal import Foundation

/// The unread bytes of a body: in memory up to a limit, and beyond it in an unlinked file.
struct BodyBuffer {
    private let memoryLimit: Int
    private let spillLimit: Int
    private var pieces: [Data] = []
    private var firstPiece = 0
    private(set) var memoryBytes = 0
    private var spill: SpillFile?
    private var spillStart = 0
    private var spillEnd = 0

    init(memoryLimit: Int, spillLimit: Int) {
        self.memoryLimit = memoryLimit
        self.spillLimit = spillLimit
    }

    var spilledBytes: Int { spillEnd - spillStart }

    /// The number of slots for chunks, including those already read.
    var pieceCount: Int { pieces.count }

    var isEmpty: Bool { firstPiece == pieces.count && spilledBytes == 0 }

    /// Appends received bytes.
    ///
    /// - Parameter staysInMemory: Whether the memory limit is ignored, because the reader waits for the whole body or the source pauses.
    /// - Throws: ``TransportFailure`` if the file would exceed its limit or cannot be written.
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
        if firstPiece < pieces.count {
            let piece = pieces[firstPiece]
            pieces[firstPiece] = Data()
            firstPiece += 1
            memoryBytes -= piece.count
            if firstPiece == pieces.count {
                clearPieces()
            } else if firstPiece >= 64, firstPiece * 2 >= pieces.count {
                // A reader that is always one chunk behind would otherwise let the array grow without bound.
                pieces.removeFirst(firstPiece)
                firstPiece = 0
            }
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
        if spilledBytes == 0, pieces.count == 1, firstPiece == 0 {
            defer { clearPieces() }
            return pieces[0]
        }
        var all = Data()
        all.reserveCapacity(memoryBytes + spilledBytes)
        while let piece = try take() { all.append(piece) }
        return all
    }

    mutating func discard() {
        clearPieces()
        spill = nil
        (spillStart, spillEnd) = (0, 0)
    }

    private mutating func clearPieces() {
        pieces.removeAll(keepingCapacity: false)
        firstPiece = 0
        memoryBytes = 0
    }
}
