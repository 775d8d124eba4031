// Changes that a shared cacher failed to take, while other users may change the key too (D3, D8).
//
// Such a change stays in the store. It is saved again as soon as a change of another user or a gap is announced, which is also how an
// outage ends. The cacher then takes it, or refuses it because of a newer record. A change that is dropped for a newer record, and that no
// caller would apply again, is reported.

extension KeyMachine {
    /// Whether a newer record of another user may replace the content: no change is being saved or has failed to be.
    var mayAdopt: Bool { saving.tried == book.revision && !saving.isRunning && saving.next?.isReplaceable != false }

    // MARK: Callers that no longer wait

    /// Whether callers of `update { }` wait for the save of this revision, so that they stop waiting when it fails.
    func isAwaitedByEditors(_ saved: Ticket) -> Bool {
        guard rules.isShared else { return false }
        return desk.callers.values.contains { need in if case .savedEdit(let awaited) = need { awaited <= saved } else { false } }
    }

    /// A caller of `update { }` was canceled while it waited for its save.
    mutating func editorLeft(_ awaited: Ticket) {
        guard rules.isShared else { return }
        saving.leaveUnattended(awaited)
    }

    // MARK: Failed saves

    /// Another user may have changed the key: a failed save finds out by itself.
    mutating func retryFailedChange(_ transition: inout Transition) {
        if saving.failure == .content, saving.next?.isReplaceable != false { return }
        retrySave(&transition)
    }

    /// A save has failed: if the cacher can never take the record, the newer record of another user replaces it.
    mutating func yieldToNewerRecord(after error: any Error, _ transition: inout Transition) {
        guard saving.elsewhere.unreadBase != nil, saving.tried == book.revision, !isLikelyToPass(error), let failed = saving.next else { return }
        if !failed.isReplaceable { dropUnsaved(&transition) }
        // If the newer record cannot be read either, a further save is refused.
        saving.next = SharedChange(base: failed.base ?? saving.elsewhere.unreadBase, isDerived: true)
    }

    private func isLikelyToPass(_ error: any Error) -> Bool {
        if let error = error as? StoreError, error.code == .unwritableRecord { return false }
        return RetryPolicy.isTransient(error)
    }

    /// A newer record of another user takes the place of a change that nothing would apply again.
    mutating func dropUnsaved(_ transition: inout Transition) {
        report(.droppedUnsaved, &transition)
        let error = StoreError(
            .cacherFailed, "saving a change: another user of the cacher has changed the key since; apply the change to the newer content")
        answerCallers(&transition) { need in if case .saved = need { .failure(error) } else { nil } }
    }
}
