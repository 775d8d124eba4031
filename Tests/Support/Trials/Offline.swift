/// The error of an unreachable origin.
package struct Offline: Error {
    package init() {}
}
