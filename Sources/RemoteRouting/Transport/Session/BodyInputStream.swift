internal import Foundation

/// A body that is made while it is sent, in the form in which `URLSession` reads it.
///
/// Its session reads it from one queue at a time; nobody else holds it.
final class BodyInputStream: InputStream {
    private let read: @Sendable (_ upTo: Int) throws -> Data?
    private let onFailure: @Sendable (any Error) -> Void
    /// Read ahead, because the session asks whether there is more before it reads.
    private var pending: Data?
    private var status = Stream.Status.notOpen
    private var failure: (any Error)?

    /// - Parameter onFailure: Told why reading failed; the session below would only say that something did.
    init(_ read: @escaping @Sendable (_ upTo: Int) throws -> Data?, onFailure: @escaping @Sendable (any Error) -> Void) {
        self.read = read
        self.onFailure = onFailure
        super.init(data: Data())
    }

    override func open() {
        status = .open
        fill()
    }

    override func close() { status = .closed }

    override var streamStatus: Stream.Status { status }

    override var streamError: (any Error)? { failure }

    override var hasBytesAvailable: Bool { pending != nil || failure != nil }

    override func getBuffer(_ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>) -> Bool {
        false
    }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        if failure != nil { return -1 }
        guard let data = pending else { return 0 }
        let count = min(maxLength, data.count)
        data.copyBytes(to: buffer, count: count)
        pending = data.dropFirst(count)
        if pending?.isEmpty == true { fill() }
        return count
    }

    /// Reads ahead, past pieces that are empty.
    private func fill() {
        pending = nil
        do {
            while pending == nil {
                guard let data = try read(65_536) else {
                    status = .atEnd
                    return
                }
                if !data.isEmpty { pending = data }
            }
        } catch {
            failure = error
            status = .error
            onFailure(error)
        }
    }
}
