internal import Dispatch
#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
package import StoreCore
package import StorePlatform

// Leases: one file for each key that is being fetched, and a wait for the lease's end that blocks no thread.

/// The events of the leases that tasks wait for, counted for each lease.
struct LeaseEvents: Sendable {
    struct Waited: Sendable {
        var tasks = 0
        var events: UInt64 = 0
    }

    package var waited: [String: Waited] = [:]
    /// The watch on the ends of leases; `nil` while no task waits.
    var watch: FileWatch?
}

/// An ended lease. Its file tells the waiters the outcome.
struct EndedLease: Sendable {
    let name: String
    let id: UInt64
    let end = ContinuousClock.now
}

extension SharedDirectory {
    private enum Attempt: Sendable {
        case decided(Hold)
        /// Another holder has the lease.
        case held(by: UInt64, until: Double, remaining: Duration)
    }

    private static let leaseSuffix = ".lease"

    package struct HeldLease: Sendable {
        package let id: UInt64
        package let name: String
        package let file: WritableFile
        /// The permit for the descriptor of the file; `nil` for a lease without a bound.
        package let permit: Permits.Permit?
    }

    /// Waits for the lease of a key, and before that for a descriptor to hold it with. Throws `CancellationError` as soon as the task is
    /// canceled.
    func lease(_ digest: SHA256.Digest, for duration: Duration) async throws -> LeaseOutcome {
        switch try await hold(digest.hex + Self.leaseSuffix, for: duration, within: leasePermits) {
        case .granted(let held): .granted(Lease(position: position) { [weak self] ending in self?.end(held, ending) })
        case .ended(let ended): ended.failure.map { .failed($0) } ?? .notNeeded
        case .noTurn: .notNeeded
        }
    }

    package enum Hold: Sendable {
        /// This process holds the lease until `end(_:_:)`.
        case granted(HeldLease)
        /// The other holder's result cannot be stored, or its fetch has failed.
        case ended(LeaseNote.Ended)
        /// The process holds as many leases as it may, and the caller cannot wait for its turn.
        case noTurn
    }

    /// Waits for the lease with a file name; a lease without permits has no bound. Throws `CancellationError` as soon as the task is
    /// canceled.
    package func hold(_ name: String, for duration: Duration, within permits: Permits? = nil) async throws -> Hold {
        var isWaiting = false
        defer { if isWaiting { stopWaiting(name) } }
        var awaited: (id: UInt64, expires: Double, deadline: ContinuousClock.Instant)?
        // An event is followed by attempts in quick succession: the system announces the end of a holder before it releases its lock.
        var quickAttempts = 0
        while true {
            try Task.checkCancellation()
            let events = leaseEvents.read { $0.waited[name]?.events ?? 0 }
            let (waitedFor, overdue) = (awaited?.id, awaited.flatMap { ContinuousClock.now >= $0.deadline ? $0.expires : nil })
            var permit: Permits.Permit?
            if let permits {
                permit = try await FetchTurn.take(permits, within: duration)
                if permit == nil { return .noTurn }
            }
            // Kept only with a lease, so that the wait for another process's lease holds none.
            let turn = permit
            switch try await perform({ try self.attempt(name, after: waitedFor, takesOver: overdue, for: duration, turn) }) {
            case .decided(let hold): return hold
            case .held(let id, let expires, let remaining):
                permit?.release()
                if awaited?.id != id || awaited?.expires != expires {
                    awaited = (id, expires, .now + remaining)
                    quickAttempts = 0
                }
                guard isWaiting else {
                    startWaiting(name)
                    isWaiting = true
                    // The lease may have ended before the watch began.
                    continue
                }
                var timeout = ContinuousClock.now.duration(to: awaited?.deadline ?? .now)
                if quickAttempts > 0 { timeout = min(timeout, .milliseconds(1 << (9 - quickAttempts))) }
                timeout = min(timeout, longestWait)
                let hasEvent = try await wait(for: name, after: events, timeout: timeout)
                quickAttempts = hasEvent ? 9 : max(0, quickAttempts - 1)
            }
        }
    }

    /// The longest wait between two attempts.
    private var longestWait: Duration {
        guard SystemTraits.reportsClosedFiles else { return .milliseconds(500) }
        // The watched directory may have been replaced meanwhile.
        return leaseEvents.read { $0.watch?.isValid == true } ? .seconds(1) : .milliseconds(100)
    }

    /// Waits for an event of a lease, and returns whether there was one before the timeout.
    private func wait(for name: String, after events: UInt64, timeout: Duration) async throws -> Bool {
        do {
            return try await leaseEvents.wait(for: name, timeout: max(.zero, timeout)) { state -> Bool? in
                (state.waited[name]?.events ?? 0) > events ? true : nil
            }
        } catch is WaitTimedOut {
            return false
        }
    }

    private func startWaiting(_ name: String) {
        let path = path
        leaseEvents.update { state in
            state.waited[name, default: LeaseEvents.Waited()].tasks += 1
            guard state.watch?.isValid != true else { return }
            // Without a watch, the waiters try again in intervals.
            state.watch = try? FileWatch(path, for: .endings) { [weak self] name in self?.noteEvent(name) }
        }
    }

    private func stopWaiting(_ name: String) {
        leaseEvents.update { state in
            state.waited[name]?.tasks -= 1
            if state.waited[name]?.tasks == 0 { state.waited[name] = nil }
            if state.waited.isEmpty { state.watch = nil }
        }
    }

    /// Counts an event of a lease; without a name, of all leases.
    private func noteEvent(_ name: String?) {
        leaseEvents.update { state in
            if let name {
                state.waited[name]?.events += 1
            } else {
                for name in state.waited.keys { state.waited[name]?.events += 1 }
            }
        }
    }

