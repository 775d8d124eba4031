/// A certificate for tests that parse certificates and open no connection.
public enum SampleCertificate {
    /// A self-signed certificate for localhost with a key of Ed25519, in PEM.
    public static let pem = """
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
}
