internal import StoreCore

// Examples of doc comments.

private func manyKeys(
    _ articles: Store<Article.ID, Article>, _ ids: [Article.ID], show: ([Article.ID: Article]) -> Void
) async throws {
    let favorites = try await articles.requireData(for: ids)
    show(favorites)
    for await state in articles.publish(ids) { show(state.content ?? [:]) }
}

private func snapshots(_ users: Store<Int, User>, gauge: (String, Int) -> Void) {
    let snapshot = users.snapshot()
    gauge("unsaved records", snapshot.unsavedKeys)
}
