internal import Foundation

#if os(Linux)
internal import CurlShim
#endif

/// The proxy of a host's connections: the system's, none, or a named one.
///
/// ```swift
/// let inside = api.with { $0.proxy = .http("proxy.example.com", port: 3128) }
/// let direct = api.with { $0.proxy = .none }
/// ```
///
/// A named proxy receives every request of the host, including requests to this machine. Its name and credentials are validated before a
/// request is sent: invalid options throw ``RemoteError/Code/invalidProxyOptions``. Descriptions, mirrors and errors never contain
/// credentials.
///
/// ``CurlTransport`` supports all options. A transport that does not, such as ``URLSessionTransport``, throws
/// ``RemoteError/Code/unsupported`` before anything is sent.
public struct ProxyOptions: Hashable, Sendable, CustomStringConvertible {
    /// The user name and password for a proxy.
    ///
    /// An HTTP proxy receives them unencrypted, with Basic authentication (RFC 7617).
    public struct Credentials: Hashable, Sendable {
        let user: String
        let password: String

        /// Creates credentials.
        ///
        /// - Parameters:
        ///   - user: The name, without a colon.
        ///   - password: The password.
        public init(user: String, password: String) {
            self.user = user
            self.password = password
        }
    }

    enum Scheme: String {
        case http
        // The `h` lets the proxy resolve host names.
        case socks5 = "socks5h"
    }

    struct Server: Hashable {
        let scheme: Scheme
        let host: String
        let port: Int
        let credentials: Credentials?
    }

    enum Choice: Hashable {
        case system, none
        case server(Server)
    }

    let choice: Choice

    /// The system's proxy, which is the default.
    ///
    /// On Linux, environment variables name the proxy: `http_proxy` in lower case for http, `https_proxy` or `HTTPS_PROXY` for https, and
    /// `all_proxy` or `ALL_PROXY` for both. `no_proxy` or `NO_PROXY` lists the hosts that bypass the proxy. Elsewhere, the system's
    /// settings apply.
    public static let system = ProxyOptions(choice: .system)

    /// No proxy, regardless of the system's settings.
    public static let none = ProxyOptions(choice: .none)

    /// An HTTP proxy, which forwards requests to http origins and tunnels requests to https origins (RFC 9110 §9.3.6).
    ///
    /// - Parameters:
    ///   - host: The proxy's name or address, without a port.
    ///   - port: The proxy's port, such as 3128.
    ///   - credentials: The credentials for the proxy; `nil` for none.
    public static func http(_ host: String, port: Int, credentials: Credentials? = nil) -> ProxyOptions {
        ProxyOptions(choice: .server(Server(scheme: .http, host: host, port: port, credentials: credentials)))
    }

    /// A SOCKS 5 proxy (RFC 1928) that also resolves host names.
    ///
    /// - Parameters:
    ///   - host: The proxy's name or address, without a port.
    ///   - port: The proxy's port, such as 1080.
    ///   - credentials: The credentials for the proxy (RFC 1929); `nil` for none.
    public static func socks5(_ host: String, port: Int, credentials: Credentials? = nil) -> ProxyOptions {
        ProxyOptions(choice: .server(Server(scheme: .socks5, host: host, port: port, credentials: credentials)))
    }

    /// The kind of the proxy and its address, without credentials.
    public var description: String {
        switch choice {
        case .system: "the system's proxy"
        case .none: "no proxy"
        case .server(let server): "\(server.scheme == .http ? "HTTP" : "SOCKS 5") proxy at port \(server.port) of \(server.name)"
        }
    }
}

extension ProxyOptions {
    func check() throws(TransportFailure) {
        if case .server(let server) = choice, let problem = server.problem { throw TransportFailure(.invalidProxyOptions, problem) }
    }

    /// Whether http requests to this machine, by its name or address, leave it, because a proxy on another machine forwards them.
    package func leadsAway(from host: String, variable: (String) -> String? = ProxyOptions.variable) -> Bool {
        switch choice {
        case .none: return false
        case .server(let server): return server.origin?.isLoopback != true
        case .system:
            #if os(Linux)
            guard let proxy = ProxyOptions.environmentProxy(for: host, variable) else { return false }
            let authority = URIReference(proxy.contains("://") ? proxy : "http://" + proxy).authority ?? ""
            let address = URL(string: "http://\(authority.split(separator: "@").last ?? "")/")
            return address.flatMap { WebOrigin(of: $0) }?.isLoopback != true
            #else
            // The system sends no request to this machine to a proxy.
            return false
            #endif
        }
    }

