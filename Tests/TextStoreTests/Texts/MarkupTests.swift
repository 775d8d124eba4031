import Foundation
import Testing

@testable import TextStore

/// T5: HTML pages that a portal sends as plain text, and texts that merely begin like a page.
struct MarkupTests {
    private func refusal(of text: String, as type: String = "text/plain", declaring types: Set<String> = []) -> TextStoreError.Code? {
        let response = RemoteText(bytes: Data(text.utf8), contentType: type)
        do throws(TextStoreError) {
            _ = try TextValidation.text(of: response, TextValidation.Expectation(mediaTypes: types))
            return nil
        } catch {
            return error.code
        }
    }

    private static let tags = [
        "html", "head", "script", "iframe", "h1", "div", "font", "table", "a", "style", "title", "b", "body", "br", "p", "meta", "link",
        "base", "noscript", "center", "form", "frameset", "img", "span", "hr", "h2", "h6", "ul", "ol", "input", "button", "main", "nav",
        "header", "footer", "fieldset", "applet", "marquee", "basefont",
    ]

    @Test(arguments: tags)
    func `T5: a page that begins with a tag of the sniffing table is refused`(tag: String) {
        for written in [tag, tag.uppercased(), tag.capitalized] {
            for start in ["", "\u{FEFF}", " \t\r\n\u{0C}", "\u{FEFF} \n", "<!-- portal -->", "<!-- a --> <!-- b -->\n"] {
                for end in [">", " id=\"x\">", "\n class=x>", "\t>", "/>"] {
                    #expect(refusal(of: "\(start)<\(written)\(end) Sign in") == .unexpectedMediaType, "\(start)<\(written)\(end)")
                }
            }
        }
    }

    @Test(arguments: [
        "<!DOCTYPE html><p>Sign in", "<!doctype HTML>", "<!DocType html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\">", "<!DOCTYPE\nhtml>",
        "<!-- saved from a portal -->\n<!DOCTYPE html>", "<!--x-->Sign in <a href=/>", "<!--[if IE]><html><![endif]-->", "<!-- never ends",
        "<?xml version=\"1.0\"?>\n<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\">",
        "<?xml version='1.0' encoding='UTF-8'?><html xmlns=\"http://www.w3.org/1999/xhtml\">", "<?XML version=\"1.0\"?> <!-- x --> <HTML>",
        "\u{FEFF}\n\n<html", "<HEAD><TITLE>Sign in</TITLE>",
    ])
    func `T5: a page that begins with a comment, a document type, or an XML declaration is refused`(page: String) {
        #expect(refusal(of: page) == .unexpectedMediaType)
        #expect(refusal(of: page, as: "text/html; charset=utf-8", declaring: ["text/html"]) == nil)
    }

    @Test(arguments: [
        "<<< Notice >>>", "< html >", "<3 to all", "<", "<>", "<!", "<!-", "<? not XML", "<placeholder> is your name", "<abbr> and <bold>",
        "<pre-release> terms", "<article 1>", "<tablet>",
        "<centered>", "<formula>", "<summary>\nof the terms", "<context>", "<h7>", "<image>", "<buttons>", "<headline>", "<h10>",
        "<scripture>", "<you@example.org> wrote:", "<!ELEMENT note (to)>",
        "<?xml version=\"1.0\"?><config><html/></config>", "<?xml version=\"1.0\"?><!-- c --><!DOCTYPE plist><plist/>",
        "<?xml version=\"1.0\"", "Terms: <html> is a tag", "a <!-- b -->", "&lt;html&gt;",
    ])
    func `T5: a text that begins with a bracket but is not a page is accepted`(text: String) {
        #expect(refusal(of: text) == nil)
    }

    @Test func `T5: declared Markdown may begin with HTML, as RFC 7763 allows`() {
        let text = "<!-- SPDX-License-Identifier: MIT -->\n# Terms"
        #expect(refusal(of: text, as: "text/markdown") == .unexpectedMediaType)
        #expect(refusal(of: text, as: "text/markdown", declaring: ["text/markdown"]) == nil)
        #expect(refusal(of: text, as: "text/plain", declaring: ["text/plain"]) == .unexpectedMediaType)
    }
}
