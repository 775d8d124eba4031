import StoreCore

/// The screens, one after the other. A screen uses stores and is independent of the network.
struct Screens {
    let repository: GitHubRepository
    let terminal: Terminal
    /// Makes the text that people read about an error.
    var notice: (any Error) -> String = { "\($0)" }

    /// Shows the first organizations.
    ///
    /// - Returns: Whether there was any content to show.
    func organizations() async throws -> Bool {
        terminal.heading("Organizations")
        let list = repository.organizations.flowable
        return try await show(list.publish(forceRefresh: true), saved: { try await list.waitUntilSaved() }) { organizations in
            Table(columns: ["login", "description"], rows: organizations.map { [$0.login, $0.description ?? ""] })
        } != nil
    }

    /// Shows some pages of an organization's repositories.
    func repositories(of organization: String, pages: Int) async throws -> Bool {
        terminal.heading("Repositories of \(organization)")
        let list = repository.repositories[organization]
        guard let first = try await show(list.publish(forceRefresh: true), saved: { try await list.waitUntilSaved() }, { table(of: $0) })
        else {
            return false
        }
        var shown = first
        // The records of an earlier run may contain more than one page.
        while shown.count < pages * GitHub.repositoriesPerPage {
            terminal.waiting("the next page")
            switch await list.requestNextData() {
            case .loaded, .joined: break
            case .failed(let error):
                terminal.failed(notice(error))
                return false
            default:
                terminal.note("complete: \(shown.count) repositories")
                return true
            }
            guard let all = await list.getData() else { return false }
            terminal.table(table(of: Array(all.dropFirst(shown.count))), "and \(all.count - shown.count) more")
            shown = all
        }
        return true
    }

    /// Shows an organization's repositories from a page in their middle: that page, then concurrently the pages before and after it.
    ///
    /// - Returns: Whether all requested pages were loaded.
    func repositories(around page: RepositoryPage) async throws -> Bool {
        terminal.heading("Repositories of \(page.organization), from page \(page.number) in both directions")
        let list = repository.repositoriesAround[page]
        guard let middle = try await show(list.publish(forceRefresh: true), saved: { try await list.waitUntilSaved() }, { table(of: $0) })
        else {
            return false
        }
        terminal.waiting("the pages before and after")
        async let before = list.requestPrevData()
        async let after = list.requestNextData()
        let requests = await [before, after]
        guard let all = await list.getData() else { return false }
        let first = all.firstIndex { $0.id == middle.first?.id } ?? 0
        let end = all.firstIndex { $0.id == middle.last?.id }.map { $0 + 1 } ?? all.count
        show(all[..<first], "before", requests[0])
        show(all[end...], "after", requests[1])
        for await state in list.publish() where !state.isLoading {
            guard case .completed(_, let next, let prev) = state else { return false }
            terminal.note("at the start: \(edge(prev)); at the end: \(edge(next)); \(all.count) repositories in all")
            break
        }
        return requests.allSatisfy { request in
            if case .failed = request { false } else { true }
        }
    }

    /// Shows one direction of a list after a page request.
    private func show(_ repositories: some Collection<Repository>, _ side: String, _ request: PageRequest) {
        if case .failed(let error) = request { terminal.failed("the page \(side): \(notice(error))") }
        if repositories.isEmpty { return terminal.note("no more repositories \(side)") }
        terminal.table(table(of: Array(repositories)), "\(repositories.count) \(side)")
    }

    /// Returns the state of one direction of a list in words.
    private func edge(_ state: AdditionalLoadingState) -> String {
        state.doAction(
            onFixed: { $0 ? "more to load" : "complete" },
            onLoading: { "loading" },
            onError: { "failed: \($0)" })
    }

    /// Adds a star to the first repository of an organization, and shows its number in the list, in a search, and in the detail.
    ///
    /// - Returns: Whether all three show the new number.
    func star(in organization: String) async throws -> Bool {
        terminal.heading("One star in three places")
        guard let listed = await repository.repositories[organization].getData()?.first else { return false }
        terminal.waiting("a search and the detail")
        func numbers() async throws -> [Int?] {
            let places = [repository.repositories[organization], repository.search[listed.name]]
            var numbers: [Int?] = []
            for list in places { numbers.append(try await list.requireData().first { $0.id == listed.id }?.stargazersCount) }
            return numbers + [try await repository.details[listed.id].requireData().stargazersCount]
        }
        do {
            let before = try await numbers()
            try await repository.star(listed, of: organization)
            let after = try await numbers()
            let rows = zip(["list", "search", "detail"], zip(before, after)).map { place, numbers in
                [place] + [numbers.0, numbers.1].map { $0.map { "\($0)" } ?? "–" }
            }
            terminal.table(Table(columns: ["place", "★ before", "★ after"], rows: rows), "a star for \(listed.name)")
            return after.allSatisfy { $0 == listed.stargazersCount + 1 }
        } catch {
            terminal.failed(notice(error))
            return false
        }
    }

    /// Shows the API's metadata.
    func meta() async throws -> Bool {
        terminal.heading("The API")
        let meta = repository.meta.flowable
        return try await show(meta.publish(forceRefresh: true), saved: { try await meta.waitUntilSaved() }) { meta in
            Table(
                columns: ["property", "value"],
                rows: [["password authentication", meta.verifiablePasswordAuthentication ? "verifiable" : "not verifiable"]]
                    + meta.sshKeyFingerprints.sorted { $0.key < $1.key }.map { ["SSH key \($0.key)", $0.value] })
        } != nil
    }

    /// Shows a user.
    func user(_ login: String) async throws -> Bool {
        terminal.heading("User \(login)")
        let user = repository.users[login]
        return try await show(user.publish(forceRefresh: true), saved: { try await user.waitUntilSaved() }) { user in
            Table(
                columns: ["login", "name", "company", "followers"],
                rows: [[user.login, user.name ?? "", user.company ?? "", "\(user.followers)"]])
        } != nil
    }

    // MARK: States

    /// Shows states until one is final and saved; skips content that is already on screen.
    ///
    /// - Parameters:
    ///   - states: The states.
    ///   - saved: Returns when the content is saved. Content is shown before it is saved, and the program may end after it.
    ///   - table: Returns the table of the content.
    /// - Returns: The content, which may be stale; `nil` if there is none.
    /// - Throws: The error of a save.
    private func show<Content: Equatable>(
        _ states: LoadingStateSequence<Content>, saved: () async throws -> Void, _ table: (Content) -> Table
    ) async throws -> Content? {
        var shown: Content?
        func put(_ content: Content, _ caption: String) {
            if content == shown { terminal.note(caption) } else { terminal.table(table(content), caption) }
            shown = content
        }
        for await state in states {
            switch state {
            case .loading(content: nil): terminal.waiting("loading")
            case .loading(let kept?):
                put(kept, "from the last run")
                terminal.waiting("revalidating")
            case .completed(let content, next: _, prev: _):
                put(content, shown == nil ? "from the origin" : content == shown ? "unchanged" : "changed")
                try await saved()
                return content
            case .error(let error, let kept):
                if let kept { put(kept, "from the last run") }
                terminal.failed(notice(error))
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
