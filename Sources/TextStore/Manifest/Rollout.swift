internal import Foundation
internal import RemoteHTTP
import StoreCore
internal import StorePlatform

/// The facts about an app that the conditions of a manifest ask for.
///
/// ```swift
/// let audience = TextAudience(
///     appVersion: SemanticVersion("3.1", mode: .lenient), platform: "ios")
/// ```
///
/// <doc:Rollouts> lists the conditions.
public struct TextAudience: Hashable, Sendable {
    /// The version of the app; `nil` fails every condition on the version.
    public var appVersion: SemanticVersion?
    /// The name of the platform, as the manifest spells it; `nil` fails every condition on the platform.
    public var platform: String?

    /// Makes the facts about an app.
    ///
    /// - Parameters:
    ///   - appVersion: The version of the app.
    ///   - platform: The name of the platform, as the manifest spells it.
    public init(appVersion: SemanticVersion? = nil, platform: String? = nil) {
        self.appVersion = appVersion
        self.platform = platform
    }
}

/// The conditions of an entry, all of which must be met.
struct Conditions: Hashable, Sendable {
    /// The lowest version of the app.
    var app: SemanticVersion?
    var platforms: [String]?
    var from: Date?
    /// The share of devices, from 0 to 1.
    var share: Double?
    /// The name of the draw; entries with the same name reach the same devices.
    var draw: String?

    /// Returns whether the conditions are met.
    ///
    /// - Parameters:
    ///   - name: The name of the draw if the entry names none.
    ///   - device: The device's random number; `nil` if it cannot be read, so that only a share of all devices contains the device.
    func areMet(by audience: TextAudience, _ name: String, on device: UInt64?, at now: Date) -> Bool {
        if let app, audience.appVersion.map({ $0 < app }) ?? true { return false }
        if let platforms, audience.platform.map({ !platforms.contains($0) }) ?? true { return false }
        if let from, now < from { return false }
        guard let share, share < 1 else { return true }
        return device.map { Self.place(of: $0, in: draw ?? name) < share } ?? false
    }

    /// Returns a device's place in a draw, from 0 to below 1. A larger share begins with the devices of a smaller one.
    static func place(of device: UInt64, in draw: String) -> Double {
        // Two spellings of a group or an identifier are one name, and have one draw.
        let digest = SHA256.digest(of: Array("\(draw.normalFormC)\n\(device)".utf8))
        // 53 bits, because a Double has no more below 1.
        let bits = digest.bytes.prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        return Double(bits >> 11) / Double(1 << 53)
    }
}

extension Conditions {
    init(reading value: JSONValue) throws(VersionManifest.Refusal) {
        func refusal(_ reason: String) -> VersionManifest.Refusal { VersionManifest.Refusal(reason: reason) }
        guard case .object(let members) = value else { throw refusal("its “when” is \(value.kind) instead of an object") }
        self.init()
        var seen: Set<String> = []
        for member in members {
            guard seen.insert(member.name).inserted else { throw refusal("its “when” has two members “\(member.name)”") }
            switch (member.name, member.value) {
            case ("app", .string(let text)): app = SemanticVersion(text, mode: .lenient)
            case ("platforms", .array(let values)):
                let names: [String] = values.compactMap { if case .string(let text) = $0 { text } else { nil } }
                platforms = names.count != values.count || names.isEmpty ? nil : names
            case ("from", .string(let text)): from = RFC3339.date(text)
            case ("percent", .number(let digits)): share = Double(digits).flatMap { (0...100).contains($0) ? $0 / 100 : nil }
            case ("draw", .string(let text)): draw = text.isEmpty ? nil : text
            default: break
            }
        }
        let found: [(String, String, Bool)] = [
            ("app", "a version such as \"3.1.0\"", app != nil),
            ("platforms", "a list of names such as [\"ios\"]", platforms != nil),
            ("from", "a date and time such as \"2030-01-01T00:00:00Z\"", from != nil),
            ("percent", "a number from 0 to 100", share != nil), ("draw", "a name", draw != nil),
        ]
        for (name, form, isRead) in found where seen.contains(name) && !isRead {
            throw refusal("its condition “\(name)” is not \(form)")
        }
        // A condition that this version does not know may be meant to hold the text back.
        if let unknown = seen.subtracting(found.map(\.0)).min() {
            throw refusal("its condition “\(unknown)” is unknown; update the app")
        }
        guard !seen.isEmpty else { throw refusal("its “when” has no conditions; leave it out") }
    }
}

extension VersionManifest {
    /// Returns the manifest with the first variant of each text whose conditions are met.
    ///
    /// Without an audience, a text with conditions is a problem.
    func chosen(for audience: TextAudience?, on device: UInt64?, at now: Date) -> VersionManifest {
        var copy = self
        for (identifier, found) in variants.sorted(by: { $0.key < $1.key }) {
            if let audience {
                let place = found.firstIndex { entry in
                    entry.conditions?.areMet(by: audience, entry.group ?? identifier, on: device, at: now) ?? true
                }
                copy.entries[identifier] = place.map { place in
                    var entry = found[place]
                    entry.shared = found[..<place].filter { $0.conditions?.share != nil }.map(\.version)
                    return entry
                }
            } else {
                let reason = "it has conditions, and the app states nothing about itself; set the audience of the version source"
                copy.problems.append(Problem(identifier: identifier, reason: reason, group: found.first?.group))
            }
        }
        return copy
    }
}

extension TextStore {
    /// Reads a manifest, without the entries that its source refuses and those with unmet conditions.
    func manifest(in body: Data, of source: VersionSource) async throws(TextStoreError) -> VersionManifest {
        let manifest = try VersionManifest(parsing: body, mode: source.mode, limit: source.remoteFile?.limit ?? .max)
        guard !manifest.variants.isEmpty else { return manifest.taken(by: source) }
        let device = source.audience == nil ? nil : await shelf.device()
        return manifest.chosen(for: source.audience, on: device, at: time.date).taken(by: source)
    }

    /// Returns the last manifest as its conditions choose now; `nil` if that has not changed.
    func takenAgain(_ record: ManifestRecord, by source: VersionSource) async throws(TextStoreError) -> VersionManifest? {
        let known = session.read { $0.manifest }
        guard let known, !known.variants.isEmpty, let body = record.body else { return nil }
        let again = try await manifest(in: body, of: source)
        return again == known ? nil : again
    }
}

extension Shelf {
    /// Returns the device's random number, which is made at its first use; `nil` if it cannot be read or saved.
    func device() -> UInt64? {
        if let deviceNumber { return deviceNumber }
        let file = KeptValue<UInt64>(name: "device", directory: directory, options: options)
        do throws(TextStoreError) {
            try directory.make(options)
            deviceNumber = try locked { () throws(TextStoreError) in
                let (copies, found) = file.load()
                if let copy = copies.first { return copy.value }
                // A file that cannot be read now may be intact.
                if let fault = found.first(where: { $0.code == .fileSystem }) { throw fault }
                let number = UInt64.random(in: .min ... .max)
                faults += try file.save(number, serial: 1)
                return number
            }
        } catch {
            faults.append(error)
            // A saved number never changes, so it is read without the lock if the lock is unavailable, as in a read-only directory.
            deviceNumber = file.load().copies.first?.value
        }
        return deviceNumber
    }
}
