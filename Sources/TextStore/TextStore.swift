// TextStore — versioned texts that never go backwards.
//
//      your app
//   ┌─▶ TextStore ◀─┐   RemoteRouting      SyncEngine
//   └───────────── StoreCore ─────────────────────────
//
// A text is a key of a store: its states are `LoadingState`, its disk is a `Cacher`, its server is a
// `RevalidatingFetcher`. The module knows StoreCore and Foundation, and neither of its neighbours.
// Nothing of it is built yet; the README's status line says so.

internal import StoreCore
