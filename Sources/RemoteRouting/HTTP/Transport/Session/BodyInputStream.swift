#if !canImport(Darwin)
internal import Foundation

/// A streamed body in the form that FoundationNetworking's `URLSession` reads; `BoundBody` has that of Apple's systems.
///
/// Only its session uses it, from one queue at a time.
final class BodyInputStream: InputStream {
    private let read: @Sendable (_ upTo: Int) throws -> Data?
    private let onFailure: @Sendable (any Error) -> Void
    /// The chunk read ahead, because the session checks for available bytes before it reads.
    private var pending: Data?
    private var status = Stream.Status.notOpen
    private var failure: (any Error)?

    /// - Parameter onFailure: Receives the error of a failed read, which the session would otherwise hide.
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

    /// Reads ahead, because an empty chunk would look like the end.
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
#endif
