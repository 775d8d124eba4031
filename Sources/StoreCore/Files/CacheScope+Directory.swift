#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import StoreCore
internal import StorePlatform

extension CacheScope {
    /// Creates an empty group of stores with files.
    ///
    /// - Parameter directory: The directory that contains the files of the group's cachers. It is created at the first save.
    public convenience init(directory: URL) {
        self.init(at: directory)
        _ = self.directory
    }

    /// The directory that contains the files of the group's cachers.
    public var directory: URL {
        // Every way to a file of the group leads through this property.
        setRemoval { [location] in
            try await Self.removeRecords(in: location)
        }
        return location
    }

    /// Returns the subdirectory for one kind of data.
    ///
    /// - Parameter name: The name of the kind. Any text is one path component: characters that have a meaning in paths are escaped, and a
    ///   long name is shortened to its beginning and its SHA-256. Canonically equivalent names, such as two spellings of `é`, have one
    ///   directory, and all other names have different ones. Letters keep their case: on a file system that ignores case, `Users` and
    ///   `users` are one directory, so do not give two kinds names that differ only in case.
    /// - Returns: The URL of the directory, which is never outside ``directory``. The call does not create it.
    public func directory(named name: String) -> URL {
        directory.appending(component: Self.component(name), directoryHint: .isDirectory)
    }

    static func component(_ name: String) -> String {
        // A file system may keep the bytes of a name, and then finds only the same spelling again.
        let name = name.normalFormC
        var component = ""
        for scalar in name.unicodeScalars {
            // A point at the beginning would make the names `.` and `..`, and names that this package uses itself.
            let isEscaped = scalar.value < 0x20 || scalar.value == 0x7F || "/\\:%".unicodeScalars.contains(scalar)
            guard isEscaped || (component.isEmpty && scalar == ".") else {
                component.unicodeScalars.append(scalar)
                continue
            }
            component += (scalar.value < 0x10 ? "%0" : "%") + String(scalar.value, radix: 16, uppercase: true)
        }
        // The empty text has the escape that no other text has. File systems allow 255 bytes for a name.
        if component.isEmpty { return "%" }
        guard component.utf8.count > 180 else { return component }
        let beginning = String(String.UnicodeScalarView(component.unicodeScalars.prefix(24)))
        return "\(beginning)%-\(SHA256.digest(of: Array(name.utf8)).hex)"
    }

    @concurrent
    private static func removeRecords(in directory: URL) async throws {
        try RecordFiles.removeAll(in: Directory(path: directory.standardizedFileURL.path(percentEncoded: false)), depth: .children)
    }
}
