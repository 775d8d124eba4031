import StoreCore

/// An error with advice.
struct Advising: FailureAdvising, Equatable {
    var failureKind = FailureKind.transient
    var retryAfter: Duration?
    var attempts = 1
    var allowsStale = true
}
