import Testing

@testable import StoreCore

/// Checks the decision about a pair against the rule that the newest value of each field wins, in every order of a few events.
struct LinkPairTests {
    /// An entity with two fields, a full place, and two fragments: of both fields, and of the first.
    private struct World: Hashable {
        /// A value is its stamp: two places with the same stamp show the same.
        struct Copy: Hashable {
            var stamp: Stamp
            var values: [Stamp]
        }

        var entity: Copy?
        var parts: [Stamp?] = [nil, nil]
        var places: [Copy?] = [nil, nil, nil]
        static let fields = [[0, 1], [0, 1], [0]]
        /// The newest stamp of each field among everything that was accepted while the entity had content.
        var newest: [Stamp] = [0, 0]

        mutating func settle() { for _ in 0..<3 { for place in places.indices { reconcile(place) } } }

        /// Carries out the decision about one place, as the layer does.
        private mutating func reconcile(_ number: Int) {
            guard var place = places[number] else { return }
            let fields = Self.fields[number], isFull = number == 0
            let decision = PlaceDecision(place: place.stamp, entity: entity?.stamp, parts: isFull ? [nil] : fields.map { parts[$0] })
            let touched = { (list: [Int]) in isFull ? (list.isEmpty ? [] : fields) : list.map { fields[$0] } }
            for field in touched(decision.copied) { place.values[field] = entity?.values[field] ?? 0 }
            for field in touched(decision.merged) {
                if isFull, let newer = parts[field], newer > place.stamp { continue }
                entity?.values[field] = place.values[field]
                if !isFull { parts[field] = place.stamp }
            }
            if isFull, !decision.merged.isEmpty {
                entity?.stamp = place.stamp
                for field in fields { if let part = parts[field], part <= place.stamp { parts[field] = nil } }
            }
            if isFull, let entity { place.values = entity.values }
            place.stamp = decision.stamp
            places[number] = place
        }
    }

    @Test func `E2, E3: the newest value of each field shows at every place, in every order of steps`() {
        func explore(_ world: World, _ now: Stamp, _ depth: Int) {
            if let entity = world.entity {
                for (number, place) in world.places.enumerated() {
                    guard let place else { continue }
                    for field in World.fields[number] {
                        #expect(place.values[field] == entity.values[field])
                        #expect(entity.values[field] == world.newest[field])
                    }
                }
            }
            guard depth < 5 else { return }
            // A value has the stamp of the start of its request, which may be older than what was accepted since.
            for stamp in [now, now - 3] {
                for target in 0..<4 {
                    var next = world
                    let copy = World.Copy(stamp: stamp, values: [stamp, stamp])
                    if target == 3 {
                        if let entity = next.entity, entity.stamp > stamp { continue }
                        next.entity = World.Copy(
                            stamp: stamp,
                            values: (0..<2).map { field in
                                if let part = next.parts[field], part > stamp { world.entity?.values[field] ?? stamp } else { stamp }
                            })
                        for field in 0..<2 { if let part = next.parts[field], part <= stamp { next.parts[field] = nil } }
                    } else {
                        next.places[target] = copy
                    }
                    let isNew = world.entity == nil && next.entity != nil
                    let seen = isNew ? next.places.enumerated().filter { $1 != nil } : [(target, copy)].filter { $0.0 < 3 }
                    for field in 0..<2 {
                        var stamps = seen.filter { World.fields[$0.0].contains(field) }.compactMap { $0.1?.stamp }
                        if target == 3 { stamps.append(stamp) }
                        if next.entity != nil { next.newest[field] = max(next.newest[field], stamps.max() ?? 0) }
                    }
                    next.settle()
                    explore(next, now + 2, depth + 1)
                }
            }
        }
        explore(World(), 10, 0)
    }

    @Test func `E2: only a strictly newer stamp wins, and a decision is settled in one step`() {
        for entity in [nil, 1, 2, 3] as [Stamp?] {
            for place in [1, 2, 3] as [Stamp] {
                let decision = PlaceDecision(place: place, entity: entity, parts: [nil])
                #expect(decision.copied == (entity ?? 0 > place ? [0] : []))
                #expect(decision.merged == (entity ?? place < place ? [0] : []))
                let settled = PlaceDecision(place: decision.stamp, entity: entity.map { _ in decision.stamp }, parts: [nil])
                #expect(settled == PlaceDecision(place: decision.stamp, entity: nil, parts: [nil]))
            }
        }
    }
}
