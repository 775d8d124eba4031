internal import Foundation
internal import RemoteHTTP
internal import StoreCore

extension MultipartForm {
    /// Encodes the form: in memory if all parts are, otherwise as a stream. The boundary is random by default.
    func encoded(style: ParameterStyle, boundary: String? = nil) throws(RouteFault) -> EncodedBody {
        let boundary = boundary ?? freeBoundary()
        var pieces: [Piece] = []
        for part in parts { try append(part, style, boundary, to: &pieces) }
        pieces.append(.data(Data("--\(boundary)--\r\n".utf8)))
        return EncodedBody(body: try Piece.body(of: pieces), type: .multipartFormData.with("boundary", boundary))
    }

    /// Draws a boundary of 190 random bits, which no other text contains by chance; parts of `Data` are searched for it.
    private func freeBoundary() -> String {
        let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
        while true {
            let letters = (0..<32).map { _ in alphabet[Int.random(in: 0..<alphabet.count)] }
            let boundary = String(decoding: letters, as: UTF8.self)
            let isTaken = parts.contains { part in
                if case .data(let data) = part.content { return data.range(of: Data(boundary.utf8)) != nil }
                return false
            }
            if !isTaken { return boundary }
        }
    }

    private func append(
        _ part: Part, _ style: ParameterStyle, _ boundary: String, to pieces: inout [Piece]
    ) throws(RouteFault) {
        switch part.content {
        case .value(let value):
            let pairs = try PairEncoder(style: style).pairs(of: Parameters([.init(name: part.name, value: value)]))
            for pair in pairs {
                let head = try head(name: pair.name, fileName: nil, type: part.type, boundary)
                pieces.append(.data(head + Data((pair.value ?? "").utf8) + Data("\r\n".utf8)))
            }
        case .data(let data):
            let head = try head(name: part.name, fileName: part.fileName, type: part.type, boundary)
            pieces.append(.data(head + data + Data("\r\n".utf8)))
        case .file(let url):
            pieces.append(.data(try head(name: part.name, fileName: part.fileName, type: part.type, boundary)))
            pieces.append(.file(try FileSource(of: url)))
            pieces.append(.data(Data("\r\n".utf8)))
        }
    }

    private func head(name: String, fileName: String?, type: MimeType?, _ boundary: String) throws(RouteFault) -> Data {
        var text = "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(try MultipartForm.escape(name))\""
        if let fileName { text += "; filename=\"\(try MultipartForm.escape(fileName))\"" }
        text += "\r\n"
        if let type { text += "Content-Type: \(type)\r\n" }
        return Data((text + "\r\n").utf8)
    }

    /// A name as the HTML standard escapes it in a part's header.
    private static func escape(_ name: String) throws(RouteFault) -> String {
        var output: [UInt8] = []
        for byte in name.utf8 {
            switch byte {
            case UInt8(ascii: "\""): output.append(contentsOf: "%22".utf8)
            case 0x0D: output.append(contentsOf: "%0D".utf8)
            case 0x0A: output.append(contentsOf: "%0A".utf8)
            case _ where byte.isControl:
                throw RouteFault(.forbiddenCharacter, in: "multipart form", "the name of a part or file has a control character; remove it")
            default: output.append(byte)
            }
        }
        return String(decoding: output, as: UTF8.self)
    }
}

enum Piece: Sendable {
    case data(Data)
    case file(FileSource)

    var length: Int64 {
        switch self {
        case .data(let data): Int64(data.count)
        case .file(let file): file.length
        }
    }

    static func body(of pieces: [Piece]) throws(RouteFault) -> HTTPBody {
        var joined = Data()
        for piece in pieces {
            guard case .data(let data) = piece else {
                var length: Int64 = 0
                for piece in pieces {
                    // The size of a file may be mostly holes.
                    let (sum, isTooLarge) = length.addingReportingOverflow(piece.length)
                    guard !isTooLarge else {
                        throw RouteFault(.notEncodable, in: "multipart form", "its files exceed 8 EiB together; send fewer files")
                    }
                    length = sum
                }
                return .stream(
                    HTTPBodyStream(length: length, isReplayable: true) {
                        let reader = try PieceReader(pieces)
                        return { upTo in try reader.read(upTo: upTo) }
                    })
            }
            joined.append(data)
        }
        return .data(joined)
    }
}

private final class PieceReader: Sendable {
    private struct Place: Sendable {
        var rest: ArraySlice<Piece>
        /// The file at the beginning of the rest, if it is open.
        var file: FileReader?
    }

    private let place: Lock<Place>

    /// Throws ``RouteFault/Code/changedFile`` if a file changed since the request was built. A file that grows later is sent up
    /// to its announced length.
    init(_ pieces: [Piece]) throws(RouteFault) {
        place = Lock(Place(rest: pieces[...]))
        for case .file(let file) in pieces { _ = try file.open() }
    }

    func read(upTo count: Int) throws -> Data? {
        try place.withLock { place throws in
            while let piece = place.rest.first {
                switch piece {
                case .data(let data) where !data.isEmpty:
                    place.rest[place.rest.startIndex] = .data(data.dropFirst(count))
                    return Data(data.prefix(count))
                case .file(let file):
                    let reader = try place.file ?? file.open(mayHaveGrown: true)
                    place.file = reader
                    if let data = try reader.read(upTo: count) { return data }
                    place.file = nil
                case .data: break
                }
                place.rest.removeFirst()
            }
            return nil
        }
    }
}
