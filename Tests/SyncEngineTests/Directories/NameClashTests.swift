import Testing

@testable import SyncEngine

/// The index of spellings, for disks that treat different names as equal.
struct NameClashTests {
    private func path(_ path: PathKey) throws -> RelativePath { try RelativePath(path) }

    @Test func `S8: on a folding disk a path has at most one other spelling`() throws {
        var clashes = NameClashes(.all)
        #expect(try clashes.insert(path("Dir/Caf\u{E9}")) == nil)
        #expect(clashes.otherSpelling(of: "dir/cafe\u{301}") == "Dir/Caf\u{E9}")
        #expect(clashes.otherSpelling(of: "Dir/Caf\u{E9}") == nil, "it is the same spelling")
        #expect(clashes.otherSpelling(of: "dir/cafe") == nil)
        #expect(try clashes.insert(path("DIR/other")) == "Dir", "a directory clashes too")
        clashes.remove("Dir/Caf\u{E9}")
        #expect(clashes.otherSpelling(of: "dir/cafe\u{301}") == nil)
    }

    @Test func `S8: on a disk without folding, names that differ in case do not clash`() throws {
        var clashes = NameClashes([])
        #expect(try clashes.insert(path("a")) == nil)
        #expect(try clashes.insert(path("A")) == nil)
        #expect(clashes.otherSpelling(of: "A") == nil)
    }
}
