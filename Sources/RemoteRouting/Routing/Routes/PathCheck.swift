internal import RemoteHTTP

/// Finds the parts that make a path dangerous (RFC 3986 §3.3, §5.2.4).
struct PathCheck {
    var emptyValues: [Int] = []

    /// The fault of a value before it is encoded; `nil` if it is valid.
    static func fault(ofValue value: some StringProtocol) -> RouteFault? {
        for scalar in value.unicodeScalars {
            if scalar.properties.generalCategory == .control { return forbidden("an interpolated value has a control character; omit it") }
            if scalar == "\\" { return forbidden("an interpolated value has a backslash, which some servers treat as a slash; replace it") }
        }
        return nil
    }

    func firstFault(in path: String) -> RouteFault? {
        if path.isEmpty, emptyValues.isEmpty { return nil }
        let bytes = Array(path.utf8)
        guard bytes.first == UInt8(ascii: "/") else {
            return RouteFault(.relativePath, in: "path", "it must begin with a slash; scheme, host and port belong to the host")
        }
        if let fault = faultOfBytes(bytes) { return fault }
        return faultOfSegments(bytes)
    }

    private func faultOfBytes(_ bytes: [UInt8]) -> RouteFault? {
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            guard byte == UInt8(ascii: "%") else {
                guard byte.isPathByte else { return PathCheck.fault(ofLiteral: byte) }
                index += 1
                continue
            }
            guard index + 2 < bytes.count, let high = bytes[index + 1].hexValue, let low = bytes[index + 2].hexValue else {
                return PathCheck.forbidden("a percent sign is not followed by two hexadecimal digits; write %25, or interpolate the text")
            }
            let escaped = high << 4 | low
            if escaped.isControl || escaped == UInt8(ascii: "\\") { return PathCheck.fault(ofLiteral: escaped) }
            index += 3
        }
        return nil
    }

    private func faultOfSegments(_ bytes: [UInt8]) -> RouteFault? {
        var start = 1
        while start <= bytes.count {
            let end = bytes[start...].firstIndex(of: UInt8(ascii: "/")) ?? bytes.count
            let segment = bytes[start..<end]
            if segment.isEmpty {
                let isLast = end == bytes.count
                guard isLast, !emptyValues.contains(start) else {
                    return RouteFault(.emptySegment, in: "path", "a segment is empty; look for an empty value or two consecutive slashes")
                }
            } else if PathCheck.standsForDots(segment) {
                return RouteFault(.dotSegment, in: "path", "a segment stands for . or .., and leads elsewhere; check the value")
            }
            start = end + 1
        }
        return nil
    }

    /// Whether a segment is `.` or `..` after any number of decodings.
    static func standsForDots(_ segment: ArraySlice<UInt8>) -> Bool {
        // Decodes from the end, so that a decoded byte can start the next escape at once: the cost is linear.
        var decoded: [UInt8] = []
        for byte in segment.reversed() {
            var byte = byte
            while byte == UInt8(ascii: "%"), decoded.count >= 2, let high = decoded[decoded.count - 1].hexValue,
                let low = decoded[decoded.count - 2].hexValue
            {
                decoded.removeLast(2)
                byte = high << 4 | low
            }
            decoded.append(byte)
        }
        return decoded.count <= 2 && !decoded.isEmpty && decoded.allSatisfy { $0 == UInt8(ascii: ".") }
    }

    private static func fault(ofLiteral byte: UInt8) -> RouteFault {
        switch byte {
        case UInt8(ascii: "?"): forbidden("a question mark begins the query; put it into the route's query")
        case UInt8(ascii: "#"): forbidden("a number sign begins a fragment, which is never sent; leave it out, or interpolate it")
        case UInt8(ascii: "\\"): forbidden("some servers treat a backslash as a slash; write a slash")
        case _ where byte.isControl: forbidden("a control character, escaped or not, cannot be sent; remove it")
        default: forbidden("a character of the literal must be percent-encoded; interpolate the text to encode it")
        }
    }

    private static func forbidden(_ message: String) -> RouteFault {
        RouteFault(.forbiddenCharacter, in: "path", message)
    }
}

extension UInt8 {
    /// Whether the byte may occur unescaped in a path: a `pchar` of RFC 3986 §3.3, or the slash.
    fileprivate var isPathByte: Bool { isASCIIAlphanumeric || "/-._~:@!$&'()*+,;=".utf8.contains(self) }
}
