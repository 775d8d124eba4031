#if os(Linux)
import Foundation
import RemoteRouting
import StoreCore
import Testing
import Trials

extension Trait where Self == ConditionTrait {
    static var needsNginx: Self {
        .enabled(if: RealTransport.available.contains(.curl) && NginxServer.problem == nil, "libcurl, nginx or OpenSSL is missing")
    }

    static var needsFrames: Self {
        .enabled(if: RealTransport.available.contains(.curl) && FrameServer.problem == nil, "libcurl, python3 or OpenSSL is missing")
    }
}

/// A host at a port of this machine that trusts the authority of the tests.
func secureHost(_ port: Int, _ change: (inout RemoteHost) -> Void = { _ in }) throws -> RemoteHost {
    let authorities = try TLSOptions.Authorities(contentsOf: try TestCertificates.made.get().authority)
    return RemoteHost(
        HostConfiguration("127.0.0.1", port: port), transport: try RealTransport.curl.make(),
        limits: HostLimits(concurrentExchanges: 20_000)
    ).with {
        $0.tls.authorities = authorities
        $0.timeouts = .untilHang
        change(&$0)
    }
}

/// nginx, which serves HTTP/2 over TLS.
final class NginxServer {
    /// The port, which stays reserved until the server is released.
    private let reserved: ClosedPort
    private let process: ChildProcess
    private let folder: URL

    var port: Int { reserved.number }

    private static let path = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/bin/nginx"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    static let problem: String? =
        path == nil ? "nginx is not installed" : TestCertificates.problem

    /// - Parameter upstream: The port of a server for `/up`.
    init(http2: Bool = true, streams: Int = 256, upstream: UInt16 = 1) async throws {
        let certificates = try TestCertificates.made.get()
        reserved = try ClosedPort()
        let port = reserved.number
        folder = temporaryURL()
        try FileManager.default.createDirectory(at: folder.appending(path: "t"), withIntermediateDirectories: true)
        let place = folder.path(percentEncoded: false)
        let text = """
            daemon off; master_process off; pid \(place)/pid; error_log \(place)/errors;
            events { worker_connections 4096; }
            http {
                access_log \(place)/log;
                client_body_temp_path \(place)/t/1; proxy_temp_path \(place)/t/2; fastcgi_temp_path \(place)/t/3;
                uwsgi_temp_path \(place)/t/4; scgi_temp_path \(place)/t/5;
                http2_max_concurrent_streams \(streams); keepalive_requests 1000000; client_max_body_size 100m;
                keepalive_timeout 3600s; client_header_timeout 3600s; client_body_timeout 3600s; send_timeout 3600s;
                ssl_certificate \(certificates.certificate(.good).path()); ssl_certificate_key \(certificates.key(.good).path());
                server {
                    listen 127.0.0.1:\(port) ssl\(http2 ? " http2" : "") backlog=4096;
                    location / { return 200 "$connection"; }
                    location /up { proxy_pass http://127.0.0.1:\(upstream); proxy_read_timeout 3600s; proxy_send_timeout 3600s; }
                }
            }
            """
        let file = folder.appending(path: "nginx.conf")
        try Data(text.utf8).write(to: file)
        process = try ChildProcess(try #require(NginxServer.path), ["-c", file.path(), "-e", "\(place)/errors"])
        // It writes this file after it has begun to listen.
        try await until("nginx listens") { FileManager.default.fileExists(atPath: "\(place)/pid") }
    }

    deinit { process.kill() }

    /// Ends the server; its port stays reserved.
    func end() { process.kill() }
}

func isListening(_ port: Int) -> Bool {
    guard let connection = RawConnection(to: UInt16(port)) else { return false }
    close(connection.socket)
    return true
}

/// A server of HTTP/2 frames that aborts streams and connections, in Python's standard library.
///
/// It writes a line for each connection (`C`), each request (`R`, with the numbers of the connection and the stream), each stream that the
/// client resets (`X`), and each end of a connection (`E`).
final class FrameServer {
    let port: Int
    private let process: ChildProcess

    static let problem: String? =
        ChildProcess.pythons.isEmpty ? "python3 is not installed" : TestCertificates.problem

