public import Observation

/// The latest state of a sequence as an observable object, for SwiftUI and everything else that works with Observation.
///
/// ```swift
/// struct UserView: View {
///     @State private var user = ObservedState(users[1].publish())
///
///     var body: some View {
///         if let content = user.content { Text(content.name) }
///         if user.isLoading { ProgressView() }
///     }
/// }
/// ```
///
/// It becomes an observer soon after it was made, follows the sequence for as long as it lives, and leaves when it is released, from
/// whatever thread that happens.
@MainActor
@Observable
public final class ObservedState<Content: Sendable> {
    /// What may be shown now; loading without content until the sequence gives its first state, and its last state should it end.
    public private(set) var state: LoadingState<Content> = .loading(content: nil)

    @ObservationIgnored private var following: Following?

    /// Starts to follow a sequence.
    ///
    /// - Parameter sequence: What to follow; each object is one observer of it.
    public init(_ sequence: LoadingStateSequence<Content>) {
        following = Following(
            task: Task { [weak self] in
                for await state in sequence {
                    // Held only while a state is put in its place: waiting for the next one must not keep the object.
                    guard let self else { return }
                    self.state = state
                }
            })
    }

    /// The content to show: the current one, or the last good one while loading and after an error.
    public var content: Content? { state.content }

    /// The error of the last fetch, where it failed.
    public var error: (any Error)? { state.error }

    /// Whether a fetch is running.
    public var isLoading: Bool { state.isLoading }

    /// Ends with its owner on any thread, which a `deinit` of the owner could do only on the main actor.
    private final class Following: Sendable {
        private let task: Task<Void, Never>

        init(task: Task<Void, Never>) {
            self.task = task
        }

        deinit {
            task.cancel()
        }
    }
}
