/// The places at which content shows entities of another store, so that the content and that store agree.
///
/// An *entity* is content of a store that other content shows. A *place* is an element of a list, or a value inside content, that shows an
/// entity.
///
/// ```swift
/// let feed = PaginationStore(
///     cacher: MemoryCacher<String, [Article]>(), fetcher: FeedFetcher(),
///     links: [.elements(of: articles)])
/// ```
///
/// A change of an entity is visible at all of its places at once, and newer content at a place changes the entity. The newest value wins. A
/// place is *full* if it has all of the entity. Otherwise it is a *fragment*, which names its fields.
///
/// <doc:OneEntityInManyPlaces> helps to choose a link, and states which value wins.
public struct EntityLink<Content: Sendable>: Sendable {
    let rules: LinkRules
}

extension EntityLink {
    /// Links the elements of a list, which are whole entities, by their `id`.
    ///
    /// - Parameter entities: The store of the entities. The store with this link retains it.
    public static func elements<Param, Entity: Identifiable & Sendable>(of entities: Store<Param, Entity>) -> EntityLink
    where Content == [Entity], Entity.ID == Param {
        let lens = PlaceLens<Entity, Entity>.whole { $0.id }
        return EntityLink(rules: LinkRules(elementsOf: entities.engine, lens, key: { $0.id }))
    }

    /// Links the elements of a list, which are fragments of entities: they have some of the fields.
    ///
    /// A row without one of the entity's fields says nothing about it, so the entity keeps its value.
    ///
    /// - Parameters:
    ///   - entities: The store of the entities. The store with this link retains it.
    ///   - id: The key of the entity in an element.
    ///   - fields: Pairs of a field of the element and the same field of the entity.
    public static func elements<Param, Entity: Sendable, Element: Sendable, each Value: Equatable & Sendable>(
        of entities: Store<Param, Entity>, id: any KeyPath<Element, Param> & Sendable,
        fields: repeat (
            any WritableKeyPath<Element, each Value> & Sendable, any WritableKeyPath<Entity, each Value> & Sendable
        )
    ) -> EntityLink where Content == [Element] {
        var all: [LinkField<Element>] = []
        for (place, entity) in repeat each fields { all.append(LinkField(place, entity)) }
        let lens = PlaceLens<Element, Entity>.fragment(all)
        var rename: (@Sendable (inout Element, Param) -> Void)?
        if id is WritableKeyPath<Element, Param> {
            rename = { element, key in if let path = id as? WritableKeyPath<Element, Param> { element[keyPath: path] = key } }
        }
        return EntityLink(rules: LinkRules(elementsOf: entities.engine, lens, key: { $0[keyPath: id] }, rename: rename))
    }

    /// Links a value inside the content, which is a whole entity, by its `id`.
    ///
    /// - Parameters:
    ///   - path: The place of the entity.
    ///   - entities: The store of the entities. The store with this link retains it.
    public static func value<Param, Entity: Identifiable & Sendable>(
        at path: any WritableKeyPath<Content, Entity> & Sendable, of entities: Store<Param, Entity>
    ) -> EntityLink where Entity.ID == Param {
        .entities(of: entities, id: { $0.id }, in: { content, visit in visit(&content[keyPath: path]) })
    }

    /// Links entities anywhere inside the content, such as optional values, values of enumerations, and nested lists.
    ///
    /// ```swift
    /// let links: [EntityLink<Discussion>] = [
    ///     .entities(of: users, id: \.id) { thread, visit in
    ///         if var author = thread.author {
    ///             visit(&author)
    ///             thread.author = author
    ///         }
    ///         for row in thread.replies.indices {
    ///             visit(&thread.replies[row].author)
    ///         }
    ///     }
    /// ]
    /// ```
    ///
    /// - Parameters:
    ///   - entities: The store of the entities. The store with this link retains it.
    ///   - id: Returns the key of an entity.
    ///   - visitAll: Passes each entity in the content to `visit`, always in the same order. It runs under the store's lock, so it must not
    ///     call a store.
    public static func entities<Param, Entity: Sendable>(
        of entities: Store<Param, Entity>, id: @escaping @Sendable (_ entity: Entity) -> Param,
        in visitAll: @escaping @Sendable (_ content: inout Content, _ visit: (inout Entity) -> Void) -> Void
    ) -> EntityLink {
        EntityLink(rules: LinkRules(visiting: entities.engine, id, visitAll))
    }
}