    /// - Parameter plan: What it does with the requests of a connection; see the script. With `+`, it offers HTTP/1.1 too; the responses of
    ///   this version are complete, and those to `/meet4` and `/meet16` begin as soon as there are as many requests. With `+-`, there is no
    ///   response of this version.
    init(_ plan: String) async throws {
        let certificates = try TestCertificates.made.get()
        let process = try ChildProcess(
            try #require(ChildProcess.pythons.first),
            ["-u", "-c", FrameServer.script, certificates.certificate(.good).path(), certificates.key(.good).path(), plan])
        let line = try await process.nextLine()
        port = try #require(line.flatMap { Int($0) })
        self.process = process
    }

    static func serving(_ plan: String) async throws -> (FrameServer, RemoteHost) {
        let server = try await FrameServer(plan)
        return (server, try secureHost(server.port) { $0.retry = .never })
    }

    func ending() -> (connections: Int, requests: Int) {
        process.kill()
        let lines = process.rest.split(separator: "\n")
        return (lines.count { $0.hasPrefix("C") }, lines.count { $0.hasPrefix("R") })
    }

    /// Waits until the server has written a number of lines of a kind, or one line of another kind.
    func wait(for count: Int, _ kind: String, or other: String? = nil) async throws {
        var seen = 0
        while seen < count, let line = try await process.nextLine() {
            if line.hasPrefix(kind) { seen += 1 }
            if let other, line.hasPrefix(other) { return }
        }
    }

    private static let script = #"""
        import os, socket, ssl, struct, sys, threading, time
        certificate, key, plan = sys.argv[1:4]

        # `print` may mix the lines of threads.
        def say(*words): os.write(1, (' '.join(map(str, words)) + '\n').encode())

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        is_silent = plan.endswith('-')
        context.set_alpn_protocols(['h2', 'http/1.1'] if plan.rstrip('-').endswith('+') else ['h2'])
        plan = plan.rstrip('+-')
        meetings = {b'/meet%d ' % count: threading.Barrier(count) for count in (4, 16)}
        server = socket.socket()
        server.bind(('127.0.0.1', 0))
        server.listen(500)
        say(server.getsockname()[1])
        PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
        total = 0

        def frame(kind, flags, stream, body=b''):
            return struct.pack('>I', len(body))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + body

