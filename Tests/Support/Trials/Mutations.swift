/// Typical server responses, then truncated, changed, duplicated, or shuffled.
public enum Mutations {
    /// The original responses.
    public static let corpus: [String] = [
        "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sun, 22 Nov 2026 16:00:00 GMT\r\nContent-Type: text/html\r\nContent-Length: 5\r\n"
            + "Last-Modified: Sun, 22 Nov 2026 15:00:00 GMT\r\nConnection: keep-alive\r\nETag: \"67\"\r\nAccept-Ranges: bytes\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n5\r\nhello\r\n3;a=b\r\nabc\r\n0\r\nX: 1\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 301 Moved Permanently\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end",
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n0123456789012345678\n",
        "HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/\r\nSet-Cookie: c=d\r\n folded\r\nContent-Length: 9223372036854775807\r\n\r\nhello",
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/10\r\nContent-Length: 5\r\n\r\nhello",
    ]

    private static let splices: [[UInt8]] = [
        "\r\n", "\r\n\r\n", "\0", ": ", "HTTP/1.1 200 OK\r\n", "Content-Length: 18446744073709551616\r\n", "Transfer-Encoding: chunked\r\n",
        "Content-Length: 3\r\n", "0\r\n\r\n", "ffffffffffffffff\r\n", "\0X: y\r\n", " ", "\u{FF}", "Location: //\r\n", "HTTP/2 200\r\n",
        "Connection: close\r\n", "Content-Encoding: gzip\r\n", "Upgrade: h2c\r\n", "Transfer-Encoding: gzip, chunked\r\n",
        "HTTP/1.1 101 \r\n\r\n",
    ].map { Array($0.utf8) }

    /// Returns the response of a number: first every truncation of every response, then an endless sequence of mutations.
    public static func response(_ number: Int) -> [UInt8] { number < cuts.count ? cuts[number] : mutated(SplitMix(seed: number)) }

    /// Each response, truncated after each of its bytes.
    public static let cuts: [[UInt8]] = corpus.flatMap { text in (0...text.utf8.count).map { Array(Array(text.utf8)[..<$0]) } }

    /// Returns the numbers of a part of the truncations, of the whole responses, and of some mutations.
    public static func numbers(mutations: Int) -> [Int] {
        let wholes = corpus.indices.map { corpus[...$0].reduce(-1) { $0 + $1.utf8.count + 1 } }
        return positions(cuts.indices, every: 5, and: wholes) + (cuts.count..<cuts.count + mutations)
    }

    private static func mutated(_ seeded: SplitMix) -> [UInt8] {
        var chance = seeded
        var bytes = Array(corpus[chance.below(corpus.count)].utf8)
        for _ in 0...chance.below(4) {
            let place = chance.below(bytes.count + 1)
            switch chance.below(6) {
            case 0 where place < bytes.count: bytes[place] = UInt8(truncatingIfNeeded: chance.next())
            case 1 where place < bytes.count: bytes.remove(at: place)
            case 2: bytes.insert(contentsOf: splices[chance.below(splices.count)], at: place)
            case 3: bytes.removeSubrange(place...)
            case 4:
                let end = min(bytes.count, place + chance.below(40))
                bytes.insert(contentsOf: bytes[place..<end], at: place)
            default:
                let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
                var order = Array(lines.indices)
                order.swapAt(chance.below(order.count), chance.below(order.count))
                bytes = Array(order.map { Array(lines[$0]) }.joined(separator: [0x0A]))
            }
        }
        return bytes
    }
}
