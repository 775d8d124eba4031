#if !canImport(Darwin)
/// Looks up a C function by its name, for functions of libraries that may be missing; `nil` where the library or the function is.
///
/// The library is loaded and stays loaded; `nil` stands for the program with its loaded libraries. The caller states the function's type.
func systemFunction<Function>(_ name: String, in library: String?) -> Function? {
    guard let handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), let symbol = dlsym(handle, name) else { return nil }
    return unsafeBitCast(symbol, to: Function.self)
}
#endif
