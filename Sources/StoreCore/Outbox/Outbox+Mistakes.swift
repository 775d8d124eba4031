// A declaration that exists only for its message, as in Store+Mistakes.swift.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

public import StoreCore

extension Outbox {
    @_documentation(visibility: internal)
    @available(
        *, unavailable,
        message: "lists show a change at one element: register(…, patching: lists, element: …) { command, element in … } perform: { … }"
    )
    public func register<Value: Command, Param: Hashable & Sendable, Element: Sendable, Result>(
        _ type: Value.Type, patching lists: PaginationStore<Param, Element>, at key: @escaping @Sendable (_ command: Value) -> Param,
        lane: (@Sendable (_ command: Value) -> String)? = nil, and others: [CommandPatch<Value>] = [],
        patch: @escaping @Sendable (_ command: Value, _ elements: inout [Element]) -> Void,
        perform: @escaping @Sendable (_ command: Value, _ delivery: Delivery) async throws -> Result
    ) async { fatalError() }
}
