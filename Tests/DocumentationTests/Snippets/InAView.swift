internal import StoreCore

#if canImport(SwiftUI)
internal import SwiftUI
#endif

// The view of the article on apps and servers. Without SwiftUI, the types below replace the parts of it that the example needs.

private enum OnScreen {
    struct UserScreen: View {
        let user: StoreFlowable<User.ID, User>
        @State private var observed: ObservedState<User>

        init(user: StoreFlowable<User.ID, User>) {
            self.user = user
            _observed = State(initialValue: ObservedState(user.publish()))
        }

        var body: some View {
            Group {
                switch observed.state {
                case .loading(content: nil): ProgressView()
                case .loading(let user?): UserCard(user).overlay(alignment: .top) { ProgressView() }
                case .completed(let user, next: _, prev: _): UserCard(user)
                case .error(let error, let user?): UserCard(user).safeAreaInset(edge: .bottom) { Text("\(error)") }
                case .error(let error, content: nil): ContentUnavailableView("\(error)", systemImage: "wifi.slash")
                }
            }
            .refreshable { await user.refresh() }
        }
    }

    struct UserCard: View {
        let user: User

        init(_ user: User) { self.user = user }

        var body: some View { Text(user.name) }
    }

    struct UserList: View {
        let users: Store<User.ID, User>
        let id: User.ID

        var body: some View {
            UserScreen(user: users[id]).id(id)
        }
    }
}

#if !canImport(SwiftUI)
@MainActor private protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
}

extension Never: View {
    fileprivate var body: Never { fatalError("Never has no body") }
}

private struct Drawn: View {
    var body: Never { fatalError("this view is never drawn") }
}

@MainActor private func ProgressView() -> Drawn { Drawn() }
@MainActor private func Text(_ text: String) -> Drawn { Drawn() }
@MainActor private func ContentUnavailableView(_ title: String, systemImage: String) -> Drawn { Drawn() }

private struct Group<Content: View>: View {
    init(@ViewBuilder content: () -> Content) {}
    var body: Never { fatalError("this view is never drawn") }
}

private enum Either<First: View, Second: View>: View {
    case first(First), second(Second)
    var body: Never { fatalError("this view is never drawn") }
}

@resultBuilder private enum ViewBuilder {
    static func buildBlock<Content: View>(_ content: Content) -> Content { content }
    static func buildEither<First: View, Second: View>(first: First) -> Either<First, Second> { .first(first) }
    static func buildEither<First: View, Second: View>(second: Second) -> Either<First, Second> { .second(second) }
}

@propertyWrapper private struct State<Value> {
    var wrappedValue: Value

    init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
    init(initialValue: Value) { wrappedValue = initialValue }
}

private enum Edge { case top, bottom }

extension View {
    fileprivate func overlay(alignment: Edge, @ViewBuilder content: () -> some View) -> some View { Drawn() }
    fileprivate func safeAreaInset(edge: Edge, @ViewBuilder content: () -> some View) -> some View { Drawn() }
    fileprivate func refreshable(action: @escaping @Sendable () async -> Void) -> some View { Drawn() }
    fileprivate func id(_ id: some Hashable) -> some View { Drawn() }
}
#endif
