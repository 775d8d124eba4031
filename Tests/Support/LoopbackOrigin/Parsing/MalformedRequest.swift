/// The reason for refusing a request before any handler sees it, with the status of the response.
struct MalformedRequest: Error {
    let status: Int
    let reason: String

    init(_ reason: String) { self.init(400, reason) }

    init(_ status: Int, _ reason: String) {
        self.status = status
        self.reason = reason
    }
}
