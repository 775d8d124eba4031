import StoreCore
import Testing
import Trials

@Suite struct LoadingStateTests {
    static let states: [LoadingState<Int>] = [
        .loading(content: nil), .loading(content: 1), .loading(content: 2),
        .completed(1), .completed(2),
        .completed(content: 1, next: .fixed(canRequestAdditionalData: true), prev: .none),
        .completed(content: 1, next: .none, prev: .fixed(canRequestAdditionalData: true)),
        .completed(content: 1, next: .loading, prev: .none), .completed(content: 1, next: .error(rawError: Offline()), prev: .none),
        .error(rawError: Offline(), content: nil), .error(rawError: Offline(), content: 1),
        .error(rawError: Refused(code: 1), content: nil),
    ]

    @Test(arguments: Array(states.enumerated()))
    func `a state equals itself and no other state`(index: Int, state: LoadingState<Int>) {
        for (otherIndex, other) in Self.states.enumerated() { #expect((state == other) == (index == otherIndex)) }
    }

    @Test(arguments: [
        (Refused(code: 1) as any Error, Refused(code: 1) as any Error, true),
        (Refused(code: 1), Refused(code: 2), false),
        (Refused(code: 1), Disguised(), false),
        (Named(name: "a", detail: 1), Named(name: "a", detail: 2), true),
    ])
    func `errors are equal if type and reflection are equal`(left: any Error, right: any Error, areEqual: Bool) {
        #expect((LoadingState<Int>.error(rawError: left, content: 1) == .error(rawError: right, content: 1)) == areEqual)
        #expect((AdditionalLoadingState.error(rawError: left) == .error(rawError: right)) == areEqual)
    }

    @Test(arguments: states)
    func `each kind of state exposes its content, its error and its flags`(state: LoadingState<Int>) {
        switch state {
        case .loading(let content):
            #expect((state.isLoading, state.isCompleted) == (true, false))
            #expect(state.content == content && state.error == nil)
        case .completed(let content, next: _, prev: _):
            #expect((state.isLoading, state.isCompleted) == (false, true))
            #expect(state.content == content && state.error == nil)
        case .error(let rawError, let content):
            #expect((state.isLoading, state.isCompleted) == (false, false))
            #expect(state.content == content && state.error.map { type(of: $0) == type(of: rawError) } == true)
        }
    }

    @Test(arguments: states)
    func `mapping changes only the content`(state: LoadingState<Int>) {
        let mapped = state.map(String.init)
        #expect(mapped.content == state.content.map(String.init))
        #expect(mapped.map { Int($0) ?? 0 } == state)
    }

    @Test(arguments: states)
    func `mapping rethrows the error of the transform and calls it only if there is content`(state: LoadingState<Int>) {
        let refuse: (Int) throws(Offline) -> Int = { _ throws(Offline) in throw Offline() }
        if state.content == nil {
            #expect(throws: Never.self) { try state.map(refuse) }
        } else {
            #expect(throws: Offline.self) { try state.map(refuse) }
        }
    }

    @Test(arguments: states)
    func `doAction calls the matching closure and returns its result`(state: LoadingState<Int>) {
        let copy: LoadingState<Int> = state.doAction(
            onLoading: { .loading(content: $0) },
            onCompleted: { .completed(content: $0, next: $1, prev: $2) },
            onError: { .error(rawError: $0, content: $1) })
        #expect(copy == state)
    }

    @Test(arguments: [
        (AdditionalLoadingState.none, "fixed false", false, false, false),
        (.fixed(canRequestAdditionalData: true), "fixed true", true, false, false),
        (.loading, "loading", false, true, false),
        (.error(rawError: Offline()), "error Offline()", true, false, true),
    ])
    func `each page state exposes flags and error, and doAction calls the matching closure`(
        state: AdditionalLoadingState, called: String, canRequest: Bool, isLoading: Bool, hasError: Bool
    ) {
        #expect((state.canRequestAdditionalData, state.isLoading, state.error is Offline) == (canRequest, isLoading, hasError))
        #expect(state.doAction(onFixed: { "fixed \($0)" }, onLoading: { "loading" }, onError: { "error \($0)" }) == called)
    }

    struct Refused: Error { var code: Int }
    /// An error with the description of another type's error.
    struct Disguised: Error, CustomDebugStringConvertible { var debugDescription: String { String(reflecting: Refused(code: 1)) } }
    /// An error with a description that omits its detail.
    struct Named: Error, CustomDebugStringConvertible {
        var name: String
        var detail: Int
        var debugDescription: String { name }
    }
}
