// The program of README.md, block by block.

import StoreCore

let api = API()
let users = Store(
    cacher: MemoryCacher<Int, User>(expiry: .after(.seconds(30 * 60)))
) { id in
    try await api.user(id)
}

let screen = Task {
    for await state in users[1].publish() {
        switch state {
        case .loading(let stale):
            print("loading, showing", stale?.name ?? "nothing")
        case .completed(let user, next: _, prev: _): print("showing", user.name)
        case .error(let error, let stale):
            print("\(error), still showing", stale?.name ?? "nothing")
        }
    }
}

try await Task.sleep(for: .seconds(2))
await users[1].update { $0.name = "Ada Lovelace" }

try await Task.sleep(for: .seconds(1))
await api.disconnect()
await users[1].refresh()

try await Task.sleep(for: .seconds(1))
let user = try await users[1].requireData()
print("read", user.name)
