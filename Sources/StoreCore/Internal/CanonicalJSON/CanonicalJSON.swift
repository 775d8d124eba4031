/// JSON in which equal values have equal bytes, for names that are made of keys.
///
/// - Objects have their keys sorted by UTF-8 bytes, and no white space stands anywhere.
/// - Strings are in Unicode's normal form C, because Swift takes canonically equivalent strings as equal.
/// - Sets, and dictionaries that are written as lists, are sorted, because their own order changes with each run.
/// - Negative zero is zero. Numbers that JSON does not have are the strings of ``nonConforming``.
///
/// Foundation's encoder sorts keys but does none of the rest, and cannot be told which of its lists were sets. `JSONDecoder` reads what
/// this writes: dates, data, URLs and decimals have the forms that it expects by default.
package enum CanonicalJSON {
    /// The canonical form of a value.
    ///
    /// - Parameter value: Any value, also one that is no object or list.
    /// - Returns: JSON in UTF-8.
    /// - Throws: What the value throws while it is encoded.
    package static func encode(_ value: some Encodable) throws -> [UInt8] {
        var output: [UInt8] = []
        // The usual keys, without the machinery.
        switch value {
        case let text as String: CanonicalNode.write(text, to: &output)
        case let number as Int: output.append(contentsOf: String(number).utf8)
        default: try CanonicalEncoder.node(for: value, path: []).write(to: &output)
        }
        return output
    }

    /// How numbers are written that JSON does not have; a decoder must be told the same.
    package static let nonConforming = (positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")

    /// The text of a number, which is the same for numbers that are equal.
    static func text(of number: some BinaryFloatingPoint & LosslessStringConvertible) -> CanonicalNode.Value {
        guard number.isFinite else {
            if number.isNaN { return .string(nonConforming.nan) }
            return .string(number < 0 ? nonConforming.negativeInfinity : nonConforming.positiveInfinity)
        }
        if number == 0 { return .literal("0") }
        let text = String(number)
        return .literal(text.hasSuffix(".0") ? String(text.dropLast(2)) : text)
    }
}

/// One value of a tree that is being built; a container shares its node with whoever writes into it.
final class CanonicalNode {
    enum Value {
        /// Nothing was written: an empty object, as Foundation's encoder has it.
        case nothing
        /// A number, a Boolean or null, as it stands.
        case literal(String)
        case string(String)
        case list([CanonicalNode])
        case object([String: CanonicalNode])
    }

    var value: Value

    init(_ value: Value = .nothing) {
        self.value = value
    }

    /// Puts the parts of a set or of a dictionary into the one order they have in every run.
    func sortParts(of type: any UnorderedKeyPart.Type) {
        guard case .list(let nodes) = value else { return }
        let size = type.partSize
        guard size > 0, nodes.count.isMultiple(of: size) else { return }
        let parts = stride(from: 0, to: nodes.count, by: size).map { start in
            (nodes: nodes[start..<start + size], bytes: nodes[start].bytes)
        }
        value = .list(parts.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }.flatMap(\.nodes))
    }

    private var bytes: [UInt8] {
        var output: [UInt8] = []
        write(to: &output)
        return output
    }

    func write(to output: inout [UInt8]) {
        switch value {
        case .nothing:
            output.append(contentsOf: "{}".utf8)
        case .literal(let text):
            output.append(contentsOf: text.utf8)
        case .string(let text):
            CanonicalNode.write(text, to: &output)
        case .list(let nodes):
            output.append(UInt8(ascii: "["))
            for (index, node) in nodes.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                node.write(to: &output)
            }
            output.append(UInt8(ascii: "]"))
        case .object(let members):
            let sorted = members.map { (name: Array($0.key.normalFormC.utf8), node: $0.value) }
                .sorted { $0.name.lexicographicallyPrecedes($1.name) }
            output.append(UInt8(ascii: "{"))
            for (index, member) in sorted.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                CanonicalNode.write(normalized: member.name, to: &output)
                output.append(UInt8(ascii: ":"))
                member.node.write(to: &output)
            }
            output.append(UInt8(ascii: "}"))
        }
    }

    static func write(_ text: String, to output: inout [UInt8]) {
        write(normalized: text.normalFormC.utf8, to: &output)
    }

    private static func write(normalized text: some Sequence<UInt8>, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                output.append(UInt8(ascii: "\\"))
                output.append(byte)
            case 0..<0x20:
                output.append(contentsOf: byte < 0x10 ? "\\u000".utf8 : "\\u00".utf8)
                output.append(contentsOf: String(byte, radix: 16).utf8)
            default:
                output.append(byte)
            }
        }
        output.append(UInt8(ascii: "\""))
    }
}

/// A collection whose order means nothing.
protocol UnorderedKeyPart {
    /// How many elements of its encoded list belong together: one, or a key and its value.
    static var partSize: Int { get }
}

extension Set: UnorderedKeyPart {
    static var partSize: Int { 1 }
}

extension Dictionary: UnorderedKeyPart {
    static var partSize: Int { 2 }
}
