// RemoteRouting — a typed HTTP layer whose routes are fetchers.
//
//                     your app
//   TextStore   ┌─▶ RemoteRouting ◀─┐   SyncEngine
//   ────────────└──── StoreCore ────┘─────────────
//
// A route is described as a value, sent to a host, and decoded; any route becomes a `Fetcher` for a
// `Store`. The module imports StoreCore and Foundation, and neither of its neighbors.
//
//   Routes        describe a resource: path, parameters, options; build the request
//   Messages      requests, responses, header fields, bodies
//   Host          the client: attempts, redirects, decoding, interceptors, credentials, logs, cookies
//   Transport     one exchange, its deadlines and limits; libcurl and URLSession. The engine on libcurl is
//                 in RemoteHTTP
//   Errors        failures, and the problems that servers describe
//   Streams       bodies that are not held in memory: bytes, lines, events, downloads
//   Stores        fetchers for stores: freshness, validators, page links
//   Connectivity  the system's view of the network
//   Testing       transports without a network

internal import StoreCore
