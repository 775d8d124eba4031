import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore
import Testing
import Trials

/// Certificates for servers on loopback and for their clients, made once for each process by OpenSSL's command line.
///
/// They have what Apple's systems demand of a server: the usage `serverAuth`, the subject's alternative names, and at most 825 days.
struct TestCertificates: Sendable {
    /// The certificates; those of servers are for localhost and 127.0.0.1.
    enum Name: String, CaseIterable, Sendable {
        /// Signed by the authority.
        case good
        /// The same with another key.
        case rotated
        /// Signed by the other authority.
        case foreign
        case expired, selfSigned
        /// For other.example.
        case misnamed
        /// With localhost as common name, and without alternative names.
        case nameless
        /// Signed by an intermediate of the authority, which the file holds too, or which is missing.
        case chained, chainless
        /// Signed by a key that is not the authority's, in the authority's name.
        case forged
        /// Signed by an authority that has the name of a public one.
        case impostor
        /// Those of clients.
        case client, foreignClient, expiredClient
    }

    static let made = Result { try TestCertificates() }

    static let problem: String? = {
        do {
            _ = try made.get()
            return nil
        } catch {
            return "\(error)"
        }
    }()

    private static let directory = temporaryURL()

    private var directory: URL { TestCertificates.directory }

    func certificate(_ name: Name) -> URL { directory.appending(path: "\(name.rawValue).pem") }

    func key(_ name: Name) -> URL { directory.appending(path: "\(name.rawValue).key") }

    /// The authority that signed most of them.
    var authority: URL { directory.appending(path: "a.pem") }

    var otherAuthority: URL { directory.appending(path: "b.pem") }

    /// The key of ``Name/client``, encrypted with the password "geheim".
    var encryptedKey: URL { directory.appending(path: "client.enc.key") }