        def serve(plain, number):
            global total
            try:
                wire = context.wrap_socket(plain, server_side=True)
            except Exception:
                return
            say('C', number)
            def read(count):
                data = b''
                while len(data) < count:
                    more = wire.recv(count - len(data))
                    if not more: raise EOFError
                    data += more
                return data
            if wire.selected_alpn_protocol() == 'http/1.1':
                data = b''
                while more := wire.recv(65536):
                    data += more
                    if not data.endswith(b'\r\n\r\n'): continue
                    say('P', number)
                    if not is_silent:
                        for path, meeting in meetings.items():
                            if path in data: meeting.wait()
                        wire.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole')
                    data = b''
                return
            count = 0
            def part(stream): wire.sendall(frame(1, 4, stream, b'\x88') + frame(0, 0, stream, b'part'))
            floods = {
                'empty data': lambda stream: frame(0, 0, stream), 'priority': lambda stream: frame(2, 0, 1001, b'\0\0\0\0\x10'),
                'pings': lambda stream: frame(6, 0, 0, b'12345678'), 'ping responses': lambda stream: frame(6, 1, 0, b'12345678'),
                'windows': lambda stream: frame(8, 0, 0, b'\0\0\0\1') + frame(8, 0, stream, b'\0\0\0\1'),
                'unknown types': lambda stream: frame(238, 0, 0), 'settings': lambda stream: frame(4, 0, 0)}
            def good(stream):
                # 0x88 is ":status: 200" of HPACK's static table.
                wire.sendall(frame(1, 4, stream, b'\x88') + frame(0, 1, stream, b'%d' % number))
            try:
                read(len(PREFACE))
                wire.sendall(frame(4, 0, 0))
                while True:
                    head = read(9)
                    length, kind, flags = int.from_bytes(head[:3], 'big'), head[3], head[4]
                    stream = int.from_bytes(head[5:9], 'big')
                    body = read(length)
                    if kind == 4 and not flags & 1: wire.sendall(frame(4, 1, 0))
                    if kind == 6 and not flags & 1: wire.sendall(frame(6, 1, 0, body))
                    if kind == 3: say('X', number, stream)
                    if kind != 1: continue
                    count += 1
                    total += 1
                    say('R', number, stream)
                    reset = lambda code: wire.sendall(frame(3, 0, stream, struct.pack('>I', code)))
                    if plan == 'good': good(stream)
                    elif plan == 'never': pass
                    elif plan == 'reset': reset(2)
                    elif plan == 'reset-in-body':
                        wire.sendall(frame(1, 4, stream, b'\x88') + frame(0, 0, stream, b'part'))
                        reset(8)
                    elif plan == 'refuse-all': reset(7)
                    elif plan == 'refuse-first': reset(7) if total == 1 else good(stream)
                    elif plan == 'goaway-unprocessed':
                        # The third request of the first connection and later ones are not processed.
                        if number == 1 and count == 3:
                            wire.sendall(frame(7, 0, 0, struct.pack('>II', stream - 2, 0)))
                        elif number > 1 or count < 3: good(stream)
                    elif plan == 'goaway-and-go':
                        good(stream)
                        if number == 1 and count == 1:
                            wire.sendall(frame(7, 0, 0, struct.pack('>II', stream, 0)))
                    elif plan == 'goaway-in-body':
                        wire.sendall(frame(1, 4, stream, b'\x88') + frame(0, 0, stream, b'part'))
                        wire.sendall(frame(7, 0, 0, struct.pack('>II', stream, 2)))
                        return wire.close()
                    elif plan in ('bomb', 'flood'):
                        # 0x90 is "accept-encoding: gzip, deflate", one byte for 30.
                        if total == 1: good(stream); continue
                        wire.sendall(frame(1, 0, stream, b'\x88'))
                        for _ in range(12): wire.sendall(frame(9, 0, stream, b'\x90' * 16000))
                        while plan == 'flood': wire.sendall(frame(9, 0, stream, b'\x90' * 16000))
                        wire.sendall(frame(9, 4, stream, b'\x90'))
                    elif plan in floods:
                        frames = floods[plan](stream) * 2000
                        wire.sendall(frame(1, 4, stream, b'\x88'))
                        while True: wire.sendall(frames)
                    elif plan == 'no-error':
                        part(stream)
                        reset(0)
                    elif plan == 'no-error-of-last':
                        # The last of ten requests; the others are complete, before and after it.
                        if count < 10: continue
                        for other in range(1, stream, 4): wire.sendall(frame(1, 4, other, b'\x88') + frame(0, 1, other, b'whole'))
                        part(stream)
                        wire.sendall(frame(3, 0, stream, b'\0\0\0\0') + b''.join(
                            frame(1, 4, other, b'\x88') + frame(0, 1, other, b'whole') for other in range(3, stream, 4)))
                    elif plan == 'no-error-after-end':
                        # The server does not want the rest of the request (RFC 9113 §8.1).
                        wire.sendall(frame(1, 4, stream, b'\x88') + frame(0, 1, stream, b'whole'))
                        reset(0)
                    elif plan == 'no-error-at-once':
                        wire.sendall(frame(1, 4, stream, b'\x88') + frame(0, 0, stream, b'part') + frame(3, 0, stream, b'\0\0\0\0'))
                    elif plan == 'too-long-frame':
                        part(stream)
                        wire.sendall(frame(0, 1, stream, b'x' * 20000))
                    elif plan == 'garbage-in-body':
                        part(stream)
                        wire.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello')
                    elif plan == 'wrong-padding':
                        part(stream)
                        wire.sendall(frame(0, 9, stream, b'\xff'))
                    elif plan == 'whole-and-goaway':
                        wire.sendall(frame(1, 4, stream, b'\x88') + frame(0, 1, stream, b'whole')
                            + frame(7, 0, 0, struct.pack('>II', stream, 0)))
                    elif plan == 'empty-last-frame':
                        wire.sendall(frame(1, 4, stream, b'\x88') + frame(0, 0, stream, b'whole'))
                        wire.sendall(frame(0, 1, stream))
                    elif plan == 'goaway-below':
                        wire.sendall(frame(7, 0, 0, struct.pack('>II', 0, 0)))
                    elif plan == 'close': return wire.close()
                    elif plan == 'garbage':
                        wire.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello')
                    elif plan == 'no-status':
                        wire.sendall(frame(1, 5, stream, b'\x84'))
                    elif plan == 'short':
                        # content-length: 9 (index 28), and 4 bytes.
                        wire.sendall(frame(1, 4, stream, b'\x88\x0f\x0d\x019') + frame(0, 1, stream, b'part'))
            except Exception:
                say('E', number)

        number = 0
        while True:
            plain, _ = server.accept()
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            number += 1
            threading.Thread(target=serve, args=(plain, number), daemon=True).start()
        """#
}
#endif