    // MARK: On the queue

    /// Tries to get a lease.
    ///
    /// - Parameter takesOver: The expiry of the awaited lease if its duration has passed and its holder has not prolonged it.
    private func attempt(
        _ name: String, after awaited: UInt64?, takesOver: Double?, for duration: Duration, _ permit: Permits.Permit?
    ) throws(StoreError) -> Attempt {
        try transact { transaction throws(StoreError) -> Attempt in
            let folder = transaction.folder
            try removeEndedLeases(in: folder)
            let (note, isLocked) = try LeaseNote.read(name, in: folder)
            if let ended = note.ended, ended.holder == awaited { return .decided(.ended(ended)) }
            let remaining = note.remaining(atMost: duration)
            let isHeld = leaseKind == .locked ? isLocked : note.holder != nil && remaining > .zero
            if isHeld {
                let (holder, left) = (note.holder ?? 0, max(.zero, remaining))
                guard holder == awaited, takesOver == note.expires else { return .held(by: holder, until: note.expires, remaining: left) }
                // The old file keeps its lock, so the new holder needs a new file.
                try folder.remove(name)
            }
            let file = try WritableFile(name, in: folder, mode: 0o600, protection: log.options.protection)
            if leaseKind == .locked { _ = try file.lock() }
            let id = UInt64.random(in: 1...UInt64.max)
            let expires = Date().timeIntervalSince1970 + duration / .seconds(1)
            do throws(StoreError) {
                try LeaseNote(holder: id, expires: expires, ended: note.ended).write(to: file)
            } catch {
                file.unlock()
                throw error
            }
            return .decided(.granted(HeldLease(id: id, name: name, file: file, permit: permit)))
        }
    }

    /// Prolongs a lease of this process, and returns whether this process still holds it; runs on the queue.
    package func prolong(_ lease: HeldLease, for duration: Duration) throws(StoreError) -> Bool {
        // A lease in a directory that was removed is lost, and the directory must not come back.
        let isHeld: Bool? = try attempt(creating: false) { _ throws(StoreError) -> Bool in
            var note = try LeaseNote(reading: lease.file)
            guard lease.file.isNamed, note.holder == lease.id else { return false }
            note.expires = Date().timeIntervalSince1970 + duration / .seconds(1)
            try note.write(to: lease.file)
            return true
        }
        return isHeld ?? false
    }

    /// Ends a lease of this process.
    package func end(_ lease: HeldLease, _ ending: Lease.Ending) {
        queue.async {
            defer {
                lease.file.unlock()
                // The file is closed with the last reference to the lease, which is this one.
                lease.permit?.release()
            }
            // If this fails, the waiters continue when the lock is released or the lease's duration has passed. A directory that was removed
            // has no waiters, and must not come back.
            _ = try? self.attempt(creating: false) { transaction throws(StoreError) in
                let note = try LeaseNote(reading: lease.file)
                // Another process has taken the lease over.
                guard lease.file.isNamed, note.holder == lease.id else { return }
                switch ending {
                case .saved, .abandoned: try transaction.folder.remove(lease.name)
                case .notStored: try self.write(.init(holder: lease.id), to: lease)
                case .failed(var failure):
                    // A note over its limit counts as damaged, and JSON takes up to six bytes for one byte of a message.
                    failure.message = String(decoding: failure.message.utf8.prefix(2_000), as: UTF8.self)
                    try self.write(.init(holder: lease.id, failure: failure), to: lease)
                }
            }
        }
    }

    private func write(_ ended: LeaseNote.Ended, to lease: HeldLease) throws(StoreError) {
        try LeaseNote(ended: ended).write(to: lease.file)
        state.withLock { $0.endedLeases.append(EndedLease(name: lease.name, id: lease.id)) }
    }

    // MARK: Old files

    /// Removes the files of this process's ended leases after the time for the waiters to read them; runs in a transaction.
    private func removeEndedLeases(in folder: DirectoryHandle) throws(StoreError) {
        let now = ContinuousClock.now
        let old = state.withLock { state in
            let old = state.endedLeases.prefix { $0.end + endingTime <= now }
            state.endedLeases.removeFirst(old.count)
            return old
        }
        for lease in old {
            let (note, isLocked) = try LeaseNote.read(lease.name, in: folder)
            if !isLocked, note.holder == nil, note.ended?.holder == lease.id { try folder.remove(lease.name) }
        }
    }

    /// Removes the files of leases and of killed compactions that processes have left behind; runs on the queue. A process may wait for the
    /// lease of a younger file.
    func removeOldLeases(age: Duration) throws(StoreError) {
        guard try exists(), let folder = try DirectoryHandle(opening: directory)?.directory(Self.folderName) else { return }
        let end = FileStatus.now() - age.saturatedNanoseconds
        var (names, hasOrphans) = ([String](), false)
        var listing = try folder.list()
        while let entry = try listing.next() {
            if TemporaryFile.isName(entry.name, kind: WritableFile.replacementKind) { hasOrphans = true }
            guard entry.name.hasSuffix(Self.leaseSuffix), let status = try listing.status(of: entry) else { continue }
            if status.kind == .regular, status.modified < end { names.append(entry.name) }
        }
        if hasOrphans {
            try transact { transaction throws(StoreError) in try LogFile<SharedChange>.removeOrphans(in: transaction.folder) }
        }
        for name in names {
            try transact { transaction throws(StoreError) in
                let folder = transaction.folder
                let (note, isLocked) = try LeaseNote.read(name, in: folder)
                let isHeld = leaseKind == .locked ? isLocked : note.holder != nil && note.remaining(atMost: age) > .zero
                if !isHeld { try folder.remove(name) }
            }
        }
    }
}
