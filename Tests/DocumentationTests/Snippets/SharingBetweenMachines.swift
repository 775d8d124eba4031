internal import PostgresCacher
internal import StoreCore
internal import Testing

/// The examples of the cacher over PostgreSQL, which connect to no server before the first call.
struct SharingBetweenMachinesTests {
    private let api = UserAPI()

    @Test func `a cacher is created without a connection`() throws {
        try check { try cacher() }
    }

    @Test func `several cachers share the connections of a database`() throws {
        try check { try cachers() }
    }

    /// On a machine without libpq, an error says so.
    private func check(_ example: () throws -> Void) throws {
        do { try example() } catch let error as PostgresError { #expect(error.code == .libraryMissing) }
    }

    private func cacher() throws {
        //: PostgresCacher.md
        _ = users
    }

    private func cachers() throws {
        //: PostgresDatabase.swift
        _ = users
    }
}
