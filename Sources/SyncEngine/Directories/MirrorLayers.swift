#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

internal import StoreCore
internal import StorePlatform

/// The parts of a mirror that are off by default: a filter, a backup directory, a reserve of free space, metadata, and a check of all
/// contents.
///
/// ```swift
/// var layers = MirrorLayers()
/// layers.filter = FileFilter(["*.tmp"])
/// layers.backup = URL(filePath: "/var/backups/films")
/// ```
///
/// <doc:LimitsBackupsAndChecks> shows each of them.
public struct MirrorLayers: Sendable {
    /// The files that take no part in a pass; a pass neither downloads nor removes them.
    public var filter = FileFilter()
    /// The directory that receives each file before it is replaced or removed, under its own path; `nil` keeps no backup.
    ///
    /// It may be inside the target: a pass then neither lists nor removes anything in it. An earlier backup of a path is replaced.
    public var backup: URL?
    /// The number of bytes that a pass must leave free on the target's disk; a pass that cannot is refused. `nil` checks nothing.
    public var freeSpace: Int64?
    /// The metadata that a pass takes from the list: times, permissions, empty directories, and links; none by default.
    public var metadata: MetadataOptions = []
    /// The check of the installed files; by default, only files with a changed stamp are read.
    public var verification = Verification.stamps

    /// Creates layers that are all off.
    public init() {}

    /// The way in which a pass detects changed files.
    public enum Verification: Sendable {
        /// Files are read if their size, time or inode has changed.
        case stamps
        /// Every installed file is read and compared with its digest, at most at a rate. A damaged file is an update.
        case digests(at: TransferRate?)

        var readsAll: Bool { if case .digests = self { true } else { false } }
    }
}

extension DirectoryTarget {
    /// Returns a refusal if the disk of the target has too little space for the pass.
    ///
    /// - Throws: `StoreError` if the disk fails.
    @concurrent
    public func refusal(of plan: SyncPlan<Item>) async throws -> SyncError? {
        guard let reserve = layers.freeSpace else { return nil }
        let root = try DirectoryHandle(opening: place)
        var (disk, above) = (root, place.parent)
        // A pass makes a missing directory on the disk of the directory above.
        while disk == nil, let next = above { (disk, above) = try (DirectoryHandle(opening: next), next.parent) }
        guard let opened = disk, let free = FileStatus.freeSpace(of: opened) else { return nil }
        let downloads = plan.additions + plan.updates
        let isKept = keepsReplacedFiles
        // The old file exists until the new one is complete, for one file at least.
        let largest = isKept ? 0 : plan.updates.lazy.map { Self.space(of: $0.local?.byteCount) }.max() ?? 0
        var needed = downloads.reduce(largest) { sum, download in
            sum.saturatingAdd(Self.space(of: download.item.byteCount))
                .saturatingAdd(isKept ? 0 : -Self.space(of: download.local?.byteCount))
        }
        if plan.removesFirst, !isKept { needed = needed.saturatingAdd(-(plan.removalBytes ?? 0)) }
        guard needed > 0, needed.saturatingAdd(max(0, reserve)) > free else { return nil }
        // Only now, because each part costs a call.
        let parts = try root?.directory(RelativePath.reserved)?.directory(TargetPlaces.partsName)
        for download in downloads {
            let size = try parts?.status(of: PartNames(path: download.item.key.path).bytes)?.size ?? 0
            needed = needed.saturatingAdd(-Self.space(of: min(Int64(size), max(0, download.item.byteCount ?? 0))))
        }
        guard needed.saturatingAdd(max(0, reserve)) > free else { return nil }
        return .ofPlan(
            .noSpace,
            "it needs \(needed) bytes, and \(max(0, reserve)) must stay free, but the disk of \(place.path.shownSafely) has \(free); "
                + "nothing was changed; free space, or choose another disk")
    }

