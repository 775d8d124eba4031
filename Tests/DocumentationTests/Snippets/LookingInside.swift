internal import Inspector
internal import RemoteRouting
internal import StoreCore
internal import StoreOutbox
internal import SyncEngine
internal import TextStore

// The examples of the article "Looking inside", and of the snapshots.

private func inspecting(_ users: Store<Int, User>) async throws {
    //: LookingInside.md: let inspector
    _ = api
    //: LookingInside.md: inspector.attach
}

private func keys(_ users: Store<Int, User>, id: Int) {
    //: LookingInside.md: if let key = users
    //: KeySnapshot.swift: var page = users
}

private func intercepting(_ users: Store<Int, User>) {
    //: LookingInside.md: let interception
}

private func others<Processor>(
    _ api: RemoteHost, _ texts: TextStore, _ synchronizer: OneWaySynchronizer<Processor>, _ outbox: Outbox, gauge: (String, Int) -> Void
) async {
    //: RemoteHost+Snapshot.swift
    //: TextStore+Snapshot.swift
    //: SyncSnapshot.swift
    //: Outbox+Snapshot.swift
    _ = failed
}
