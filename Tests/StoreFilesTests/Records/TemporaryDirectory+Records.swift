import Foundation
import Trials
internal import StoreFiles

@testable import StoreFiles
@testable import StoreCore

extension TemporaryDirectory {
    var records: [String] { get throws { try names.filter { RecordFiles.digest(in: $0) != nil } } }
    var temporaries: [String] { get throws { try names.filter { RecordFiles.isTemporary($0) } } }
}

/// The name of a key's file.
func fileName(_ key: some Hashable & Codable) throws -> String { try FileKey(key).fileName }
