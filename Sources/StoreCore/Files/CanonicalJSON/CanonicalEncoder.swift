#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

struct CanonicalEncoder: Encoder {
    let node: CanonicalNode
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    static func node(for value: some Encodable, path: [any CodingKey]) throws -> CanonicalNode {
        if let basic = basicValue(of: value) { return CanonicalNode(basic) }
        let node = CanonicalNode()
        try value.encode(to: CanonicalEncoder(node: node, codingPath: path))
        if let type = type(of: value) as? any UnorderedKeyPart.Type { node.sortParts(of: type) }
        return node
    }

    /// Returns the node's value for a type without parts; `nil` for all other types.
    private static func basicValue(of value: some Encodable) -> CanonicalNode.Value? {
        switch value {
        case let text as String: .string(text)
        case let flag as Bool: .literal(flag ? "true" : "false")
        case let number as Int: .literal(String(number))
        case let number as Double: CanonicalJSON.text(of: number)
        case let number as Float: CanonicalJSON.text(of: number)
        case is Int8, is Int16, is Int32, is Int64, is Int128, is UInt, is UInt8, is UInt16, is UInt32, is UInt64, is UInt128:
            .literal(String(describing: value))
        // For these types, `JSONDecoder` expects another form than their own `encode(to:)` writes.
        case let date as Date: CanonicalJSON.text(of: date.timeIntervalSinceReferenceDate)
        case let data as Data: .string(data.base64EncodedString())
        case let url as URL: .string(url.absoluteString)
        case let decimal as Decimal where decimal.isNaN: .string(CanonicalJSON.nonConforming.nan)
        // Parsing removes zeros at the end of a fraction, which `NSDecimalNormalize` leaves.
        case let decimal as Decimal: .literal((Decimal(string: decimal.description) ?? decimal).description)
        default: nil
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if case .object = node.value {} else { node.value = .object([:]) }
        return KeyedEncodingContainer(CanonicalObject<Key>(node: node, codingPath: codingPath))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        if case .list = node.value {} else { node.value = .list([]) }
        return CanonicalList(node: node, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        CanonicalScalar(node: node, codingPath: codingPath)
    }
}

// In the three containers one generic method fulfills the requirements for all basic types.

private struct CanonicalObject<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let node: CanonicalNode
    let codingPath: [any CodingKey]

    private func put(_ child: CanonicalNode, _ name: String) {
        guard case .object(var members) = node.value else { return }
        // Releases the dictionary, which would otherwise be copied for each member.
        node.value = .nothing
        members[name] = child
        node.value = .object(members)
    }

    private func put(_ value: some Encodable, _ key: Key) throws {
        put(try CanonicalEncoder.node(for: value, path: codingPath + [key]), key.stringValue)
    }

    private func child(_ name: String, _ key: any CodingKey) -> CanonicalEncoder {
        // A second container for one key adds to the first, as with Foundation's encoder.
        var known: CanonicalNode?
        if case .object(let members) = node.value { known = members[name] }
        let child = known ?? CanonicalNode()
        if known == nil { put(child, name) }
        return CanonicalEncoder(node: child, codingPath: codingPath + [key])
    }

    func encodeNil(forKey key: Key) { put(CanonicalNode(.literal("null")), key.stringValue) }
    func encode(_ value: Int128, forKey key: Key) throws { try put(value, key) }
    func encode(_ value: UInt128, forKey key: Key) throws { try put(value, key) }
    func encode(_ value: some Encodable, forKey key: Key) throws { try put(value, key) }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested> {
        child(key.stringValue, key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { child(key.stringValue, key).unkeyedContainer() }
    func superEncoder() -> any Encoder { child("super", CanonicalPosition(stringValue: "super")) }
    func superEncoder(forKey key: Key) -> any Encoder { child(key.stringValue, key) }
}

private struct CanonicalList: UnkeyedEncodingContainer {
    let node: CanonicalNode
    let codingPath: [any CodingKey]

    var count: Int {
        if case .list(let nodes) = node.value { nodes.count } else { 0 }
    }

    private var path: [any CodingKey] { codingPath + [CanonicalPosition(intValue: count)] }

    private func put(_ child: CanonicalNode) {
        guard case .list(var nodes) = node.value else { return }
        // Releases the list, which would otherwise be copied for each element.
        node.value = .nothing
        nodes.append(child)
        node.value = .list(nodes)
    }

    private func child() -> CanonicalEncoder {
        let encoder = CanonicalEncoder(node: CanonicalNode(), codingPath: path)
        put(encoder.node)
        return encoder
    }

    func encodeNil() { put(CanonicalNode(.literal("null"))) }
    func encode(_ value: Int128) throws { put(try CanonicalEncoder.node(for: value, path: path)) }
    func encode(_ value: UInt128) throws { put(try CanonicalEncoder.node(for: value, path: path)) }
    func encode(_ value: some Encodable) throws { put(try CanonicalEncoder.node(for: value, path: path)) }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        child().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { child().unkeyedContainer() }
    func superEncoder() -> any Encoder { child() }
}

private struct CanonicalScalar: SingleValueEncodingContainer {
    let node: CanonicalNode
    let codingPath: [any CodingKey]

    func encodeNil() { node.value = .literal("null") }
    func encode(_ value: Int128) throws { node.value = try CanonicalEncoder.node(for: value, path: codingPath).value }
    func encode(_ value: UInt128) throws { node.value = try CanonicalEncoder.node(for: value, path: codingPath).value }
    func encode(_ value: some Encodable) throws { node.value = try CanonicalEncoder.node(for: value, path: codingPath).value }
}

/// A position in a list, or the key of a superclass.
private struct CanonicalPosition: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = "Index \(intValue)"
        self.intValue = intValue
    }
}
