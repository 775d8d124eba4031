public import Observation

/// The latest state of a sequence as an observable object, for SwiftUI and any other code that uses Observation.
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
/// The object becomes an observer soon after its creation and follows the sequence for as long as it lives. It leaves when it is released,
/// on any thread.
@MainActor
@Observable
public final class ObservedState<Content: Sendable> {
    /// The state to show now: loading without content before the first state, and the last state after the sequence has ended.
    public private(set) var state: LoadingState<Content> = .loading(content: nil)

    @ObservationIgnored private var following: Following?

    /// Creates an object that follows a sequence.
    ///
    /// - Parameter sequence: The sequence to follow; each object is one of its observers.
    public init(_ sequence: LoadingStateSequence<Content>) {
        following = Following(
            task: Task { [weak self] in
                for await state in sequence {
                    // Retains the object only while it stores a state, because a wait for the next state must not keep the object alive.
                    guard let self else { return }
                    self.state = state
                }
            })
    }

    /// The content to show: the current content, or the last good content while loading and after an error.
    public var content: Content? { state.content }

    /// The error of the last fetch, if it failed.
    public var error: (any Error)? { state.error }

    /// Whether a fetch is running.
    public var isLoading: Bool { state.isLoading }

    /// Cancels the task when the owner is released, on any thread. A `deinit` of the owner could do so only on the main actor.
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