    /// Returns the space of a file on the disk, in whole blocks of the usual size. Many small files need far more than their bytes.
    private static func space(of byteCount: Int64?) -> Int64 { max(0, byteCount ?? 0).saturatingAdd(4_095) & ~4_095 }

    /// Whether replaced and removed files keep their space, because they get second names in a backup on the same disk.
    private var keepsReplacedFiles: Bool {
        guard let backup = layers.backup else { return false }
        func disk(of directory: URL) -> Int? {
            // A missing directory is made on the disk of the directory above.
            var place = directory.absoluteURL.resolvingSymlinksInPath()
            while true {
                let path = place.path(percentEncoded: false)
                if let disk = (try? FileManager.default.attributesOfItem(atPath: path))?[.systemNumber] as? Int { return disk }
                guard place.pathComponents.count > 1 else { return nil }
                place.deleteLastPathComponent()
            }
        }
        return disk(of: backup) == disk(of: directory)
    }

    /// The paths that take no part in a pass; `nil` if there are none.
    public var excludes: (@Sendable (PathKey) -> Bool)? {
        guard let backup = backupPathInside else {
            guard !layers.filter.isEmpty else { return nil }
            return { [filter = layers.filter] key in filter.excludes(key.path) }
        }
        // The disk may list another spelling than that of the option. A target that cannot be opened has nothing to list.
        let folding = (try? knownFolding()) ?? []
        return { [filter = layers.filter, inside = folding.fold(backup + "/")] key in
            folding.fold(key.path).utf8.starts(with: inside.utf8) || filter.excludes(key.path)
        }
    }

    /// The path of the backup directory in the target; `nil` if it is elsewhere.
    private var backupPathInside: String? {
        guard let backup = layers.backup else { return nil }
        let (outer, inner) = (directory.resolvingSymlinksInPath().pathComponents, backup.resolvingSymlinksInPath().pathComponents)
        return inner.count > outer.count && inner.starts(with: outer) ? inner[outer.count...].joined(separator: "/") : nil
    }

    /// Reads every file that matches its record, and marks those with other content.
    ///
    /// - Returns: The files that the process may not read, which are as their stamps say.
    func verifyContents(
        of scan: inout DirectoryScan, _ journal: TargetJournal, in root: DirectoryHandle
    ) async throws -> [(key: PathKey, value: any Error)] {
        guard case .digests(let rate) = layers.verification else { return [] }
        let excludes = excludes
        var rows = scan.unchanged
        var denied: [(key: PathKey, value: any Error)] = []
        while let row = rows.takeFirst(1).first {
            guard let key = journal.records.path(at: row), !(excludes?(key) ?? false) else { continue }
            try Task.checkCancellation()
            let record = journal.records.record(at: row)
            do {
                // A file that has changed since the inventory is not damaged.
                guard let directory = try root.existingDirectory(at: key.parts.dropLast()), let name = key.parts.last,
                    let status = try directory.status(of: name), FileStamp(status) == record.stamp
                else { continue }
                try probe?(.reads(key.path))
                if try await digest(of: name, in: directory, rate) != record.digest { scan.markDamaged(row, journal) }
            } catch  where error.isLoss {
                scan.markDamaged(row, journal)
            } catch  where error.isDenial {
                denied.append((key, error))
            }
        }
        return denied
    }

    private func digest(of name: String, in directory: DirectoryHandle, _ rate: TransferRate?) async throws -> SHA256.Digest? {
        guard let file = try OpenFile(reading: name, in: directory), try file.status().kind == .regular else { return nil }
        var hash = SHA256()
        var offset = 0
        while true {
            try Task.checkCancellation()
            let count = try hash.update(from: offset, to: offset + (1 << 16)) { buffer, offset throws(StoreError) in
                try file.read(into: buffer, at: offset)
            }
            if count > 0 { try await rate?.take(count) }
            // The file has ended. Most files are small, and would need a second buffer and read to find that out.
            if count < 1 << 16 { return hash.digest() }
            offset += count
        }
    }
}
