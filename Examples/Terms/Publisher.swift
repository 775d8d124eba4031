import Foundation
import LoopbackOrigin
import StoreCore
import StorePlatform

/// The publisher of the terms: an HTTP origin in this process that serves version 2.0.0.
struct Publisher {
    /// The preferred port. With a constant address, the store can revalidate its saved manifest.
    static let usualPort: UInt16 = 47_011

    let origin: LoopbackOrigin

    init() throws {
        do { origin = try LoopbackOrigin(port: Self.usualPort) } catch { origin = try LoopbackOrigin() }
        let text = Self.terms
        let digest = SHA256.digest(of: Array(text.utf8)).hex
        let manifest = """
            { "revision": 2, "texts": {
              "terms": { "version": "2.0.0", "url": "terms-2.0.0.txt", "sha256": "\(digest)", "length": \(text.utf8.count) } } }
            """
        origin.on(.get, "/versions.json") { .json(literal: manifest).tagged().revalidated(by: $0) }
        origin.on(.get, "/terms-2.0.0.txt") { .text(text).tagged().revalidated(by: $0) }
    }

    static let terms = """
        Terms of the Bookshop

        1. You may borrow five books at a time.
        2. A book is yours for two weeks.
        3. A late book costs nothing; we will write to you.
        4. We keep your name and address. What you have borrowed is forgotten when you bring it back.
        5. Be kind to the cat.

        """
}
