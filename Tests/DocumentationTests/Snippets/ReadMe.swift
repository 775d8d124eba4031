internal import StoreCore

/// README.md.
@Sendable
func readme() async throws -> [[String]] {
    let api = UserAPI()
    api.script.hold()
    return try await tell { printed in
        let users = Store(
            cacher: MemoryCacher<User.ID, User>(expiry: .after(.seconds(30 * 60)))
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

        // The origin answers when the screen has seen that it is asked.
        try await printed.lines(atLeast: 1)
        api.script.release()
        let observing = try await printed.next(2)

        await users[1].update { $0.name = "Ada Lovelace" }

        let changing = try await printed.next(1)
        api.script.hold()
        async let answered: Void = {
            try await printed.lines(atLeast: 4)
            try await api.script.answerNext(with: .failure(Offline()))
        }()

        await users[1].refresh()

        try await answered
        let failing = try await printed.next(2)

        let user = try await users[1].requireData()

        screen.cancel()
        precondition(user.name == "Ada Lovelace")
        return [observing, changing, failing]
    }
}
