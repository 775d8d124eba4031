import Foundation
import SyncEngine

func mirror(
    _ films: [ListedFile], by transfer: some FileTransfer<ListedFile>,
    to directory: URL
) async throws -> SyncReport {
    let target = DirectoryTarget(directory: directory, transfer: transfer) {
        ListedSource(films)
    }
    return try await OneWaySynchronizer(processor: target).sync()
}
