import StoreCore

/// What is shown, one screen after the other; a screen knows stores and nothing of the network.
struct Screens {
    let repository: GitHubRepository
    let terminal: Terminal

    /// The first organisations.
    ///
    /// - Returns: Whether there was anything to show.
    func organisations() async throws -> Bool {
        terminal.heading("Organisations")
        let list = repository.organisations.flowable
        return try await show(list.publish(forceRefresh: true), saved: { await list.refresh() }) { organisations in
            Table(columns: ["login", "description"], rows: organisations.map { [$0.login, $0.description ?? ""] })
        } != nil
    }

    /// Some pages of an organisation's repositories.
    func repositories(of organisation: String, pages: Int) async throws -> Bool {
        terminal.heading("Repositories of \(organisation)")
        let list = repository.repositories[organisation]
        guard let first = try await show(list.publish(forceRefresh: true), saved: { await list.refresh() }, { table(of: $0) }) else {
            return false
        }
        var shown = first
        // Kept from the last time are perhaps more pages than one.
        while shown.count < pages * 8 {
            terminal.waiting("the next page")
            switch await list.requestNextData() {
            case .loaded, .joined: break
            case .failed(let error):
                terminal.failed("\(error)")
                return false
            default:
                terminal.note("that is all: \(shown.count) repositories")
                return true
            }
            guard let all = await list.getData() else { return false }
            terminal.table(table(of: Array(all.dropFirst(shown.count))), "and \(all.count - shown.count) more")
            shown = all
        }
        return true
    }

    /// A user.
    func user(_ login: String) async throws -> Bool {
        terminal.heading("User \(login)")
        let user = repository.users[login]
        return try await show(user.publish(forceRefresh: true), saved: { await user.refresh() }) { user in
            Table(
                columns: ["login", "name", "company", "followers"],
                rows: [[user.login, user.name ?? "", user.company ?? "", "\(user.followers)"]])
        } != nil
    }

    // MARK: States

    /// Shows states until one is final and saved; what is on the screen already is not shown again.
    ///
    /// - Parameters:
    ///   - states: The states.
    ///   - saved: Joins the fetch, and returns when what it brought is saved: content is shown before, and the program may end behind it.
    ///   - table: What is shown of the content.
    /// - Returns: The content, be it old; `nil` where there is none.
    private func show<Content: Equatable>(
        _ states: LoadingStateSequence<Content>, saved: @escaping @Sendable () async -> Void, _ table: (Content) -> Table
    ) async throws -> Content? {
        async let isSaved: Void = saved()
        var shown: Content?
        func put(_ content: Content, _ caption: String) {
            if content == shown { terminal.note(caption) } else { terminal.table(table(content), caption) }
            shown = content
        }
        for await state in states {
            switch state {
            case .loading(content: nil): terminal.waiting("loading")
            case .loading(let kept?):
                put(kept, "kept from the last time")
                terminal.waiting("asking whether that is still so")
            case .completed(let content, next: _, prev: _):
                put(content, shown == nil ? "from the origin" : content == shown ? "still so" : "changed meanwhile")
                await isSaved
                return content
            case .error(let error, let kept):
                if let kept { put(kept, "kept from the last time") }
                terminal.failed("\(error)")
                return kept
            }
        }
        throw CancellationError()
    }

    private func table(of repositories: [Repository]) -> Table {
        Table(
            columns: ["name", "★", "language", "description"],
            rows: repositories.map { [$0.name, "\($0.stargazersCount)", $0.language ?? "", $0.description ?? ""] })
    }
}
