// Follows every link of a documentation archive that leads to the archive itself: to a page and its heading, or to a file.
//
// swift check-links.swift <archive>

import Foundation

guard CommandLine.arguments.count == 2 else { fatalError("usage: swift check-links.swift <archive>") }
let archive = URL(filePath: CommandLine.arguments[1], directoryHint: .isDirectory)

/// A page's links, and the anchors of its headings.
struct Page {
    var links: Set<String> = []
    var anchors: Set<String> = []

    init(_ file: URL) throws {
        guard let page = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any] else { return }
        for case let reference as [String: Any] in (page["references"] as? [String: Any] ?? [:]).values {
            if let url = reference["url"] as? String { links.insert(url) }
            for case let variant as [String: Any] in reference["variants"] as? [Any] ?? [] {
                if let url = variant["url"] as? String { links.insert(url) }
            }
        }
        collectAnchors(of: page)
    }

    private mutating func collectAnchors(of value: Any) {
        if let object = value as? [String: Any] {
            if let anchor = object["anchor"] as? String { anchors.insert(anchor) }
            object.values.forEach { collectAnchors(of: $0) }
        } else if let array = value as? [Any] {
            array.forEach { collectAnchors(of: $0) }
        }
    }
}

// Paths from the archive's root, as links have them, without the suffix `.json`.
var pages: [String: Page] = [:]
let data = archive.appending(path: "data")
for case let path as String in FileManager.default.enumerator(atPath: data.path()) ?? .init() where path.hasSuffix(".json") {
    pages["/" + path.dropLast(5)] = try Page(data.appending(path: path))
}

var count = 0
var faults: [String] = []
for (path, page) in pages {
    for link in page.links where !link.contains("://") && !link.hasPrefix("mailto:") {
        count += 1
        let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        // An address of a page has no percent-encoded characters that the name of its file has not, too.
        if let target = pages[parts[0].removingPercentEncoding ?? parts[0]] {
            if parts.count > 1, !target.anchors.contains(parts[1]) { faults.append("\(path): \(parts[0]) has no heading \(parts[1])") }
        } else if !link.hasPrefix("/") || !FileManager.default.fileExists(atPath: archive.path() + parts[0]) {
            faults.append("\(path): \(link) does not exist")
        }
    }
}

for fault in faults.sorted() { print("error: \(fault)") }
guard faults.isEmpty, !pages.isEmpty else { exit(1) }
print("\(count) links of \(pages.count) pages lead to a page or a file")
