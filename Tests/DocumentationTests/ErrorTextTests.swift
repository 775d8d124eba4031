internal import Foundation
internal import RemoteRouting
internal import StoreCore
internal import SyncEngine
internal import TextStore
internal import Testing

/// The errors of all modules, as an app shows them.
@Suite struct ErrorTextTests {
    private static let errors: [any Error & CustomStringConvertible] = [
        StoreError(.cannotEnumerate, "clearing the store: the cacher cannot list its keys; clear it by key"),
        RemoteError(.status, .badStatus, operation: "GET https://example.org/users/7", "the server has no such user"),
        TextStoreError(.unreachable, identifier: "terms", "getting the text: the server is unreachable; try again later"),
        SyncError(.cancelled, "synchronizing: the task was canceled"),
    ]

    @Test(arguments: errors.indices)
    func `an error gives its description as localizedDescription`(index: Int) {
        let error = Self.errors[index]
        #expect((error as any Error).localizedDescription == error.description)
        #expect(!error.description.isEmpty)
    }
}
