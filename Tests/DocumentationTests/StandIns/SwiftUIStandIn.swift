// The parts of SwiftUI that the examples need, for systems without it. The bodies can be evaluated, and draw nothing.

#if !canImport(SwiftUI)
@MainActor protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
}

extension Never: View {
    var body: Never { fatalError("Never has no body") }
}

/// Stands in for every view of SwiftUI, and for what its modifiers return.
struct Drawn: View {
    var body: Never { fatalError("this view is never drawn") }
}

@resultBuilder @MainActor enum ViewBuilder {
    static func buildBlock(_ content: Never) -> Never {}
    static func buildBlock<each Content: View>(_ content: repeat each Content) -> Drawn { Drawn() }
    static func buildOptional(_ content: Drawn?) -> Drawn { Drawn() }
    static func buildEither(first: Drawn) -> Drawn { Drawn() }
    static func buildEither(second: Drawn) -> Drawn { Drawn() }
}

@MainActor func EmptyView() -> Drawn { Drawn() }
@MainActor func ProgressView() -> Drawn { Drawn() }
@MainActor func Text(_ text: String) -> Drawn { Drawn() }
@MainActor func Button(_ title: String, action: @escaping @MainActor () -> Void) -> Drawn { Drawn() }
@MainActor func HStack(@ViewBuilder content: () -> some View) -> Drawn { _ = content(); return Drawn() }
@MainActor func VStack(@ViewBuilder content: () -> some View) -> Drawn { _ = content(); return Drawn() }
@MainActor func List(@ViewBuilder content: () -> some View) -> Drawn { _ = content(); return Drawn() }
@MainActor func NavigationLink(_ title: String, value: some Hashable) -> Drawn { Drawn() }

@MainActor func ForEach<Data: RandomAccessCollection>(_ data: Data, @ViewBuilder content: (Data.Element) -> some View) -> Drawn
where Data.Element: Identifiable {
    for element in data { _ = content(element) }
    return Drawn()
}

@MainActor @propertyWrapper struct State<Value> {
    private final class Storage {
        var value: Value
        init(_ value: Value) { self.value = value }
    }

    private let storage: Storage

    init(wrappedValue: Value) { storage = Storage(wrappedValue) }
    init(initialValue: Value) { storage = Storage(initialValue) }

    var wrappedValue: Value {
        get { storage.value }
        nonmutating set { storage.value = newValue }
    }
}

@MainActor protocol Scene {}

@MainActor protocol App {
    associatedtype Body: Scene
    var body: Body { get }
    init()
}

struct DrawnScene: Scene {}

@MainActor func WindowGroup(@ViewBuilder content: () -> some View) -> DrawnScene { _ = content(); return DrawnScene() }
@MainActor func NavigationStack(@ViewBuilder content: () -> some View) -> Drawn { _ = content(); return Drawn() }

enum VerticalEdge { case top, bottom }

extension View {
    func overlay(@ViewBuilder content: () -> some View) -> some View { _ = content(); return Drawn() }
    func safeAreaInset(edge: VerticalEdge, @ViewBuilder content: () -> some View) -> some View { _ = content(); return Drawn() }
    func refreshable(action: @escaping @MainActor () async -> Void) -> some View { Drawn() }
    func task(_ action: @escaping @MainActor () async -> Void) -> some View { Drawn() }
    func task(id: some Equatable, _ action: @escaping @MainActor () async -> Void) -> some View { Drawn() }
    func navigationDestination<Value: Hashable>(for type: Value.Type, @ViewBuilder content: (Value) -> some View) -> some View { Drawn() }
    func opacity(_ opacity: Double) -> some View { Drawn() }
}

@MainActor protocol PreviewProvider {
    associatedtype Previews: View
    @ViewBuilder static var previews: Previews { get }
}
#endif
