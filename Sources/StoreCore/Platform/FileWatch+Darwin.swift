#if canImport(Darwin)
internal import Dispatch
internal import StoreCore

/// A watch by a dispatch source, which holds a descriptor and reports no names.
final class SystemWatch: Sendable {
    private let source: any DispatchSourceFileSystemObject
    private let permit: Permits.Permit

    var isValid: Bool { !source.isCancelled }

    init?(_ path: String, for interest: FileWatch.Interest, _ onEvent: @escaping FileWatch.Handler) throws(StoreError) {
        // Without a watch, the changes of the path are looked up in intervals.
        guard let permit = DescriptorShare.watches.takeIfFree() else { throw .fileSystem("watching", path: path, errno: EMFILE) }
        self.permit = permit
        let descriptor = uninterrupted { open(path, O_EVTONLY | O_CLOEXEC) }
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw .failedCall("watching", at: path)
        }
        let location: DispatchSource.FileSystemEvent = [.delete, .rename, .revoke]
        let events = interest == .location ? location : location.union([.write, .extend, .attrib])
        let source = DispatchSource.makeFileSystemObjectSource(fileDescriptor: descriptor, eventMask: events, queue: .global())
        // The handler retains its source until the end of the watch cancels the source.
        source.setEventHandler {
            // Neither a removed file nor a file of a removed disk has further events.
            if !source.data.isDisjoint(with: [.delete, .revoke]) { source.cancel() }
            onEvent(nil)
        }
        source.setCancelHandler { _ = close(descriptor) }
        source.activate()
        self.source = source
    }

    deinit { source.cancel() }
}
#endif
