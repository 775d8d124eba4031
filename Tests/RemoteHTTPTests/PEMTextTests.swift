import Foundation
import LoopbackOrigin
import Testing

@testable import RemoteHTTP

/// Files of certificates as editors and broken transfers leave them.
@Suite
struct PEMTextTests {
    private static let certificate = SampleCertificate.pem

    private static var two: String { certificate + "\n" + certificate }

    @Test(arguments: ["\u{FEFF}", "\r\n\r\n", "\0", "text\r", "\u{FEFF}# text\n"])
    func `W8: certificates are found after a byte order mark, line endings or other text`(_ start: String) throws {
        for ending in ["\n", "\r\n", "\r"] {
            let text = (start == "\0" ? start + "\n" : start) + Self.two.replacingOccurrences(of: "\n", with: ending)
            #expect(try TLSOptions.Authorities(pem: Data(text.utf8)).certificates.count == 2, "\(start.debugDescription)")
        }
    }

    /// Where a file of two certificates may be cut behind the first one.
    private static let cuts = Array(certificate.utf8.count + 28..<two.utf8.count)

    @Test func `W8: a file with a truncated certificate is refused, before and after other text`() {
        let cut = Self.certificate.split(separator: "\n").dropLast().joined(separator: "\n")
        let crl = "-----BEGIN X509 CRL-----\nxx\n-----END X509 CRL-----\n"
        let texts = ["\(cut)\n\(Self.certificate)", "\(Self.certificate)\n\(cut)\n\(crl)"]
        for text in Self.cuts.map({ Data(Self.two.utf8.prefix($0)) }) + texts.map({ Data($0.utf8) }) {
            #expect("\(text.count)") { try TLSOptions.Authorities(pem: text) } throws: { ($0 as? RemoteError)?.code == .invalidTLSOptions }
        }
    }

    @Test(arguments: ["TRUSTED", "X509"])
    func `W8: a certificate with an older label is not skipped`(_ word: String) throws {
        let other = Self.certificate.replacingOccurrences(of: " CERTIFICATE", with: " \(word) CERTIFICATE")
        #expect(try TLSOptions.Authorities(pem: Data((Self.certificate + "\n" + other).utf8)).certificates.count == 2)
    }
}
