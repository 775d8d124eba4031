import Foundation
import StoreCore
import StorePlatform
import Trials

/// The functions of the system's SQLite, loaded at run time: a bare machine lacks it.
struct SQLite: Sendable {
    typealias Open = @convention(c) (UnsafePointer<CChar>, UnsafeMutablePointer<OpaquePointer?>) -> Int32
    typealias Prepare =
        @convention(c) (OpaquePointer, UnsafePointer<CChar>, Int32, UnsafeMutablePointer<OpaquePointer?>, OpaquePointer?) -> Int32
    typealias Bind = @convention(c) (OpaquePointer, Int32, UnsafeRawPointer?, Int32, Int) -> Int32
    typealias Statement = @convention(c) (OpaquePointer) -> Int32
    typealias Bytes = @convention(c) (OpaquePointer, Int32) -> UnsafeRawPointer?
    typealias Count = @convention(c) (OpaquePointer, Int32) -> Int32

    let open: Open, prepare: Prepare, bindBlob: Bind, step: Statement, finalize: Statement, close: Statement
    let blob: Bytes, bytes: Count

    static let library: SQLite? = {
        let names = ["libsqlite3.so.0", "libsqlite3.dylib"]
        guard let handle = names.lazy.compactMap({ dlopen($0, RTLD_NOW) }).first else { return nil }
        func function<Function>(_ name: String, _ type: Function.Type = Function.self) -> Function {
            unsafeBitCast(dlsym(handle, "sqlite3_" + name), to: type)
        }
        return SQLite(
            open: function("open"), prepare: function("prepare_v2"), bindBlob: function("bind_blob"), step: function("step"),
            finalize: function("finalize"), close: function("close"), blob: function("column_blob"), bytes: function("column_bytes"))
    }()
}

/// Records in a table of SQLite, as an application would write it.
actor SQLiteCacher<Param: Hashable & Codable & Sendable, Content: Codable & Sendable>: Cacher {
    struct Failure: Error {
        var statement: String
        var code: Int32
    }

    private let sqlite: SQLite
    private nonisolated(unsafe) let database: OpaquePointer

    init(path: String) throws {
        guard let sqlite = SQLite.library else { throw Failure(statement: "dlopen", code: -1) }
        var database: OpaquePointer?
        let code = sqlite.open(path, &database)
        guard code == 0, let database else { throw Failure(statement: "open", code: code) }
        self.sqlite = sqlite
        self.database = database
        // These records need not survive the machine, and a slow disk delays each save.
        _ = try Self.rows("PRAGMA synchronous = OFF", [], sqlite, database)
        _ = try Self.rows("CREATE TABLE IF NOT EXISTS records (key BLOB PRIMARY KEY, record BLOB NOT NULL)", [], sqlite, database)
    }

    deinit { _ = sqlite.close(database) }

    private static func rows(_ statement: String, _ values: [Data], _ sqlite: SQLite, _ database: OpaquePointer) throws -> [Data] {
        var prepared: OpaquePointer?
        var code = sqlite.prepare(database, statement, -1, &prepared, nil)
        guard code == 0, let prepared else { throw Failure(statement: statement, code: code) }
        defer { _ = sqlite.finalize(prepared) }
        for (number, value) in values.enumerated() {
            // -1: SQLite copies the bytes.
            code = value.withUnsafeBytes { sqlite.bindBlob(prepared, Int32(number + 1), $0.baseAddress, Int32($0.count), -1) }
            guard code == 0 else { throw Failure(statement: statement, code: code) }
        }
        var rows: [Data] = []
        while true {
            switch sqlite.step(prepared) {
            case 100: rows.append(sqlite.blob(prepared, 0).map { Data(bytes: $0, count: Int(sqlite.bytes(prepared, 0))) } ?? Data())
            case 101: return rows
            case let code: throw Failure(statement: statement, code: code)
            }
        }
    }

    private func rows(_ statement: String, _ values: [Data] = []) throws -> [Data] { try Self.rows(statement, values, sqlite, database) }

    private func name(_ param: Param) throws -> Data { try JSONEncoder().encode([param]) }

    func load(param: Param) throws -> CacheRecord<Content>? {
        try rows("SELECT record FROM records WHERE key = ?", [try name(param)]).first.map {
            try JSONDecoder().decode(CacheRecord<Content>.self, from: $0)
        }
    }

    func save(_ record: CacheRecord<Content>, param: Param) throws {
        _ = try rows("INSERT OR REPLACE INTO records VALUES (?, ?)", [try name(param), try JSONEncoder().encode(record)])
    }

    func remove(param: Param) throws { _ = try rows("DELETE FROM records WHERE key = ?", [try name(param)]) }
    func removeAll() throws { _ = try rows("DELETE FROM records") }
    func keys() throws -> [Param]? {
        try rows("SELECT key FROM records").compactMap { try JSONDecoder().decode([Param].self, from: $0).first }
    }
}
