/// The error of an unreachable origin.
public struct Offline: Error {
    public init() {}
}
