internal import RemoteHTTP

/// Flattens parameters into the name–value pairs of queries and forms.
struct PairEncoder {
    struct Pair: Equatable {
        var name: String
        var value: String?
    }

    var style: ParameterStyle

    func pairs(of parameters: Parameters) throws(RouteFault) -> [Pair] {
        var pairs: [Pair] = []
        pairs.reserveCapacity(parameters.elements.count)
        for element in parameters.elements { try append(element.value, named: element.name, to: &pairs) }
        return pairs
    }

    /// The query without its question mark (RFC 3986 §3.4); `nil` if there are no pairs.
    func query(of parameters: Parameters) throws(RouteFault) -> String? {
        let pairs = try pairs(of: parameters)
        return pairs.isEmpty ? nil : join(pairs, by: .component)
    }

    /// The output of the URL standard's `application/x-www-form-urlencoded` serializer.
    func form(of parameters: Parameters) throws(RouteFault) -> String {
        // A form cannot express a name without a value.
        join(try pairs(of: parameters).map { Pair(name: $0.name, value: $0.value ?? "") }, by: .form)
    }

    private func join(_ pairs: [Pair], by encoding: PercentEncoding) -> String {
        var output: [UInt8] = []
        output.reserveCapacity(pairs.count * 24)
        for (index, pair) in pairs.enumerated() {
            if index > 0 { output.append(UInt8(ascii: "&")) }
            encoding.append(pair.name, to: &output)
            guard let value = pair.value else { continue }
            output.append(UInt8(ascii: "="))
            encoding.append(value, to: &output)
        }
        return String(decoding: output, as: UTF8.self)
    }

    private func append(_ value: ParameterValue, named name: String, to pairs: inout [Pair]) throws(RouteFault) {
        switch value.kind {
        case .absent: break
        case .valueless: pairs.append(Pair(name: name, value: nil))
        case .list(let values): try append(values, named: name, to: &pairs)
        case .fields(let fields):
            for field in fields.elements { try append(field.value, named: "\(name)[\(field.name)]", to: &pairs) }
        default: pairs.append(Pair(name: name, value: try style.scalar(of: value, named: name).text))
        }
    }

    private func append(_ values: [ParameterValue], named name: String, to pairs: inout [Pair]) throws(RouteFault) {
        switch style.lists {
        case .repeatedName:
            for value in values { try append(value, named: name, to: &pairs) }
        case .brackets:
            for value in values { try append(value, named: "\(name)[]", to: &pairs) }
        case .indices:
            for (index, value) in values.enumerated() { try append(value, named: "\(name)[\(index)]", to: &pairs) }
        case .commas:
            let present = values.filter { $0 != .absent }
            guard !present.isEmpty else { return }
            var texts: [String] = []
            for value in present { texts.append(try textWithoutComma(value, named: name)) }
            pairs.append(Pair(name: name, value: texts.joined(separator: ",")))
        }
    }

    private func textWithoutComma(_ value: ParameterValue, named name: String) throws(RouteFault) -> String {
        switch value.kind {
        case .valueless, .list, .fields:
            throw RouteFault(
                .unsupportedShape, in: "parameter \(name)",
                "a comma-separated list may contain only texts, numbers, dates and flags; choose another ParameterStyle.Lists")
        default: break
        }
        let text = try style.scalar(of: value, named: name).text
        guard !text.utf8.contains(UInt8(ascii: ",")) else {
            throw RouteFault(
                .unsupportedShape, in: "parameter \(name)",
                "a value of a comma-separated list contains a comma; choose another ParameterStyle.Lists")
        }
        return text
    }
}
