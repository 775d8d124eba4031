extension LoopbackOrigin {
    /// A request method, such as `GET`; case-sensitive as in RFC 9110.
    public struct Method: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The method's name on the wire.
        public let rawValue: String

        /// Makes a method from its name; `nil` if the name is not a token (RFC 9110, section 5.6.2).
        public init?(rawValue: String) {
            guard Token.isValid(rawValue.utf8) else { return nil }
            self.rawValue = rawValue
        }

        private init(known: String) { rawValue = known }

        /// `GET`
        public static let get = Method(known: "GET")
        /// `HEAD`
        public static let head = Method(known: "HEAD")
        /// `POST`
        public static let post = Method(known: "POST")
        /// `PUT`
        public static let put = Method(known: "PUT")
        /// `PATCH`
        public static let patch = Method(known: "PATCH")
        /// `DELETE`
        public static let delete = Method(known: "DELETE")
        /// `OPTIONS`
        public static let options = Method(known: "OPTIONS")

        /// The method's name.
        public var description: String { rawValue }
    }
}

/// The `token` of RFC 9110, section 5.6.2: the grammar of methods and field names.
enum Token {
    static func isValid(_ bytes: some Collection<UInt8>) -> Bool { !bytes.isEmpty && bytes.allSatisfy(isTokenByte) }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
