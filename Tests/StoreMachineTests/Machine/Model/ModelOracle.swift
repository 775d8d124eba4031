internal import Foundation

@testable import StoreCore

/// The expected state of a key, computed without the machine: the laws as a dozen plain rules about one record and a list of
/// patches.
struct ModelOracle {
    var now = 100
    /// Whether the engine knows the accepted content.
    var isKnown = false
    var accepted: Accepted?
    var failure: Failure?
    /// The error number of the last failed page in each direction.
    var failedSides: [PageDirection: Int] = [:]
    var patches: [Patch] = []
    /// The commands that the content contains and that the outbox has not forgotten.
    var folded: [UUID] = []
    var delivered: [Delivered] = []
    /// The number of changes that outdate older fetches.
    var epoch = 0
    /// The number of changes that the response to an earlier mutation may not contain.
    var changes = 0
    /// Whether an observed key is fetched when the last mutation is settled.
    var owesFetch = false
    /// Whether a list was updated before the record with its page keys was read.
    var keysWait = false
    /// The number of changes of the accepted content, and the number of them that the cacher has finished.
    var revision = 0
    var settled = 0
    var hasSaveFailed = false
    /// The time since which a save is pending, and whether it is an invalidation of a record that could not be read.
    var owedSince: Int?
    var owesInvalidation = false
    /// Whether reading failed, so that the cacher may hold any record.
    var isUnread = false
    /// Whether the record could not be read, so that the cacher may have one without later changes.
    var isUnreadable = false
    /// Whether the record is to be fetched again at its deadline.
    var isArmed = false
    var triggerWaits = false
    var forceWaits = false
    var invalidationWaits = false
    var lastEnded: Int?
    var graceEnds: Int?
    /// Whether the last page to arrive has dropped another one.
    var hasDropped = false
    var stream: ModelStream?
    /// The number of changes that end a stream.
    var streamEpoch = 0

    struct Accepted: Equatable {
        var content: [Int]
        var fetchedAt: Int
        var isInvalidated = false
        var isForbidden = false
        /// Whether its stream has ended normally.
        var isComplete = false
        /// The number of the content that the validator names.
        var tag: Int?
        var nextKey: String?
        var prevKey: String?
        var pages: [LoadedPage] = []
        /// The commands that the record names.
        var names: [UUID] = []

        func pageKey(_ direction: PageDirection) -> String? { direction == .next ? nextKey : prevKey }

        var loaded: PageCounts { PageCounts(next: pages.count { $0.direction == .next }, prev: pages.count { $0.direction == .prev }) }

        /// The pages that a fetch loads again: from the initial page, or else from the first page with its key (C18).
        func refetched(_ window: Int?) -> PageCounts {
            let most = window.map { $0 - 1 } ?? .max
            var pages = pages
            // A fetch in a window need not reach empty pages at the ends.
            if window != nil {
                if pages.count > 1, pages.emptyEnd(.next) != nil { pages.removeLast() }
                if pages.count > 1, pages.emptyEnd(.prev) != nil { pages.removeFirst() }
            }
            if let first = pages.first, let direction = first.direction, let key = first.key,
                !pages.contains(where: { $0.direction == nil })
            {
                return PageCounts(next: min(most, pages.count - 1), start: .page(direction, key: key))
            }
            let next = min(most, pages.count { $0.direction == .next })
            return PageCounts(next: next, prev: min(most - next, pages.count { $0.direction == .prev }))
        }

        /// Whether a confirmation of the initial page can be applied: the page is part of the list (C25).
        var isConfirmable: Bool { pages.isEmpty || pages.contains { $0.direction == nil } }

        /// Reduces the list to its initial page, because the origin has confirmed only that page (C25).
        mutating func keepInitialPage() {
            guard let place = pages.firstIndex(where: { $0.direction == nil }) else { return }
            let (front, back) = (pages[..<place], pages[(place + 1)...])
            let start = front.map(\.count).reduce(0, +)
            content = Array(content[start..<start + pages[place].count])
            if let key = front.last?.key { prevKey = key }
            if let key = back.first?.key { nextKey = key }
            isForbidden = pages[place].storage == .forbidden
            pages = []
        }

        /// Drops the page at one end. Its key becomes the page key of that end (C18).
        ///
        /// - Returns: `false` if its key is unknown.
        mutating func dropPage(at side: PageDirection) -> Bool {
            guard let page = side == .next ? pages.last : pages.first else { return false }
            let rest = Array(side == .next ? pages.dropLast() : pages.dropFirst())
            // The page that is being added returns this key for the other direction.
            let back = rest.isEmpty ? "x" : (side == .next ? rest.last : rest.first)?.returnKey
            guard let key = page.direction == side ? page.key : back else { return false }
            pages = rest
            if side == .next {
                content.removeLast(page.count)
                nextKey = key
            } else {
                content.removeFirst(page.count)
                prevKey = key
            }
            return true
        }

