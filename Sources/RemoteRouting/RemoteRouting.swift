// RemoteRouting — a typed HTTP layer whose routes are fetchers.
//
//                     your app
//   TextStore   ┌─▶ RemoteRouting ◀─┐   SyncEngine
//   ────────────└──── StoreCore ────┘─────────────
//
// A route is described as a value, sent to a host, and decoded; any route becomes a `Fetcher` for a
// `Store`. The module knows StoreCore and Foundation, and neither of its neighbours.
// Nothing of it is built yet; the README's status line says so.

internal import StoreCore
