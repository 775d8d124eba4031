import StoreCore
import StorePlatform
import Testing

/// Tests how messages show names from the network or the disk.
struct EscapedTextTests {
    @Test(arguments: [
        ("\0", "\\u{0}"), ("\u{1B}[31m", "\\u{1B}[31m"), ("a\r\nb", "a\\u{D}\\u{A}b"), ("\u{7F}\u{80}\u{9F}", "\\u{7F}\\u{80}\\u{9F}"),
        ("\u{61C}\u{200E}\u{200F}", "\\u{61C}\\u{200E}\\u{200F}"), ("\u{2028}\u{2029}", "\\u{2028}\\u{2029}"),
        ("\u{202A}\u{202E}", "\\u{202A}\\u{202E}"), ("\u{2066}\u{2069}", "\\u{2066}\\u{2069}"),
    ])
    func `a character that controls a terminal is escaped`(text: String, shown: String) {
        #expect(text.escapedForDisplay() == shown)
    }

    @Test(arguments: [
        "", "plain", "caf\u{E9}", "cafe\u{301}", "مثال", "👩\u{200D}👧", "\u{A0}\u{2027}\u{202F}\u{2065}\u{206A}", "back\\slash",
    ])
    func `a printable character is not escaped`(text: String) {
        #expect(Array(text.escapedForDisplay().utf8) == Array(text.utf8))
    }

    @Test func `a long text is truncated by characters and ends with an ellipsis`() {
        #expect("abcdef".escapedForDisplay(atMost: 3) == "abc…")
        #expect("abc".escapedForDisplay(atMost: 3) == "abc")
        #expect("\u{7}bcd".escapedForDisplay(atMost: 2) == "\\u{7}b…")
    }

    @Test func `the description of an error escapes the text that it quotes`() {
        let path = "a\u{1B}[2J\u{202E}b"
        for error in [StoreError.fileSystem("opening", path: path, errno: 2), StoreError(.fileSystem, path)] {
            let signs = error.description.unicodeScalars.filter(\.actsOnDisplay)
            #expect(signs.isEmpty)
        }
    }
}
