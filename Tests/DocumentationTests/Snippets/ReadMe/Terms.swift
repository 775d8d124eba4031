import TextStore

func showTerms(
    of texts: TextStore, ask: (VersionedText) async throws -> Void
) async throws {
    let terms = try await texts.text(
        for: "eula", awaiting: .remote(timeout: .seconds(2)))
    if await texts.needsAcceptance(of: terms, granularity: .major) {
        try await ask(terms)
        try await texts.accept(terms)
    }
}
