import StoreCore
internal import StoreFiles

extension TextStore {
    /// Begins to follow other processes if texts are observed, publishes their changes, and otherwise ends following.
    ///
    /// Many calls in a row cause one pass.
    func updateFollowing() {
        shelf.follower.schedule { [weak self] in
            Task { [weak self] in await self?.follow() }
        }
    }

    private func follow() async {
        let look: @Sendable () -> Void = { [weak self] in self?.updateFollowing() }
        shelf.follower.passBegan()
        do {
            let outcome = try await shelf.follow(onEvent: look)
            shelf.follower.passSucceeded()
            // The process that removes the directory may still be removing it, so it is made again later.
            guard let outcome else { return shelf.follower.schedule(after: .seconds(1), look) }
            report(outcome)
            // Another process may have deleted an observed text.
            if outcome.isForeign { begin() }
        } catch {
            guard shelf.follower.passFailed(then: look) else { return }
            report(.fault(.wrapping(error, .fileSystem, "cannot follow other processes")))
        }
    }
}