/// The operations on the places of one link that an engine needs. A place is known by its position among all places of the content.
///
/// They are closures over the types of content and entity, which the engine does not know.
package final class LinkRules: Sendable {
    /// The engine of the entities, which is older than the engine with the link: links form no cycle, and give the order of the locks.
    let entities: StoreEngine
    /// The fields of a fragment; `nil` for full places.
    let fields: [EntityField]?
    let elementType: ObjectIdentifier?
    /// The keys of the entities at all places, in their order.
    let keys: @Sendable (_ content: BoxedContent) -> any PlaceKeys
    /// The values at some places: an entity, or the values of a fragment's fields.
    let values: @Sendable (_ content: BoxedContent, _ positions: [Int]) -> [BoxedContent]
    let assign: @Sendable (_ content: inout BoxedContent, _ values: [Int: BoxedContent]) -> Void
    /// Removes elements; `nil` if the places are not elements.
    let remove: (@Sendable (_ content: inout BoxedContent, _ positions: Set<Int>) -> Void)?
    /// Gives fragments the key that has replaced their temporary one; `nil` if their values have it, or if they cannot take it.
    let rename: (@Sendable (_ content: inout BoxedContent, _ positions: [Int], _ key: BoxedKey) -> Void)?
    let isSame: @Sendable (BoxedContent, BoxedContent) -> Bool
    /// The value of a place as the entity has it.
    let project: @Sendable (_ entity: BoxedContent) -> BoxedContent
    /// The identity that an entity states for itself, if it is not this key; `nil` if the entity states none.
    let otherIdentity: @Sendable (_ entity: BoxedContent, _ key: BoxedKey) -> String?

    var isFull: Bool { fields == nil }

    init<Key: Hashable & Sendable, Place: Sendable, Entity: Sendable>(
        elementsOf entities: StoreEngine, _ lens: PlaceLens<Place, Entity>, key: @escaping @Sendable (Place) -> Key,
        rename: (@Sendable (inout Place, Key) -> Void)? = nil
    ) {
        self.entities = entities
        elementType = lens.fields == nil ? ObjectIdentifier(Place.self) : nil
        fields = lens.fields?.map(\.entity)
        keys = { TypedPlaceKeys($0.value(as: [Place].self).lazy.map(key)) }
        values = { content, positions in
            let list = content.value(as: [Place].self)
            return positions.map { lens.value(list[$0]) }
        }
        assign = { content, values in
            content.change(as: [Place].self) { list in for (position, value) in values { lens.assign(&list[position], value) } }
        }
        remove = { content, positions in
            content.change(as: [Place].self) { list in
                var position = -1
                list.removeAll { _ in
                    position += 1
                    return positions.contains(position)
                }
            }
        }
        if let rename {
            self.rename = { content, positions, key in
                content.change(as: [Place].self) { list in for position in positions { rename(&list[position], key.value(as: Key.self)) } }
            }
        } else {
            self.rename = nil
        }
        (isSame, project, otherIdentity) = (lens.isSame, lens.project, lens.otherIdentity)
    }

    init<Key: Hashable & Sendable, Content: Sendable, Entity: Sendable>(
        visiting entities: StoreEngine, _ key: @escaping @Sendable (Entity) -> Key,
        _ visitAll: @escaping @Sendable (inout Content, (inout Entity) -> Void) -> Void
    ) {
        let lens = PlaceLens<Entity, Entity>.whole(key)
        self.entities = entities
        (elementType, fields, remove, rename) = (nil, nil, nil, nil)
        keys = { content in
            var (content, keys) = (content.value(as: Content.self), [Key]())
            visitAll(&content) { keys.append(key($0)) }
            return TypedPlaceKeys(keys)
        }
        values = { content, positions in
            var (content, position, found) = (content.value(as: Content.self), 0, [Int: BoxedContent]())
            let wanted = Set(positions)
            visitAll(&content) { place in
                if wanted.contains(position) { found[position] = lens.value(place) }
                position += 1
            }
            return positions.compactMap { found[$0] }
        }
        assign = { content, values in
            content.change(as: Content.self) { content in
                var position = 0
                visitAll(&content) { place in
                    if let value = values[position] { lens.assign(&place, value) }
                    position += 1
                }
            }
        }
        (isSame, project, otherIdentity) = (lens.isSame, lens.project, lens.otherIdentity)
    }
}