        /// Replaces the content; its elements belong to the first page that had elements.
        mutating func replace(_ new: [Int]) {
            content = new
            let owner = pages.firstIndex { $0.count > 0 } ?? pages.count - 1
            for place in pages.indices { pages[place].count = place == owner ? new.count : 0 }
            spreadStorage()
        }

        /// Appends elements; they belong to the last page.
        mutating func append(_ more: [Int]) {
            content += more
            if let last = pages.indices.last { pages[last].count += more.count }
            spreadStorage()
        }

        /// Elements of a page that must not be stored may have moved to any other page (C25).
        private mutating func spreadStorage() {
            guard pages.contains(where: { $0.storage == .forbidden }) else { return }
            for place in pages.indices { pages[place].storage = .forbidden }
        }
    }

    struct Failure {
        var number: Int
        var holdsUntil: Int
    }

    struct Patch {
        var id: Ticket
        var mark: Int
        /// The number of changes when it began, including its own.
        var began: Int
        var isBeforePage = false
        var isConfirmed = false
        var command: Command?

        struct Command {
            var id: UUID
            var order: Int
            var isAttempted = false
            /// Whether content of the origin has arrived after an attempt.
            var isBeforeFetch = false
        }
    }
}

extension ModelOracle {
    /// The content that readers see: the patches in order over the accepted content (C14).
    var visible: [Int]? { accepted.map { $0.content + patches.map(\.mark) } }

    func deadline(_ setting: ModelSetting) -> Int? {
        guard let accepted else { return nil }
        if accepted.isInvalidated { return -1_000_000 }
        if stream?.isConnected == true { return nil }
        return setting.expiry.map { accepted.fetchedAt + $0 }
    }

    func isValid(_ setting: ModelSetting) -> Bool {
        guard accepted != nil else { return false }
        return deadline(setting).map { now < $0 } ?? true
    }

    /// Whether a policy allows serving the content within this window after its expiry (RFC 5861).
    func isServable(_ window: Duration, _ setting: ModelSetting) -> Bool {
        guard let accepted, !accepted.isInvalidated, let deadline = deadline(setting), window > .zero else { return false }
        return now <= deadline + whole(window)
    }

    var isHeldOff: Bool { failure.map { now < $0.holdsUntil } ?? false }

    /// The earliest time of an automatic fetch.
    private func automaticFetch(_ setting: ModelSetting) -> Int {
        max(lastEnded.map { $0 + whole(setting.rules.policy.minimumInterval) } ?? -1, failure?.holdsUntil ?? -1)
    }

    /// The time of the next automatic fetch of an observed key without a running fetch (C10, C16).
    func due(_ setting: ModelSetting) -> Int? {
        guard isKnown else { return nil }
        if triggerWaits { return automaticFetch(setting) }
        // A stream that waits connects again anyway.
        guard isArmed, stream?.isWaiting != true, let deadline = deadline(setting) else { return nil }
        return max(deadline, automaticFetch(setting))
    }

    // MARK: Changes of the accepted content

    mutating func accept(_ new: Accepted, _ setting: ModelSetting) {
        accepted = new
        changes += 1
        isKnown = true
        keysWait = false
        failure = nil
        revision += 1
        isArmed = setting.rules.policy.revalidatesOnExpiry && isValid(setting)
    }

    mutating func becomeKnown(_ found: Accepted?, _ setting: ModelSetting) {
        guard !isKnown else {
            if keysWait, let found, accepted != nil {
                accepted?.nextKey = found.nextKey
                accepted?.prevKey = found.prevKey
                accepted?.pages = found.pages
                let content = accepted?.content ?? []
                accepted?.replace(content)
                revision += 1
            }
            keysWait = false
            return
        }
        isKnown = true
        accepted = found
        folded += found?.names.filter { !folded.contains($0) } ?? []
        patches.removeAll { patch in patch.command.map { folded.contains($0.id) } ?? false }
        fold()
        isArmed = setting.rules.policy.revalidatesOnExpiry && isValid(setting)
        if invalidationWaits { applyInvalidation() }
    }

    mutating func update(_ content: [Int], keys: (next: String?, prev: String?)?, _ setting: ModelSetting) {
        epoch += 1
        invalidationWaits = false
        failedSides = [:]
        var new = said(content, keys: keys)
        if keys != nil, setting.window != nil { new.pages = [] }
        // The page keys of a list are kept, even if the record that holds them has not been read.
        if keys != nil { keysWait = false } else if !isKnown, setting.isList { keysWait = true }
        let (keysWait, wasKnown) = (keysWait, isKnown)
        accept(new, setting)
        if !wasKnown { fold() }
        self.keysWait = keysWait
    }

