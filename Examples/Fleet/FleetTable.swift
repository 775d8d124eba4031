import PostgresCacher
import StoreCore

/// The table that the workers share instead of a directory.
enum FleetTable {
    /// Creates the table.
    ///
    /// - Throws: An error that states why the database cannot be used.
    static func check(_ url: String, _ table: String) async throws {
        _ = try await PostgresCacher<String, Item>(url: url, table: table).load(param: "sum")
    }

    /// Removes the table and its companions.
    static func remove(_ url: String, _ table: String) async throws {
        try await PostgresCacher<String, Item>(url: url, table: table).dropTable()
    }
}
