import Foundation
import Testing

@testable import RemoteRouting

/// Files of certificates as editors and broken transfers leave them.
@Suite
struct PEMTextTests {
    /// A self-signed certificate.
    private static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBVTCCAQegAwIBAgIUN9gNVD7uB9Sl8z38JQBBmetG3PUwBQYDK2VwMBQxEjAQ
        BgNVBAMMCWxvY2FsaG9zdDAgFw0yNjExMjMwMTA2NTVaGA8yMTI2MTAzMDAxMDY1
        NVowFDESMBAGA1UEAwwJbG9jYWxob3N0MCowBQYDK2VwAyEAd/xuTnKK1GHDfbzL
        PzeGt1OLq/H/gYvnna/06+1IXmyjaTBnMB0GA1UdDgQWBBQ+ef2F3K6+gDEK2Njz
        EZyWdSmdqDAfBgNVHSMEGDAWgBQ+ef2F3K6+gDEK2NjzEZyWdSmdqDAPBgNVHRMB
        Af8EBTADAQH/MBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAFBgMrZXADQQASLbIWinh7
        b2f3lAD9HQOpC7akKzNEkYBE7fZVl/KZYjHYocF+ZnT19yKKTbKzyAKQgF9WxraV
        4lmNbt9qvFUB
        -----END CERTIFICATE-----
        """

    private static var two: String { certificate + "\n" + certificate }

    @Test(arguments: ["\u{FEFF}", "\r\n\r\n", "\0", "text\r", "\u{FEFF}# text\n"])
    func `W8: no certificate is lost behind what an editor puts first`(_ start: String) throws {
        for ending in ["\n", "\r\n", "\r"] {
            let text = (start == "\0" ? start + "\n" : start) + Self.two.replacingOccurrences(of: "\n", with: ending)
            #expect(try TLSOptions.Authorities(pem: Data(text.utf8)).certificates.count == 2, "\(start.debugDescription)")
        }
    }

    /// Where a file of two certificates may be cut behind the first one.
    private static let cuts = Array(certificate.utf8.count + 28..<two.utf8.count)

    @Test func `W8: a file that is cut in its second certificate is refused`() {
        for length in Self.cuts {
            #expect("\(length)") { try TLSOptions.Authorities(pem: Data(Self.two.utf8.prefix(length))) } throws: { error in
                (error as? RemoteError)?.code == .invalidTLSOptions
            }
        }
    }

    @Test func `W8: a certificate whose end is missing is refused, whatever follows`() {
        let cut = Self.certificate.split(separator: "\n").dropLast().joined(separator: "\n")
        for text in [
            cut + "\n" + Self.certificate, Self.certificate + "\n" + cut + "\n-----BEGIN X509 CRL-----\nxx\n-----END X509 CRL-----\n",
        ] {
            #expect { try TLSOptions.Authorities(pem: Data(text.utf8)) } throws: { error in
                (error as? RemoteError)?.code == .invalidTLSOptions
            }
        }
    }

    @Test(arguments: ["TRUSTED", "X509"])
    func `W8: no certificate is passed over because of an older label`(_ word: String) throws {
        let other = Self.certificate.replacingOccurrences(of: " CERTIFICATE", with: " \(word) CERTIFICATE")
        #expect(try TLSOptions.Authorities(pem: Data((Self.certificate + "\n" + other).utf8)).certificates.count == 2)
    }
}
