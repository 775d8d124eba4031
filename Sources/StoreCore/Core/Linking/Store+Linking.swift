extension Store {
    /// Returns valid content from memory if none of its entities has changed since; `nil` for a store without links.
    @usableFromInline
    func linkedHit(_ param: Param) -> Content? {
        guard let (record, deadline) = linkedFront?.entry(of: param), isReconciled(record) else { return nil }
        return deadline == .max || (deadline != .min && clock.nanoseconds() < deadline) ? record.content : nil
    }

    /// Whether a record in memory agrees with the entities that it shows.
    func isReconciled(_ record: CacheRecord<Content>) -> Bool {
        engine.links.isEmpty || record.details?.reconciled == engine.clocks.number
    }
}
