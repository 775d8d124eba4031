import Foundation
import Testing
import Trials
@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox
@testable import StorePlatform

struct DeliveryLeaseTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func user(_ kind: LeaseKind = .locked) throws -> SharedDirectory { try OutboxLog(directory: place.url).leases(kind) }

    private func waitUntilWaiting(_ leases: SharedDirectory) async throws {
        try await until { leases.leaseEvents.current.waited.count == 1 }
    }

    @Test(arguments: [LeaseKind.locked, .dated])
    func `O13: one user delivers, and the next user after the lease is released`(kind: LeaseKind) async throws {
        let (a, b) = (try user(kind), try user(kind))
        let lease = try await a.acquireDelivery()
        #expect(await lease.isHeld())
        let isGranted = Lock(false)
        let waiter = Task {
            let lease = try await b.acquireDelivery()
            isGranted.withLock { $0 = true }
            return lease
        }
        try await waitUntilWaiting(b)
        #expect(!isGranted.withLock { $0 })
        lease.release()
        let next = try await waiter.value
        #expect(await next.isHeld())
        #expect(await !lease.isHeld())
    }

    @Test func `O13: the lease ends with its last reference`() async throws {
        let (a, b) = (try user(), try user())
        _ = try await a.acquireDelivery()
        #expect(await (try b.acquireDelivery()).isHeld())
    }

    @Test func `O13: a dated lease is prolonged while its holder runs`() async throws {
        let leases = try user(.dated)
        let lease = try await leases.acquireDelivery(for: .seconds(3))
        func expires() async throws -> Double {
            // On the queue of the leases, so that no note is read while it is written.
            try await leases.perform { [leases] in
                guard let folder = try DirectoryHandle(opening: Directory(path: leases.path)) else { return 0 }
                return try LeaseNote.read(DeliveryLease.name, in: folder).note.expires
            }
        }
        let first = try await expires()
        try await until { try await expires() > first }
        let second = try await expires()
        #expect(await lease.isHeld())
        let third = try await expires()
        #expect(third > second)
        try await until { try await expires() > third }
        lease.release()
    }

    @Test func `O13: after the date of a lease, another user takes over, and the holder finds that it has lost the lease`() async throws {
        let (a, b) = (try user(.dated), try user(.dated))
        // For so long that the holder prolongs it only after the test.
        let lease = try await a.acquireDelivery(for: .seconds(86_400))
        // As if the process had been suspended for a while.
        guard let folder = try DirectoryHandle(opening: Directory(path: a.path)) else { return }
        let file = try WritableFile(DeliveryLease.name, in: folder)
        var note = try LeaseNote(reading: file)
        note.expires = 0
        try note.write(to: file)
        let next = try await b.acquireDelivery()
        #expect(await !lease.isHeld())
        #expect(await next.isHeld())
        // The end of the former lease does not end the present one.
        lease.release()
        try await b.perform {}
        try await a.perform {}
        #expect(await next.isHeld())
    }
}
