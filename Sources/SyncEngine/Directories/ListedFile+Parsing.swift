// Decoding with `JSONDecoder` takes most of the time of a pass over unchanged files. Lists of files are plain objects, so this parser reads
// them, and leaves everything unusual to the decoder, which also explains errors.

extension ListedFile {
    /// Parses an array of files in the plain form that lists have; `nil` if an item is invalid, or has an escape but that of a slash, an
    /// unknown or repeated key, or a value of another form.
    static func parse(_ text: [UInt8]) -> [ListedFile]? {
        text.withUnsafeBufferPointer { text in
            var parser = Parser(text: text)
            return parser.files()
        }
    }

    private struct Parser {
        let text: UnsafeBufferPointer<UInt8>
        var index = 0
        /// Whether the last string has escaped slashes, which many encoders write by default.
        var hasEscapes = false

        mutating func files() -> [ListedFile]? {
            guard take("[") else { return nil }
            var files: [ListedFile] = []
            repeat {
                guard let file = file() else { return nil }
                files.append(file)
            } while take(",")
            guard take("]") else { return nil }
            skipBlanks()
            return index == text.count ? files : nil
        }

        private mutating func file() -> ListedFile? {
            guard take("{") else { return nil }
            func fill<Value>(_ place: inout Value?, _ value: Value?) -> Bool {
                place = value
                return value != nil
            }
            var path: String?
            var (digest, version, url): (Slice<UnsafeBufferPointer<UInt8>>?, String?, String?)
            var (size, byteCount, time): (Int64?, Int64?, Int64?)
            var mode: UInt16?
            repeat {
                guard let key = string(), take(":") else { return nil }
                let isKnown =
                    switch key.count {
                    case 4 where path == nil && key.elementsEqual("path".utf8): fill(&path, decodedString())
                    case 6 where digest == nil && key.elementsEqual("sha256".utf8): fill(&digest, string())
                    case 7 where version == nil && key.elementsEqual("version".utf8): fill(&version, decodedString())
                    case 3 where url == nil && key.elementsEqual("url".utf8): fill(&url, decodedString())
                    case 4 where size == nil && key.elementsEqual("size".utf8): fill(&size, number())
                    case 9 where byteCount == nil && key.elementsEqual("byteCount".utf8): fill(&byteCount, number())
                    case 4 where mode == nil && key.elementsEqual("mode".utf8):
                        fill(&mode, decodedString().flatMap { UInt16($0, radix: 8) })
                    // A decoder reads a larger number with a rounding error.
                    case 5 where time == nil && key.elementsEqual("mtime".utf8): fill(&time, number().flatMap { $0 < 1 << 53 ? $0 : nil })
                    default: false
                    }
                guard isKnown else { return nil }
            } while take(",")
            guard take("}"), let path, size == nil || byteCount == nil || size == byteCount, version?.isEmpty != true else { return nil }
            var file = ListedFile(path: path, version: version, byteCount: size ?? byteCount, digest: digest, url: url)
            if mode != nil || time != nil { file?.metadata = FileMetadata(mode: mode, modified: time) }
            return file
        }

        private mutating func skipBlanks() {
            while index < text.count, ListScanner.isBlank(text[index]) { index += 1 }
        }

        private mutating func take(_ sign: Unicode.Scalar) -> Bool {
            skipBlanks()
            guard index < text.count, text[index] == UInt8(ascii: sign) else { return false }
            index += 1
            return true
        }

        private mutating func decodedString() -> String? {
            guard let bytes = string() else { return nil }
            return hasEscapes
                ? String(validating: bytes.filter { $0 != UInt8(ascii: "\\") }, as: UTF8.self) : String(validating: bytes, as: UTF8.self)
        }

        /// The bytes of a string as written, without escapes but those of slashes.
        private mutating func string() -> Slice<UnsafeBufferPointer<UInt8>>? {
            guard take("\"") else { return nil }
            let start = index
            hasEscapes = false
            while index < text.count {
                let byte = text[index]
                if byte == UInt8(ascii: "\"") {
                    defer { index += 1 }
                    return text[start..<index]
                }
                guard byte >= 0x20 else { return nil }
                if byte == UInt8(ascii: "\\") {
                    guard index + 1 < text.count, text[index + 1] == UInt8(ascii: "/") else { return nil }
                    hasEscapes = true
                    index += 1
                }
                index += 1
            }
            return nil
        }

        /// A number of at most 18 digits without sign, fraction and exponent.
        private mutating func number() -> Int64? {
            skipBlanks()
            let start = index
            var number: Int64 = 0
            while index < text.count, (0x30...0x39).contains(text[index]), index - start < 18 {
                number = number * 10 + Int64(text[index] - 0x30)
                index += 1
            }
            guard index > start, index - start == 1 || text[start] != 0x30 else { return nil }
            // Anything else than the end of the value is another form of a number.
            guard index < text.count else { return nil }
            return text[index] == UInt8(ascii: ",") || text[index] == UInt8(ascii: "}") || ListScanner.isBlank(text[index]) ? number : nil
        }
    }
}
