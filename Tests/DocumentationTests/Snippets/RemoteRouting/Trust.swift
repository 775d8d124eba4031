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
            //: TrustingServers.md: var tls = TLSOptions
            #expect(api.tls == tls)
        }
        var tls = TLSOptions()
        //: TrustingServers.md: tls.pins = [
        //: TrustingServers.md: tls.clientCertificate
        #expect(tls.pins.count == 2)
        let authorities = try TLSOptions.Authorities(pem: certificate)
        //: RemoteHost.swift: let api = RemoteHost("intranet
        #expect(api.tls.authorities == authorities)
    }
}
