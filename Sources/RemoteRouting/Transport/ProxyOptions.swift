internal import Foundation
internal import Wire

/// The proxy that a host's connections go through: the system's, none, or one that the app names.
///
/// ```swift
/// let inside = api.with { $0.proxy = .http("proxy.example.com", port: 3128) }
/// let direct = api.with { $0.proxy = .none }
/// ```
///
/// A named proxy gets every request of the host, also those to this machine. Its name and credentials are checked before a request is sent:
/// options that cannot be used throw ``RemoteError/Code/invalidProxyOptions``. Descriptions, mirrors and errors never hold credentials.
///
/// ``CurlTransport`` does all of it. A transport that cannot, as ``URLSessionTransport``, throws ``RemoteError/Code/unsupported`` before
/// anything is sent.
public struct ProxyOptions: Hashable, Sendable, CustomStringConvertible {
    /// A name and a password for a proxy.
    ///
    /// An HTTP proxy gets them by basic authentication (RFC 7617), unencrypted.
    public struct Credentials: Hashable, Sendable {
        let user: String
        let password: String

        /// Makes credentials.
        ///
        /// - Parameters:
        ///   - user: The name, without a colon.
        ///   - password: The password.
        public init(user: String, password: String) {
            self.user = user
            self.password = password
        }
    }

    fileprivate enum Scheme: String {
        case http
        // The proxy looks names up, so that they need not be known here.
        case socks5 = "socks5h"
    }

    fileprivate struct Server: Hashable {
        let scheme: Scheme
        let host: String
        let port: Int
        let credentials: Credentials?
    }

    fileprivate enum Choice: Hashable {
        case system, none
        case server(Server)
    }

    fileprivate let choice: Choice

    /// The system's proxy, which is the default.
    ///
    /// On Linux that is what the environment names: `http_proxy` in lower case for http, `https_proxy` or `HTTPS_PROXY` for https,
    /// `all_proxy` or `ALL_PROXY` for both, and `no_proxy` or `NO_PROXY` for the hosts that are reached without. Elsewhere it is what the
    /// system's settings say.
    public static let system = ProxyOptions(choice: .system)

    /// No proxy, whatever the system says.
    public static let none = ProxyOptions(choice: .none)

    /// A proxy that speaks HTTP: requests to http origins go to it, and for https origins it is asked for a tunnel (RFC 9110 §9.3.6).
    ///
    /// - Parameters:
    ///   - host: The proxy's name or address, and nothing else.
    ///   - port: The proxy's port, such as 3128.
    ///   - credentials: The credentials that the proxy wants.
    public static func http(_ host: String, port: Int, credentials: Credentials? = nil) -> ProxyOptions {
        ProxyOptions(choice: .server(Server(scheme: .http, host: host, port: port, credentials: credentials)))
    }

    /// A proxy that speaks SOCKS 5 (RFC 1928) and looks up the names of hosts.
    ///
    /// - Parameters:
    ///   - host: The proxy's name or address, and nothing else.
    ///   - port: The proxy's port, such as 1080.
    ///   - credentials: The credentials that the proxy wants (RFC 1929).
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

extension ProxyOptions.Server {
    /// The host as a description may name it: what is no host may hold a password.
    fileprivate var name: String { origin?.host ?? "what is no host" }

    fileprivate var origin: WebOrigin? {
        do throws(RouteFault) {
            return try WebOrigin(scheme: .http, host: host, port: port)
        } catch {
            return nil
        }
    }

    /// The proxy as libcurl takes it.
    fileprivate func wire() throws(TransportFailure) -> WireProxy.Server {
        func refuse(_ message: String) -> TransportFailure { TransportFailure(.invalidProxyOptions, message) }
        guard let origin else {
            throw refuse("the proxy's host is neither a name nor an address, or its port is none; write the scheme and a user elsewhere")
        }
        let (user, password) = (credentials?.user ?? "", credentials?.password ?? "")
        guard !(user + password).unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
            throw refuse("the proxy's credentials hold a control character, which cannot be sent")
        }
        switch scheme {
        case .http:
            guard !user.contains(":") else {
                throw refuse("the proxy's user has a colon in its name, which cannot be sent (RFC 7617 §2)")
            }
        case .socks5:
            guard user.utf8.count <= 255, password.utf8.count <= 255 else {
                throw refuse("the proxy's user or password has more than 255 bytes, which SOCKS cannot send (RFC 1929)")
            }
        }
        guard credentials == nil || !user.isEmpty else { throw refuse("the proxy's credentials have no user") }
        return WireProxy.Server(url: "\(scheme.rawValue)://\(origin.host):\(port)", user: user, password: password)
    }
}

extension ProxyOptions: CustomDebugStringConvertible, CustomReflectable {
    /// The same as the description.
    public var debugDescription: String { description }

    /// A mirror without the host, which may hold credentials by mistake.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension ProxyOptions.Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The name of the type; user and password are left out.
    public var description: String { "Credentials" }

    /// The same as the description.
    public var debugDescription: String { description }

    /// A mirror without user and password, so that `dump` writes no secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension WireProxy {
    /// Checks the options.
    ///
    /// - Throws: `TransportFailure` where a proxy is named that cannot be used.
    init(_ options: ProxyOptions) throws(TransportFailure) {
        switch options.choice {
        case .system: self = .system
        case .none: self = .none
        case .server(let server): self = .server(try server.wire())
        }
    }
}