/// The relation between the values of a place and of its entity.
struct PlaceLens<Place: Sendable, Entity: Sendable>: Sendable {
    /// The fields of a fragment; `nil` if the place has the whole entity.
    let fields: [LinkField<Place>]?
    let value: @Sendable (Place) -> BoxedContent
    let assign: @Sendable (inout Place, BoxedContent) -> Void
    let isSame: @Sendable (BoxedContent, BoxedContent) -> Bool
    let project: @Sendable (BoxedContent) -> BoxedContent
    let otherIdentity: @Sendable (BoxedContent, BoxedKey) -> String?

    static func whole<Param: Hashable & Sendable>(_ id: @escaping @Sendable (Entity) -> Param) -> PlaceLens where Place == Entity {
        PlaceLens(
            fields: nil, value: { BoxedContent($0) }, assign: { $0 = $1.value(as: Entity.self) },
            isSame: { isUnchanged($0.value(as: Entity.self), $1.value(as: Entity.self)) }, project: { $0 },
            otherIdentity: { entity, key in
                let stated = id(entity.value(as: Entity.self))
                return stated == key.value(as: Param.self) ? nil : "\(stated)"
            })
    }

    static func fragment(_ fields: [LinkField<Place>]) -> PlaceLens {
        PlaceLens(
            fields: fields, value: { place in BoxedContent(fields.map { $0.get(place) }) },
            assign: { place, values in
                for (field, value) in zip(fields, values.value(as: [any Sendable].self)) { field.set(&place, value) }
            },
            isSame: { one, other in
                zip(fields, zip(one.value(as: [any Sendable].self), other.value(as: [any Sendable].self)))
                    .allSatisfy { field, values in field.entity.isSame(values.0, values.1) }
            },
            project: { entity in BoxedContent(fields.map { $0.entity.get(entity) }) }, otherIdentity: { _, _ in nil })
    }
}

/// A field that a fragment shares with its entity.
struct LinkField<Place: Sendable>: Sendable {
    let get: @Sendable (Place) -> any Sendable
    let set: @Sendable (inout Place, any Sendable) -> Void
    let entity: EntityField

    init<Entity: Sendable, Value: Equatable & Sendable>(
        _ place: any WritableKeyPath<Place, Value> & Sendable, _ entity: any WritableKeyPath<Entity, Value> & Sendable
    ) {
        get = { $0[keyPath: place] }
        set = { if let value = $1 as? Value { $0[keyPath: place] = value } }
        self.entity = EntityField(entity)
    }
}

/// A field of an entity that fragments have.
struct EntityField: Sendable {
    /// The names of the field's properties, such as `author.name`, without that of the type, because records keep them. Synthesized coding
    /// keys have the same names. In a program without reflection, a property has a number instead.
    let name: String
    let get: @Sendable (_ entity: BoxedContent) -> any Sendable
    let set: @Sendable (_ entity: inout BoxedContent, any Sendable) -> Void
    let isSame: @Sendable (any Sendable, any Sendable) -> Bool

    init<Entity: Sendable, Value: Equatable & Sendable>(_ path: any WritableKeyPath<Entity, Value> & Sendable) {
        name = String("\(path)".dropFirst("\\\(Entity.self).".count))
        get = { $0.value(as: Entity.self)[keyPath: path] }
        set = { entity, value in
            guard let value = value as? Value else { return }
            entity.change(as: Entity.self) { $0[keyPath: path] = value }
        }
        isSame = { one, other in (one as? Value) == (other as? Value) }
    }
}
