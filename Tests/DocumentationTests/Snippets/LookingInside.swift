internal import Inspector
internal import RemoteRouting
internal import StoreCore
internal import StoreOutbox
internal import SyncEngine
internal import TextStore

// The examples of the article "Looking inside", and of the snapshots.

private func inspecting(_ users: Store<Int, User>) async throws {
    let inspector = try await Inspector.start()
    inspector.attach(users, name: "users")
    let api = inspector.attach(RemoteHost("api.example.com"), name: "api")
    print(inspector.url)
    _ = api
    inspector.attach(
        users, name: "users",
        redacting: { user in
            ["name": "\(user.name.count) characters"]
        })
}

private func keys(_ users: Store<Int, User>, id: Int) {
    if let key = users.snapshot(of: id) {
        print(key.age ?? .zero, key.observers, key.fetches.count)
    }
    var page = users.keySnapshots(.failed)
    while true {
        for key in page.keys { print(key.param, key.error ?? "") }
        if page.isLast { break }
        page = users.keySnapshots(.failed, after: page)
    }
}

private func intercepting(_ users: Store<Int, User>) {
    let interception = users.interceptFetches { id, target, perform in
        let outcome = try await perform()
        print("fetched \(target) of \(id): \(outcome)")
    }
    interception.cancel()
}

private func others<Processor>(
    _ api: RemoteHost, _ texts: TextStore, _ synchronizer: OneWaySynchronizer<Processor>, _ outbox: Outbox, gauge: (String, Int) -> Void
) async {
    gauge("waiting requests", api.snapshot().waitingExchanges)
    for text in await texts.snapshot() {
        print(text.identifier, text.version?.description ?? "unversioned")
    }
    let snapshot = synchronizer.snapshot()
    print(snapshot.isSyncing, snapshot.report?.summary ?? "no pass yet")
    let failed = await outbox.snapshot().failedCount
    _ = failed
}
