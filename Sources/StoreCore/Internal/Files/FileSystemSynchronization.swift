#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

#if os(Linux)
/// Linux's `syncfs`, which Swift's view of the C library leaves out: its header only shows it to those who ask for GNU extensions.
///
/// Looked up by its name, since there is no other way to it without a module of C; `nil` in a program without dynamic symbols.
let syncFileSystem: (@convention(c) @Sendable (Int32) -> Int32)? = {
    typealias Call = @convention(c) @Sendable (Int32) -> Int32
    // The program itself, with the libraries that it has loaded; never closed, for it never goes.
    guard let program = dlopen(nil, RTLD_NOW), let symbol = dlsym(program, "syncfs") else { return nil }
    return unsafeBitCast(symbol, to: Call.self)
}()
#endif
