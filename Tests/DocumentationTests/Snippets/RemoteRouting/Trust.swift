internal import Foundation
internal import LoopbackOrigin
internal import RemoteRouting
internal import Testing
internal import Trials

// The examples of the article on trust and of the doc comments beside it.

struct TrustSnippets {
    @Test func `a host takes authorities, a version, pins and a client certificate`() throws {
        let certificate = Data(SampleCertificate.pem.utf8)
        let key = Data("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----".utf8)
        let password: String? = nil
        let file = temporaryURL("pem")
        try certificate.write(to: file)
        do {
            var tls = TLSOptions()
            // Replaces the system's authorities.
            tls.authorities = try TLSOptions.Authorities(contentsOf: file)
            tls.minimumVersion = .tls13
            let api = RemoteHost("intranet.example.com").with { $0.tls = tls }
            #expect(api.tls == tls)
        }
        var tls = TLSOptions()
        tls.pins = [
            try TLSOptions.Pin("sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
            // The next key, made in advance.
            try TLSOptions.Pin("sha256/GGRkXNmGMTKrTFpGGoNAMr6ZpTDgs5cjY4Zp5mXlbYs="),
        ]
        tls.clientCertificate = try TLSOptions.ClientCertificate(
            pem: certificate, key: key, password: password)
        #expect(tls.pins.count == 2)
        let authorities = try TLSOptions.Authorities(pem: certificate)
        let api = RemoteHost("intranet.example.com").with {
            $0.tls.authorities = authorities
        }
        #expect(api.tls.authorities == authorities)
    }
}
