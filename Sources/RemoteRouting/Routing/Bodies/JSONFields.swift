internal import Foundation
internal import RemoteHTTP
internal import StoreFiles

/// Writes parameters as a JSON object (RFC 8259) in declaration order, which Foundation's encoder does not preserve.
struct JSONFields {
    var style: ParameterStyle

    func encode(_ fields: Parameters) throws(RouteFault) -> Data {
        var output: [UInt8] = []
        try write(fields, at: nil, to: &output)
        return Data(output)
    }

    private func write(_ fields: Parameters, at path: String?, to output: inout [UInt8]) throws(RouteFault) {
        // By bytes, because a `String` equals its other Unicode forms, which are other names in JSON.
        var seen: Set<[UInt8]> = []
        output.append(UInt8(ascii: "{"))
        for field in fields.elements where field.value != .absent {
            let name = path.map { "\($0).\(field.name)" } ?? field.name
            guard seen.insert(Array(field.name.utf8)).inserted else {
                throw RouteFault(
                    .unsupportedShape, in: "parameter \(name)", "it occurs twice in one JSON object, where names are unique; use a list")
            }
            if seen.count > 1 { output.append(UInt8(ascii: ",")) }
            CanonicalJSON.write(string: field.name, to: &output)
            output.append(UInt8(ascii: ":"))
            try write(field.value, at: name, to: &output)
        }
        output.append(UInt8(ascii: "}"))
    }

    private func write(_ value: ParameterValue, at path: String, to output: inout [UInt8]) throws(RouteFault) {
        switch value.kind {
        case .fields(let fields):
            try write(fields, at: path, to: &output)
        case .list(let values):
            output.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                try write(value, at: "\(path)[\(index)]", to: &output)
            }
            output.append(UInt8(ascii: "]"))
        case .absent, .valueless:
            // Absent elements of a list keep their position.
            output.append(contentsOf: "null".utf8)
        default:
            let (text, isLiteral) = try style.scalar(of: value, named: path)
            if isLiteral { output.append(contentsOf: text.utf8) } else { CanonicalJSON.write(string: text, to: &output) }
        }
    }
}
