internal import StoreCore

#if canImport(SwiftUI)
internal import SwiftUI
#endif

struct ProfileScreen: View {
    let users: Store<Int, User>
    let id: Int
    @State private var user = Observed<User>()

    var body: some View {
        Text(user.content?.name ?? "…")
            .overlay { if user.isLoading { ProgressView() } }
            .task(id: id) { await user.follow(users[id]) }
            .refreshable { await users[id].refresh() }
    }
}
