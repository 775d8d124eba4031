public import Foundation

extension Data {
    /// Writes an output file that a user has named, in one step. A link, a pipe or a device is written to, and not replaced.
    public func write(toOutput url: URL) throws {
        let kind = try? FileManager.default.attributesOfItem(atPath: url.path(percentEncoded: false))[.type] as? FileAttributeType
        try write(to: url, options: kind == nil || kind == .typeRegular ? .atomic : [])
    }
}
