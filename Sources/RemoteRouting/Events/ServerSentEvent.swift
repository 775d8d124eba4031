/// An event of a stream of server-sent events.
public struct ServerSentEvent: Hashable, Sendable {
    /// What kind of event this is; `message` where the stream does not say.
    public var type: String
    /// The content, with its lines joined by line feeds.
    public var data: String
    /// The last id that the stream has given; empty where there was none.
    public var lastEventID: String

    /// Makes an event.
    public init(type: String = "message", data: String, lastEventID: String = "") {
        self.type = type
        self.data = data
        self.lastEventID = lastEventID
    }
}
