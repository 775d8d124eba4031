#if !canImport(Darwin)
internal import Dispatch
internal import StoreCore

/// A watch by inotify.
final class SystemWatch: Sendable {
    private let number: Int32
    private let id: UInt64

    var isValid: Bool { Inotify.shared.isValid(number, id) }

    init?(_ path: String, for interest: FileWatch.Interest, _ onEvent: @escaping FileWatch.Handler) throws(StoreError) {
        guard let (number, id) = try Inotify.shared.add(path, interest.mask, onEvent) else { return nil }
        self.number = number
        self.id = id
    }

    deinit { Inotify.shared.remove(number, id) }
}

extension FileWatch.Interest {
    fileprivate var mask: UInt32 {
        switch self {
        // `IN_ATTRIB` reports that the file has lost its name, even while it is open.
        case .content: UInt32(IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)
        case .location: UInt32(IN_MOVE_SELF | IN_DELETE_SELF)
        case .endings: UInt32(IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_MOVE_SELF | IN_DELETE_SELF)
        }
    }
}

/// The watches of this process: one descriptor for all of them, because a user may have only 128 such descriptors by default.
final class Inotify: Sendable {
    static let shared = Inotify()

    typealias Handler = FileWatch.Handler

    private struct State: Sendable {
        /// The descriptor; `nil` before the first watch.
        var descriptor: Int32?
        /// The handlers by watch. The system gives two watches on one file the same number.
        var handlers: [Int32: [UInt64: Handler]] = [:]
        var lastID: UInt64 = 0
    }

    private let state = Lock(State())
    private let queue = DispatchQueue(label: "StoreCore.Inotify")

    /// Adds a watch, and returns its number and that of its handler; `nil` if nothing exists at the path.
    func add(_ path: String, _ mask: UInt32, _ handler: @escaping Handler) throws(StoreError) -> (Int32, UInt64)? {
        let descriptor = try open(for: path)
        return try state.withLock { state throws(StoreError) -> (Int32, UInt64)? in
            // Added under the lock, so that an event finds its handler. A second watch on one file adds to the first one's events.
            let number = inotify_add_watch(descriptor, path, mask | UInt32(IN_MASK_ADD))
            guard number >= 0 else {
                if errno == ENOENT { return nil }
                throw .failedCall("watching", at: path)
            }
            state.lastID += 1
            state.handlers[number, default: [:]][state.lastID] = handler
            return (number, state.lastID)
        }
    }

    /// Returns the descriptor. The first call opens it and begins to read events, so that a first watch that fails harms no later one.
    private func open(for path: String) throws(StoreError) -> Int32 {
        let (descriptor, isNew) = try state.withLock { state throws(StoreError) -> (Int32, Bool) in
            if let descriptor = state.descriptor { return (descriptor, false) }
            let descriptor = inotify_init1(O_NONBLOCK | O_CLOEXEC)
            guard descriptor >= 0 else { throw .fileSystem("watching", path: path, errno: errno) }
            state.descriptor = descriptor
            return (descriptor, true)
        }
        if isNew { read(from: descriptor) }
        return descriptor
    }

    func remove(_ number: Int32, _ id: UInt64) {
        // Released outside the lock: a handler may hold the last reference to its owner.
        let released = state.withLock { state -> Handler? in
            guard let handler = state.handlers[number]?.removeValue(forKey: id) else { return nil }
            if state.handlers[number]?.isEmpty == true, let descriptor = state.descriptor {
                state.handlers[number] = nil
                // Fails without harm if the system has already ended the watch.
                _ = inotify_rm_watch(descriptor, number)
            }
            return handler
        }
        _ = released
    }

    func isValid(_ number: Int32, _ id: UInt64) -> Bool {
        state.withLock { $0.handlers[number]?[id] != nil }
    }

    private func read(from descriptor: Int32) {
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        // The handler retains its source, which exists as long as the process.
        source.setEventHandler {
            withExtendedLifetime(source) { self.read(descriptor) }
            // The events of the next millisecond are read together: a process that appends to a followed log would otherwise wake this
            // queue with each append, which costs more than the append.
            usleep(1_000)
        }
        source.activate()
    }

    private func read(_ descriptor: Int32) {
        let size = 64 * 1024
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: MemoryLayout<inotify_event>.alignment)
        defer { buffer.deallocate() }
        while true {
            let count = uninterrupted { readBytes(descriptor, buffer) }
            guard count > 0 else { return }
            handle(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }

    private func handle(_ events: UnsafeRawBufferPointer) {
        let headerSize = MemoryLayout<inotify_event>.size
        var rest = events
        while rest.count >= headerSize {
            let event = rest.loadUnaligned(as: inotify_event.self)
            let end = min(rest.count, headerSize + Int(event.len))
            let name = rest[headerSize..<end].prefix { $0 != 0 }
            handle(event, name.isEmpty ? nil : String(decoding: name, as: UTF8.self))
            rest = UnsafeRawBufferPointer(rebasing: rest[end...])
        }
    }

    private func handle(_ event: inotify_event, _ name: String?) {
        let handlers = state.withLock { state -> [Handler] in
            // The queue of the system has overflowed. Any watch may have lost events, even its last one, so all of them end.
            if event.mask & UInt32(IN_Q_OVERFLOW) != 0 {
                var ended: [Int32: [UInt64: Handler]] = [:]
                swap(&ended, &state.handlers)
                if let descriptor = state.descriptor { for number in ended.keys { _ = inotify_rm_watch(descriptor, number) } }
                return ended.values.flatMap { $0.values }
            }
            // The system has ended the watch, and may give its number to another one.
            if event.mask & UInt32(IN_IGNORED) != 0 { return Array((state.handlers.removeValue(forKey: event.wd) ?? [:]).values) }
            return Array((state.handlers[event.wd] ?? [:]).values)
        }
        for handler in handlers { handler(name) }
    }
}

/// Calls the system's `read`, which a method of the watch hides.
private func readBytes(_ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer) -> Int {
    read(descriptor, bytes.baseAddress, bytes.count)
}
#endif
