import DiskFormats
import Foundation
import StoreCore
internal import StorePlatform
import Trials

/// Writes increasing values in a format of files on disk, and prints each one after it was written.
enum FormatModes {
    static func run(_ mode: String, _ directory: URL, _ arguments: [String]) async throws {
        guard arguments.count == 2, let format = DiskFormat.all.first(where: { $0.description == arguments[0] }),
            let number = Int(arguments[1])
        else { return say("unknown format") }
        switch mode {
        case "loop":
            let owner = try format.open(directory)
            for number in number... {
                try await owner.write(number)
                say("\(number)")
            }
        case "limited":
            limitFileSize(number)
            fallthrough
        case "full":
            // The fourth value does not fit.
            let owner = try format.open(directory)
            for number in [1, 2, 3, number, 4] {
                do {
                    try await owner.write(number)
                    say("\(number)")
                } catch let error as StoreError {
                    say("failed \(error.code.rawValue) \(error.fileSystemErrno ?? 0)")
                }
            }
            let found = try await format.read(directory)
            say("found \(found.values) \(found.isDamaged ? "damaged" : "whole")")
        default: say("unknown mode \(mode)")
        }
    }
}