    /// Whether a proxy forwards http requests to a host, and may respond instead of it. The proxy of a tunnel does not.
    package func forwards(to host: String) -> Bool {
        switch choice {
        case .none: return false
        case .server(let server): return server.scheme == .http
        case .system:
            #if os(Linux)
            return ProxyOptions.environmentProxy(for: host, ProxyOptions.variable)?.hasPrefix("socks") == false
            #else
            // The system does not tell.
            return true
            #endif
        }
    }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    #if os(Linux)
    /// The proxy that the environment names for http requests to a host; `nil` without one.
    private static func environmentProxy(for host: String, _ variable: (String) -> String?) -> String? {
        func first(_ names: String...) -> String? { names.lazy.compactMap(variable).first { !$0.isEmpty } }
        guard let proxy = first("http_proxy", "all_proxy", "ALL_PROXY") else { return nil }
        return isExcepted(host, by: first("no_proxy", "NO_PROXY") ?? "") ? nil : proxy
    }

    /// Whether a list of exceptions contains a host, as libcurl reads the list.
    private static func isExcepted(_ host: String, by list: String) -> Bool {
        // Within a longer list, the asterisk has no meaning.
        if list == "*" { return true }
        let isIPv6 = host.hasPrefix("[")
        let bare = isIPv6 ? host.dropFirst().dropLast() : host[...]
        let isAddress = isIPv6 || number(ofIPv4: bare) != nil
        return list.lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }.contains { entry in
            if isAddress { return entry == bare || contains(range: entry, bare) }
            let name = entry.hasPrefix(".") ? entry.dropFirst() : entry
            return bare == name || bare.hasSuffix(".\(name)")
        }
    }

    /// Whether a range such as `10.0.0.0/8` contains an IPv4 address; false for other texts.
    private static func contains(range: Substring, _ address: Substring) -> Bool {
        let parts = range.split(separator: "/", omittingEmptySubsequences: false)
        guard knowsRanges, parts.count == 2, let bits = Int(parts[1]), (1...32).contains(bits), let start = number(ofIPv4: parts[0]),
            let found = number(ofIPv4: address)
        else { return false }
        return (start ^ found) >> UInt32(32 - bits) == 0
    }

    private static func number(ofIPv4 text: Substring) -> UInt32? {
        guard text.utf8.allSatisfy({ $0.isDigit || $0 == UInt8(ascii: ".") }) else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        guard parts.count == 4, !parts.contains(nil) else { return nil }
        return parts.reduce(0) { $0 << 8 | UInt32($1 ?? 0) }
    }

    /// Whether the process's libcurl knows ranges of addresses (since 7.86); an older one ignores them.
    static let knowsRanges: Bool = {
        let library = wire_library_default()
        return library >= 0 && wire_library_version(library) >= 0x075600
    }()
    #endif
}

extension ProxyOptions.Server {
    /// The host for descriptions; an invalid host is omitted, because it may contain a password.
    fileprivate var name: String { origin?.host ?? "an invalid host" }

    /// The host and port as an origin; `nil` if they are invalid, for the reason that `problem` states.
    fileprivate var origin: WebOrigin? { try? WebOrigin(scheme: .http, host: host, port: port) }

    /// The scheme, host and port, without credentials; `nil` if they are invalid.
    var url: String? { origin.map { "\(scheme.rawValue)://\($0.host):\(port)" } }

    /// The reason why the host or the credentials cannot be sent; `nil` if they can.
    fileprivate var problem: String? {
        if origin == nil {
            return "the proxy's host is not a plain name or address, or its port is invalid; pass the name, port and user separately"
        }
        let (user, password) = (credentials?.user ?? "", credentials?.password ?? "")
        if (user + password).utf8.contains(where: \.isControl) {
            return "the proxy's credentials contain a control character, which cannot be sent; remove it"
        }
        switch scheme {
        case .http:
            if user.utf8.contains(UInt8(ascii: ":")) {
                return "the proxy's user name contains a colon, which cannot be sent (RFC 7617 §2); use another user"
            }
        case .socks5:
            if user.utf8.count > 255 || password.utf8.count > 255 {
                return "the proxy's user name or password exceeds 255 bytes, the limit of SOCKS (RFC 1929); use a shorter one"
            }
        }
        return credentials != nil && user.isEmpty ? "the proxy's credentials have no user name; pass one, or nil" : nil
    }
}

extension ProxyOptions: CustomReflectable {
    /// A mirror without the host, which may contain credentials by mistake.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension ProxyOptions.Credentials: CustomReflectable {
    /// A mirror without the user and the password, so that neither a description nor `dump` contains a secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
