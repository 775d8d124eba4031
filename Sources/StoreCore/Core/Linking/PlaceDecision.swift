/// The moment of a value, on a hybrid logical clock: microseconds of wall time, or one more than the last stamp (E2).
package typealias Stamp = UInt64

/// The decision about one entity and one place that shows it: which values show, and which are copied (E2, E3).
///
/// It knows stamps, not values. A fragment has one part for each field, because fragments of several lists may have brought different fields
/// of one entity. A full place has one part.
struct PlaceDecision: Hashable {
    /// The parts of the value that are copied to the place, and those that are merged into the entity.
    var copied: [Int] = []
    var merged: [Int] = []
    /// The stamp of the place afterward.
    var stamp: Stamp

    /// Decides about a place. An entity without a stamp has no content; its parts have the stamps that fragments have brought.
    init(place: Stamp, entity: Stamp?, parts: [Stamp?]) {
        stamp = place
        guard let entity else {
            // Other fragments may have brought newer fields.
            copied = parts.indices.filter { parts[$0] ?? 0 > place }
            return
        }
        for (number, part) in parts.enumerated() {
            // Only a strictly newer value wins.
            let newest = max(entity, part ?? 0)
            if newest > place { copied.append(number) } else if newest < place { merged.append(number) }
        }
        // A field of a fragment may be newer than the others, so it does not raise the stamp of all.
        stamp = max(place, entity)
    }
}

// MARK: - Stamps

/// The stamps of all places of one content, in the order of its links and of their places.
///
/// Encoded as runs, because most places have the stamp of their page.
package struct PlaceStamps: Hashable, Sendable, Codable {
    package var links: [[Stamp]]

    init(_ links: [[Stamp]]) { self.links = links }

    package init(from decoder: any Decoder) throws {
        var rest: Stamp = 1 << 20
        links = try decoder.singleValueContainer().decode([[Stamp]].self).map { runs in
            var stamps: [Stamp] = []
            // Damaged numbers make another count, so that the stamps count as unknown.
            for position in stride(from: 0, to: runs.count - 1, by: 2) where runs[position] <= rest {
                rest -= runs[position]
                stamps += repeatElement(min(runs[position + 1], LinkClock.limit), count: Int(runs[position]))
            }
            return stamps
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(
            links.map { stamps in
                stamps.reduce(into: [Stamp]()) { runs, stamp in
                    if runs.last == stamp { runs[runs.count - 2] += 1 } else { runs += [1, stamp] }
                }
            })
    }
}
