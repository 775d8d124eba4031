internal import Foundation
import StoreCore
internal import StoreFiles
internal import StorePlatform

/// A small value in one or two files, each written whole, so that one damaged copy of two loses nothing.
struct KeptValue<Value: Codable & Sendable>: Sendable {
    /// The name of the files, without the number of the copy.
    let name: String
    let directory: Directory
    var copies = 2
    var options = FileWriteOptions()

    /// One file: the value, and a number that rises with each save.
    struct Copy: Codable, Sendable {
        var serial: UInt64
        var value: Value
        /// The position in a log that the value contains; `nil` without a log.
        var position: UInt64?
    }

    /// Returns the readable copies, the newest first, and the faults of the others.
    func load() -> (copies: [Copy], faults: [TextStoreError]) {
        var found: [Copy] = []
        var faults: [TextStoreError] = []
        for number in 0..<copies {
            do throws(TextStoreError) {
                if let copy = try read(number) { found.append(copy) }
            } catch {
                faults.append(error)
            }
        }
        return (found.sorted { $0.serial > $1.serial }, faults)
    }

    /// The status of each file; `nil` for a missing or unreadable file.
    var statuses: [FileStatus?] { (0..<copies).map { (try? directory.status(of: file($0))) ?? nil } }

    /// Saves a value, in the first copy first.
    ///
    /// - Returns: The faults of later copies; the value is saved nevertheless.
    /// - Throws: ``TextStoreError/Code/fileSystem`` if the first copy could not be written; ``TextStoreError/Code/damagedFile`` if a copy
    ///   is of another version. The saved value remains unchanged.
    func save(_ value: Value, serial: UInt64, position: UInt64? = nil) throws(TextStoreError) -> [TextStoreError] {
        let bytes: [UInt8]
        do { bytes = Array(try JSONEncoder().encode(Copy(serial: serial, value: value, position: position))) } catch {
            throw TextStoreError(
                .fileSystem, "cannot encode “\(name)” of the session: this is a defect of the framework; report it", underlyingError: error)
        }
        try directory.make(options)
        try checkVersions()
        var faults: [TextStoreError] = []
        for number in 0..<copies {
            do throws(TextStoreError) { try SealedFile.session.save(bytes, as: file(number), in: directory, options: options) } catch {
                if number == 0 { throw error }
                faults.append(error)
            }
        }
        return faults
    }

    func file(_ number: Int) -> String { "\(name).\(number)" }

    /// Checks that no copy is of another version: another version of the framework can read such a copy, so it is never overwritten.
    private func checkVersions() throws(TextStoreError) {
        do throws(StoreError) {
            guard let folder = try DirectoryHandle(opening: directory) else { return }
            for number in 0..<copies { try SealedFile.session.checkVersion(of: file(number), in: folder) }
        } catch {
            throw .saving(error)
        }
    }

    private func read(_ number: Int) throws(TextStoreError) -> Copy? {
        var reader = try SealedFile.reader(directory)
        guard let json = try reader.load(file(number), { Data($0) }) else { return nil }
        do { return try JSONDecoder().decode(Copy.self, from: json) } catch {
            let path = directory.path(of: file(number))
            throw TextStoreError(
                .damagedFile, "cannot read \(path): another version of the framework wrote it; use one version", underlyingError: error)
        }
    }
}
