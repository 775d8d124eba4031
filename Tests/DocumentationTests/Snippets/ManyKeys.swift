internal import StoreCore

// Examples of doc comments.

private func manyKeys(
    _ articles: Store<Article.ID, Article>, _ ids: [Article.ID], show: ([Article.ID: Article]) -> Void
) async throws {
    //: Store+ManyKeys.swift: let favorites
    show(favorites)
    //: Store+ManyKeys.swift: for await state
}

private func snapshots(_ users: Store<Int, User>, gauge: (String, Int) -> Void) {
    //: StoreSnapshot.swift
}
