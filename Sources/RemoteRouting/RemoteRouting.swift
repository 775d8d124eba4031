// RemoteRouting — a typed HTTP layer whose routes are fetchers.
//
//                     your app
//   TextStore   ┌─▶ RemoteRouting ◀─┐   SyncEngine
//   ────────────└──── StoreCore ────┘─────────────
//
// A route is described as a value, sent to a host, and decoded; any route becomes a `Fetcher` for a
// `Store`. The module knows StoreCore and Foundation, and neither of its neighbours.
//
//   Routes, Bodies, Message, Fields    what is asked, as checked values
//   Host                               the client: attempts, redirects, decoding
//   Credentials, Interceptors, Errors  who asks, who looks on, what went wrong
//   Transport                          one exchange, its deadlines and limits
//   Streaming, Downloading, Events     bodies that are not held in memory
//   Freshness, Links, Bridge           what a store makes of an answer

internal import StoreCore
