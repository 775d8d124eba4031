/// Why a request is refused before any handler sees it, and the status that says so.
struct MalformedRequest: Error {
    let status: Int
    let reason: String

    init(_ reason: String) {
        self.init(400, reason)
    }

    init(_ status: Int, _ reason: String) {
        self.status = status
        self.reason = reason
    }
}