    /// The pin of a certificate, as OpenSSL computes it.
    func pin(_ name: Name) throws -> TLSOptions.Pin {
        let text = try String(contentsOf: directory.appending(path: "\(name.rawValue).pin"), encoding: .utf8)
        return try TLSOptions.Pin("sha256/" + text.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    private struct Missing: Error, CustomStringConvertible { var description: String }

    private init() throws {
        #if os(Linux)
        guard TLSFront.isAvailable else { throw Missing(description: "libssl is missing") }
        #endif
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let process = try ChildProcess("/bin/sh", ["-c", TestCertificates.script, "sh", directory.path])
        guard process.wait() else { throw Missing(description: "openssl is missing, or cannot make certificates") }
    }

    private static let script = """
        set -e
        exec >/dev/null 2>&1
        cd "$1"
        key() { openssl ecparam -name ${2:-prime256v1} -genkey -noout -out "$1.key"; }
        authority() {
            key $1 $3
            openssl req -x509 -new -key $1.key -subj "$2" -days 30 -out $1.pem \\
                -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
        }
        # Name, authority, names of the subject, arguments of the signing.
        leaf() {
            name=$1 signer=$2
            printf "subjectAltName=$3\\nbasicConstraints=CA:FALSE\\nextendedKeyUsage=$usage\\n" > $name.ext
            # Only OpenSSL 3 adds the identifiers by itself.
            case "$(openssl version)" in
                OpenSSL*) printf "subjectKeyIdentifier=none\\nauthorityKeyIdentifier=none\\n" >> $name.ext ;;
            esac
            shift 3
            [ -e $name.key ] || key $name
            openssl req -new -key $name.key -subj "/CN=$name" -out $name.csr
            openssl x509 -req -in $name.csr -CA $signer.pem -CAkey $signer.key -CAcreateserial -extfile $name.ext "$@" -out $name.pem
        }
        pin() {
            openssl x509 -in $1.pem -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary \\
                | openssl base64 > $1.pin
        }
        loopback=DNS:localhost,IP:127.0.0.1
        usage=serverAuth
        authority a "/CN=Authority A"
        authority b "/CN=Authority B"
        authority c "/C=US/O=Internet Security Research Group/CN=ISRG Root X2" secp384r1
        authority d "/CN=Authority A"
        leaf good a $loopback -days 30
        leaf rotated a $loopback -days 30
        leaf foreign b $loopback -days 30
        leaf impostor c $loopback -days 30
        leaf forged d $loopback -days 30
        # The form of newer versions, and that of older ones.
        leaf expired a $loopback -not_before 20200101000000Z -not_after 20200201000000Z || leaf expired a $loopback -days -1
        leaf misnamed a DNS:other.example -days 30
        usage=clientAuth
        leaf client a DNS:client -days 30
        leaf foreignClient b DNS:client -days 30
        leaf expiredClient a DNS:client -not_before 20200101000000Z -not_after 20200201000000Z || leaf expiredClient a DNS:client -days -1
        key nameless
        openssl req -new -key nameless.key -subj /CN=localhost -out nameless.csr
        printf "basicConstraints=CA:FALSE\\n" > nameless.ext
        openssl x509 -req -in nameless.csr -CA a.pem -CAkey a.key -CAcreateserial -extfile nameless.ext -days 30 -out nameless.pem
        usage=serverAuth
        key selfSigned
        openssl req -x509 -new -key selfSigned.key -subj /CN=localhost -days 30 -addext subjectAltName=$loopback \\
            -addext extendedKeyUsage=$usage -out selfSigned.pem
        key middle
        printf "basicConstraints=critical,CA:TRUE\\n" > middle.ext
        openssl req -new -key middle.key -subj "/CN=Middle" -out middle.csr
        openssl x509 -req -in middle.csr -CA a.pem -CAkey a.key -CAcreateserial -extfile middle.ext -days 30 -out middle.pem
        leaf chainless middle $loopback -days 30
        cp chainless.key chained.key
        cat chainless.pem middle.pem > chained.pem
        openssl ec -in client.key -aes128 -passout pass:geheim -out client.enc.key
        for name in good rotated foreign selfSigned; do pin $name; done
        """
}

#if os(Linux)
final class TrustBench: Sendable {
    static var problem: String? { RealTransport.curlProblem ?? TestCertificates.problem }

    let certificates: TestCertificates
    let origin: LoopbackOrigin
    let front: TLSFront

    init(
        _ name: TestCertificates.Name = .good, to origin: LoopbackOrigin? = nil, _ change: (inout TLSFront.Settings) -> Void = { _ in }
    ) throws {
        certificates = try TestCertificates.made.get()
        self.origin = try origin ?? LoopbackOrigin { .text("\($0.method.rawValue) \($0.path) \($0.body.count)") }
        var settings = TLSFront.Settings(certificate: certificates.certificate(name), key: certificates.key(name))
        change(&settings)
        front = try TLSFront(of: self.origin.port, settings)
    }

    /// The options of a host that trusts the authority of ``TestCertificates/authority``.
    func options(_ change: (inout TLSOptions) throws -> Void = { _ in }) throws -> TLSOptions {
        var tls = TLSOptions()
        tls.authorities = try TLSOptions.Authorities(contentsOf: certificates.authority)
        try change(&tls)
        return tls
    }

    static func demanding(_ version: TLSFront.Settings.Version, to origin: LoopbackOrigin? = nil) throws -> TrustBench {
        let certificates = try TestCertificates.made.get()
        return try TrustBench(to: origin) {
            $0.versions = version.rawValue...version.rawValue
            $0.clientAuthorities = certificates.authority
        }
    }

    func client(_ name: TestCertificates.Name = .client, key: URL? = nil, password: String? = nil) throws -> TLSOptions {
        try options {
            $0.clientCertificate = try TLSOptions.ClientCertificate(
                pem: Data(contentsOf: certificates.certificate(name)), key: Data(contentsOf: key ?? certificates.key(name)),
                password: password)
        }
    }

    /// A host at the server; without options one that trusts the authority.
    func host(_ tls: TLSOptions? = nil, named name: String = "127.0.0.1", over transport: (any Transport)? = nil) throws -> RemoteHost {
        let tls = try tls ?? options()
        let configuration = HostConfiguration(name, scheme: .https, port: Int(front.port))
        return RemoteHost(configuration, transport: try transport ?? RealTransport.curl.make()).with { host in
            host.tls = tls
            host.retry = .never
            host.timeouts = .untilHang
        }
    }
}
#endif
