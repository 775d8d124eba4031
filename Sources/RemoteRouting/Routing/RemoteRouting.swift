// RemoteRouting — a typed HTTP layer whose routes are fetchers.
//
//                     your app
//   TextStore       RemoteRouting       SyncEngine
//   ────────── RemoteHTTP ───────
//   ──────────────── StoreCore ───────────────────
//
// A route is described as a value, sent to a host, and decoded; any route becomes a `Fetcher` for a
// `Store`. The messages and the transports are in RemoteHTTP, which knows neither routes nor hosts.
// The module imports none of its neighbors.
//
//   Routes        describe a resource: path, parameters, header, options; build the request
//   Bodies        encode the body of a request: values, files, forms
//   Host          the client: attempts, redirects, decoding, interceptors, credentials, logs, cookies
//   Streams       bodies that are not held in memory: bytes, lines, events, downloads
//   Stores        fetchers for stores: freshness, validators, pages; deliveries for an outbox
//   Connectivity  the system's view of the network

// Exported, because an app that sends a route also names the messages, options and errors of RemoteHTTP; one import is enough for both.
@_exported public import RemoteHTTP