    /// Returns a record for content that did not come from a fetch. It keeps the pages, the storage rule, and the normal end of a stream.
    func said(_ content: [Int], keys: (next: String?, prev: String?)? = nil) -> Accepted {
        var new = Accepted(content: [], fetchedAt: now)
        (new.nextKey, new.prevKey) = keys ?? (accepted?.nextKey, accepted?.prevKey)
        new.pages = accepted?.pages ?? []
        new.replace(content)
        (new.isForbidden, new.isComplete) = (accepted?.isForbidden ?? false, accepted?.isComplete ?? false)
        return new
    }

    mutating func clear() {
        epoch += 1
        changes += 1
        owesFetch = false
        (accepted, failure, failedSides) = (nil, nil, [:])
        // The commands of an outbox are still going to happen.
        dropConfirmed()
        patches.removeAll { $0.command == nil }
        (isKnown, isArmed, invalidationWaits) = (true, false, false)
        (keysWait, isUnreadable) = (false, false)
        revision += 1
    }

    mutating func invalidate() {
        epoch += 1
        if isKnown { applyInvalidation() } else { invalidationWaits = true }
    }

    private mutating func applyInvalidation() {
        invalidationWaits = false
        changes += 1
        guard accepted != nil else { return }
        accepted?.isInvalidated = true
        isArmed = false
        revision += 1
    }

    /// Folds confirmed patches with no pending patch before them into the accepted content.
    mutating func fold() {
        let confirmed = patches.prefix { $0.isConfirmed }
        patches.removeFirst(confirmed.count)
        noteFolded(confirmed)
        guard !confirmed.isEmpty else { return }
        guard accepted != nil else {
            // The record may be read later, and lacks these changes.
            if isUnreadable { (hasSaveFailed, owedSince, owesInvalidation) = (true, now, true) }
            return
        }
        accepted?.append(confirmed.map(\.mark))
        accepted?.tag = nil
        revision += 1
    }

    /// Whether the response to a mutation becomes the accepted content (C14).
    func accepts(_ patch: Patch, whole: Bool) -> Bool {
        let isOverlapped = patches.contains { $0.command == nil && !$0.isConfirmed && $0.id != patch.id }
        return patch.began == changes && !isOverlapped && (whole ? !patch.isBeforePage : accepted != nil)
    }

    /// Accepts the response to a mutation that no other change followed.
    mutating func takeIn(_ content: [Int], whole: Bool, _ setting: ModelSetting) {
        guard whole else {
            accepted?.append(content)
            accepted?.tag = nil
            revision += 1
            return
        }
        noteArrival()
        dropConfirmed()
        failedSides = [:]
        accept(said(content), setting)
        owesFetch = false
    }

    mutating func append(
        _ page: [Int], _ storage: Freshness.Storage, _ direction: PageDirection, asked: String?, key: String?, window: Int?
    ) {
        failedSides[direction] = nil
        for place in patches.indices { patches[place].isBeforePage = true }
        noteArrival()
        guard var longer = accepted else { return }
        if longer.pages.isEmpty { longer.pages = [LoadedPage(longer.isForbidden ? .forbidden : .allowed, count: longer.content.count)] }
        var described = LoadedPage(direction: direction, storage, key: asked, returnKey: "x", count: page.count)
        if let window {
            let side: PageDirection = direction == .next ? .prev : .next
            // An empty page takes no room, and is merged with the next page at its end (C18).
            let empty = longer.pages.emptyEnd(direction)
            while longer.pages.count >= (empty == nil ? window : window + 1), longer.dropPage(at: side) {
                failedSides[side] = nil
                hasDropped = true
            }
            if hasDropped { longer.isForbidden = longer.pages.contains { $0.storage == .forbidden } }
            if let empty {
                (described.key, described.returnKey) = (empty.key, empty.returnKey)
                if empty.storage == .forbidden { described.storage = .forbidden }
                longer.pages.remove(at: direction == .next ? longer.pages.count - 1 : 0)
            }
        }
        longer.pages.insert(described, at: direction == .next ? longer.pages.count : 0)
        if storage == .forbidden { longer.isForbidden = true }
        switch direction {
        case .next:
            longer.content += page
            longer.nextKey = key
        case .prev:
            longer.content = page + longer.content
            longer.prevKey = key
        }
        accepted = longer
        revision += 1
    }

    /// Forgets the key like the engine, which keeps only the cacher's record.
    mutating func forget() {
        (isKnown, accepted, failure, failedSides, patches, folded) = (false, nil, nil, [:], [], [])
        (isArmed, lastEnded, settled) = (false, nil, revision)
        (triggerWaits, forceWaits, invalidationWaits, isUnread, graceEnds) = (false, false, false, false, nil)
        (owedSince, owesInvalidation, owesFetch, isUnreadable) = (nil, false, false, false)
    }
}
