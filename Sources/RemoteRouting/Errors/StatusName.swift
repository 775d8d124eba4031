/// Names of statuses, and what to do about them (RFC 9110 §15 and the registry it founds).
enum StatusName {
    private static let names: [Int: String] = [
        300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 305: "Use Proxy",
        307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required",
        403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required",
        408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Content Too Large",
        414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed",
        421: "Misdirected Request", 422: "Unprocessable Content", 423: "Locked", 424: "Failed Dependency", 425: "Too Early",
        426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
        451: "Unavailable For Legal Reasons", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
        503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported", 507: "Insufficient Storage",
        508: "Loop Detected", 511: "Network Authentication Required",
    ]

    /// The name; `nil` for a status that nobody registered.
    static func of(_ status: Int) -> String? { names[status] }

    /// What to do about it.
    static func advice(for status: Int) -> String {
        switch status {
        case 401: "sign in, or check the credentials"
        case 403: "these credentials may not do that"
        case 404, 410: "check the path; there is nothing here"
        case 408, 425, 429, 502, 503, 504: "try again later"
        case 400..<500: "check what was sent; the body of the answer may say more"
        case 500..<600: "the fault is the server's; the body of the answer may say more"
        default: "this is no success"
        }
    }
}
