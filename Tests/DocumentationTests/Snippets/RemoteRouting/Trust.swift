internal import Foundation
internal import RemoteRouting
internal import Testing

// The examples of the article on trust and of the doc comments beside it.

struct TrustSnippets {
    private static let authority = """
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

    @Test func `a host takes authorities, a version, pins and a client certificate`() throws {
        let certificate = Data(Self.authority.utf8)
        let key = Data("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----".utf8)
        let password: String? = nil
        let file = FileManager.default.temporaryDirectory.appending(path: "authority-\(UUID().uuidString).pem")
        try certificate.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        do {
            var tls = TLSOptions()
            tls.authorities = try TLSOptions.Authorities(contentsOf: file)  // instead of the system's
            tls.minimumVersion = .tls13
            let api = RemoteHost("intranet.example.com").with { $0.tls = tls }
            #expect(api.tls == tls)
        }
        var tls = TLSOptions()
        tls.pins = [
            try TLSOptions.Pin("sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
            try TLSOptions.Pin("sha256/GGRkXNmGMTKrTFpGGoNAMr6ZpTDgs5cjY4Zp5mXlbYs="),  // the next key, made in advance
        ]
        tls.clientCertificate = try TLSOptions.ClientCertificate(pem: certificate, key: key, password: password)
        #expect(tls.pins.count == 2)
        let authorities = try TLSOptions.Authorities(pem: certificate)
        let api = RemoteHost("intranet.example.com").with { $0.tls.authorities = authorities }
        #expect(api.tls.authorities == authorities)
    }
}
