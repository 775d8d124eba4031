#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StorePlatform

/// JSON that has equal bytes for equal values, for names derived from keys.
///
/// - The keys of objects are sorted by their UTF-8 bytes, and there is no white space.
/// - Strings are in Unicode's normal form C, because canonically equivalent strings are equal in Swift.
/// - Sets, and dictionaries encoded as lists, are sorted, because their own order changes with each run.
/// - Negative zero is zero. Numbers that JSON cannot represent are the strings of ``nonConforming``.
///
/// Foundation's encoder only sorts keys, and cannot know which of its lists were sets. `JSONDecoder` reads this JSON: dates, data, URLs and
/// decimals have the forms that it expects by default.
package enum CanonicalJSON {
    /// Returns the canonical form of any value in UTF-8; throws the error of its `encode(to:)`.
    package static func encode(_ value: some Encodable) throws -> [UInt8] {
        var output: [UInt8] = []
        // The usual keys need no encoder.
        switch value {
        case let text as String: CanonicalNode.write(text, to: &output)
        case let number as Int: output.append(contentsOf: String(number).utf8)
        default: try CanonicalEncoder.node(for: value, path: []).write(to: &output)
        }
        return output
    }

    /// Writes a string with quotes and escapes, without changing its normal form.
    package static func write(string text: String, to output: inout [UInt8]) { CanonicalNode.write(utf8: text.utf8, to: &output) }

    static func decoder() -> JSONDecoder {
        let decoder = JSONDecoder()
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: nonConforming.positiveInfinity, negativeInfinity: nonConforming.negativeInfinity, nan: nonConforming.nan)
        return decoder
    }

    /// The strings for numbers that JSON cannot represent; a decoder needs the same strings.
    static let nonConforming = (positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")

    /// Returns the text of a number; equal numbers have equal texts.
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

/// One value of a tree; an encoder's containers share the node that they write to.
final class CanonicalNode {
    enum Value {
        /// A value that encoded nothing: an empty object, as with Foundation's encoder.
        case nothing
        /// The text of a number, a Boolean or null.
        case literal(String)
        case string(String)
        case list([CanonicalNode])
        case object([String: CanonicalNode])
    }

    var value: Value

    init(_ value: Value = .nothing) {
        self.value = value
    }

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
                CanonicalNode.write(utf8: member.name, to: &output)
                output.append(UInt8(ascii: ":"))
                member.node.write(to: &output)
            }
            output.append(UInt8(ascii: "}"))
        }
    }

    static func write(_ text: String, to output: inout [UInt8]) {
        write(utf8: text.normalFormC.utf8, to: &output)
    }

    fileprivate static func write(utf8 text: some Sequence<UInt8>, to output: inout [UInt8]) {
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

/// A collection without a meaningful order.
protocol UnorderedKeyPart {
    /// The number of encoded elements per part: one, or a key and its value.
    static var partSize: Int { get }
}

extension Set: UnorderedKeyPart {
    static var partSize: Int { 1 }
}

extension Dictionary: UnorderedKeyPart {
    static var partSize: Int { 2 }
}
