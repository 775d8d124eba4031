import StoreCore
internal import StoreFiles
internal import StorePlatform

extension SealedFile {
    /// Writes a file of a session in one step. If that fails, the old file remains.
    func save(_ content: [UInt8], as name: String, in directory: Directory, options: FileWriteOptions) throws(TextStoreError) {
        do throws(StoreError) { try write(content, as: name, in: directory, options: options) } catch { throw .saving(error) }
    }

    static func reader(_ directory: Directory) throws(TextStoreError) -> Reader {
        do throws(StoreError) { return Reader(.session, in: try DirectoryHandle(opening: directory)) } catch { throw .reading(error) }
    }
}

extension SealedFile.Reader {
    /// Reads a file of a session; `nil` if it does not exist.
    mutating func load<Value>(_ name: String, _ body: (UnsafeRawBufferPointer) -> Value) throws(TextStoreError) -> Value? {
        do throws(StoreError) { return try read(name, body) } catch { throw .reading(error) }
    }
}

extension Directory {
    /// Makes the directory of a session, unless it exists.
    func make(_ options: FileWriteOptions) throws(TextStoreError) {
        do throws(StoreError) { try create(durability: options.durability) } catch { throw .disk("create the session's directory", error) }
    }
}

extension TextStoreError {
    /// Makes the error of an operation that failed on the disk.
    static func disk(_ operation: String, _ error: StoreError) -> TextStoreError {
        TextStoreError(.fileSystem, "cannot \(operation): \(error.message)", underlyingError: error)
    }

    static func saving(_ error: StoreError) -> TextStoreError {
        TextStoreError(
            error.isOfOtherVersion ? .damagedFile : .fileSystem, "cannot save a file of the session: \(error.message)",
            underlyingError: error)
    }

    /// Whether the file of the error is intact, and another version of the framework has written it.
    var isOfOtherVersion: Bool { (underlyingError as? StoreError)?.isOfOtherVersion == true }

    static func reading(_ error: StoreError) -> TextStoreError {
        guard error.code == .unreadableRecord || error.isOfSocket else { return disk("read a file of the session", error) }
        return TextStoreError(
            .damagedFile, "cannot use a file of the session: \(error.message); the file is ignored", underlyingError: error)
    }
}

extension ByteWriter {
    /// Encodes pairs of a name and a value, for ``ByteReader/table(_:)``.
    mutating func put<Value>(table: some Collection<(key: String, value: Value)>, _ body: (inout ByteWriter, Value) -> Void) {
        put(all: table) { writer, entry in
            writer.put(entry.key)
            body(&writer, entry.value)
        }
    }

    mutating func put(texts: some Collection<String>) { put(all: texts) { $0.put($1) } }

    mutating func put(_ version: SemanticVersion?) { put(version) { $0.put($1.description) } }
}

extension ByteReader {
    mutating func texts() throws(Foreign) -> [String] {
        var texts: [String] = []
        try all { reader throws(Foreign) in texts.append(try reader.text()) }
        return texts
    }

    mutating func version() throws(Foreign) -> SemanticVersion? {
        guard try flag() else { return nil }
        // Lenient parsing accepts every version that was valid when it was saved.
        guard let version = SemanticVersion(try text(), mode: .lenient) else { throw Foreign() }
        return version
    }
}
