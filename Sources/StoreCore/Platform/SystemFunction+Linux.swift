#if !canImport(Darwin)
/// Looks up a C function by its name, for functions of libraries that may be missing.
///
/// - Parameters:
///   - name: The function's name.
///   - library: The library's file name, which is loaded and stays loaded; `nil` for the program with its loaded libraries.
/// - Returns: The function, of the type that the caller states; `nil` where the library or the function is missing.
func systemFunction<Function>(_ name: String, in library: String?) -> Function? {
    guard let handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), let symbol = dlsym(handle, name) else { return nil }
    return unsafeBitCast(symbol, to: Function.self)
}
#endif
