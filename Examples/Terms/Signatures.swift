import Foundation
import StoreCore
import TextStore

/// Fetches the texts of a publisher. With a key, it also fetches the signature of the manifest, which is a file beside it.
struct TermsFetcher: RevalidatingFetcher {
    /// The manifest that is signed; `nil` for none.
    var signed: URL?
    var isOffline = false
    private let http = HTTPTextFetcher()

    init(signed: URL? = nil, isOffline: Bool = false) { (self.signed, self.isOffline) = (signed, isOffline) }

    func fetch(param file: RemoteFile, revalidating validator: Validator?) async throws -> FetchResult<RemoteText> {
        guard !isOffline else { throw TextStoreError(.unreachable, "cannot get \(file.url.absoluteString): --offline was passed") }
        let result = try await http.fetch(param: file, revalidating: validator)
        guard file.url == signed, case .modified(var text, let freshness, let known) = result, text.headers["x-signature"] == nil,
            let place = URL(string: file.url.absoluteString + ".sig")
        else { return result }
        var signature = file
        signature.url = place
        do {
            if case .modified(let found, _, _) = try await http.fetch(param: signature, revalidating: nil) {
                // Saved with the manifest, so that a start without a network can verify it too.
                text.headers["x-signature"] = String(decoding: found.bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
            }
        } catch let error as TextStoreError where error.status == 404 {
            // Without the file, the verifier reports that the manifest is not signed.
        }
        return .modified(text, freshness, known)
    }
}

/// Signatures by the command line of OpenSSL, which macOS and Linux have. An app checks them with CryptoKit or swift-crypto.
enum Signature {
    /// Makes the verifier of an app that knows the publisher's public key.
    static func verifier(_ key: URL) -> TextVerifier {
        TextVerifier { verification in
            // The digests of a signed manifest cover the texts that it lists.
            if verification.isListed { return }
            guard verification.identifier == nil else {
                throw Mistake("a saved text was fetched without a key, so no signed manifest covers it")
            }
            try check(Data(verification.bytes), verification.headers["x-signature"], key)
        }
    }

    /// Checks the signature of a manifest.
    ///
    /// - Parameter signature: The signature in Base64.
    static func check(_ bytes: Data, _ signature: String?, _ key: URL) throws {
        guard let signature, let raw = Data(base64Encoded: signature) else {
            throw Mistake("the manifest has no signature in Base64; publish it with --key, and upload the file .sig beside it")
        }
        try inFolder { folder in
            let (file, mark) = (folder.appending(path: "manifest"), folder.appending(path: "sig"))
            try bytes.write(to: file)
            try raw.write(to: mark)
            do { try openssl("dgst", "-sha256", "-verify", path(key), "-signature", path(mark), path(file)) } catch {
                throw Mistake("the signature of the manifest does not fit the key; fetch both again, or ask the publisher")
            }
        }
    }

    /// Checks that a file is a public key.
    static func checkPublicKey(_ key: URL) throws {
        do { try openssl("pkey", "-pubin", "-in", path(key), "-noout") } catch {
            throw Mistake("\(error); the gate needs the public key: openssl pkey -in key.pem -pubout -out public.pem")
        }
    }

    /// Returns the signature of bytes in Base64, which fits the public half of the key.
    static func sign(_ bytes: Data, _ key: URL) throws -> String {
        try inFolder { folder in
            let (file, mark) = (folder.appending(path: "manifest"), folder.appending(path: "sig"))
            let open = folder.appending(path: "public.pem")
            try bytes.write(to: file)
            do {
                try openssl("pkey", "-in", path(key), "-pubout", "-out", path(open))
                try openssl("dgst", "-sha256", "-sign", path(key), "-out", path(mark), path(file))
            } catch {
                throw Mistake("\(error); check the key, which is a private key in PEM")
            }
            let encoded = try Data(contentsOf: mark).base64EncodedString()
            try check(bytes, encoded, open)
            return encoded
        }
    }

    private static func path(_ url: URL) -> String { url.path(percentEncoded: false) }

    private static func inFolder<Result>(_ body: (URL) throws -> Result) throws -> Result {
        let folder = FileManager.default.temporaryDirectory.appending(path: "terms-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        return try body(folder)
    }

    private static func openssl(_ arguments: String...) throws {
        let process = Process(), output = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments
        // The answers of the user are not for OpenSSL.
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            let reason = said.split(separator: "\n").first.map(String.init) ?? "it is not installed"
            throw Mistake("openssl \(arguments[0]) failed: \(reason)")
        }
    }
}
