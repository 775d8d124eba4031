internal import Testing

@Suite struct DocumentationTests {
    /// Languages that a fence may name: code, a command, what is printed, a picture.
    private static let languages: Set<String> = ["swift", "sh", "console", "text"]

    @Test(arguments: Documentation.blocks.filter { $0.language == "swift" })
    func `each Swift example stands in compiled code`(block: DocumentedBlock) {
        // Not `#expect`: its report would contain all of the compiled code.
        guard !Documentation.code.contains(block.lines) else { return }
        Issue.record(
            """
            \(block.file), line \(block.line): the example that begins with “\(block.firstLine)” is not compiled. \
            Write a line “//: \(block.file.split(separator: "/").last ?? ""): \(block.firstLine)” where it is to be compiled, in a file of
            Tests/DocumentationTests/Snippets.
            """)
    }

    @Test func `a reference stands for the block that it names, at the lines of the document`() throws {
        let article = "# A\n```swift\nlet a = 1\nuse(a)\n```\n```swift\nlet b = 2\nuse(b)\n```\n```sh\nls\n```"
        let blocks = ["Sources/A.docc/Use.md", "Sources/B.docc/Use.md"].flatMap { DocumentedBlock.blocks(of: article, file: $0) }
        let template = SnippetTemplate(path: "Snippets/Use.swift", text: "f {\n    //: A.docc/Use.md: let b\n}\n//: B.docc/Use.md: use(a)")
        let root = Documentation.location(of: "")
        #expect(
            try template.code(with: blocks) == """
                #sourceLocation(file: "\(root)Snippets/Use.swift", line: 1)
                f {
                #sourceLocation(file: "\(root)Sources/A.docc:Use.md", line: 7)
                let b = 2
                use(b)
                #sourceLocation(file: "\(root)Snippets/Use.swift", line: 3)
                }
                #sourceLocation(file: "\(root)Sources/B.docc:Use.md", line: 3)
                let a = 1
                use(a)
                #sourceLocation(file: "\(root)Snippets/Use.swift", line: 5)
                """)
    }

    @Test(arguments: [
        ("Other.md", "no document “Other.md” has a Swift block"),
        ("Two.md", "“Two.md” is the name of A/Two.md, B/Two.md"),
        ("Use.md: let c", "a line that begins with “let c”; name one of “let a = 1”, “let b = 1”"),
        ("Use.md: let", "Use.md has several such blocks, in the lines 1, 4"),
        ("Use.md", "Use.md has several such blocks, in the lines 1, 4"),
    ])
    func `a reference that does not name one block is refused`(reference: String, message: String) {
        let text = "```swift\nlet a = 1\n```\n```swift\nlet b = 1\n```"
        let blocks = ["Use.md", "A/Two.md", "B/Two.md"].flatMap { DocumentedBlock.blocks(of: text, file: $0) }
        let template = SnippetTemplate(path: "Snippets/Use.swift", text: "f {\n  //: \(reference)\n}")
        let fault = #expect(throws: SnippetTemplate.Fault.self) { try template.code(with: blocks) }
        #expect(fault?.description.contains("Snippets/Use.swift:2: error: ") == true)
        #expect(fault?.description.contains(message) == true, "\(fault?.description ?? "")")
    }

    @Test func `each block names its language, so that no example escapes`() {
        for block in Documentation.blocks {
            #expect(
                Self.languages.contains(block.language),
                "\(block.file), line \(block.line): a fence must say swift, sh, console (what is printed) or text, not “\(block.language)”")
        }
    }

    @Test(
        arguments: Documentation.articles.filter { file in
            Documentation.blocks.contains { $0.file == file && $0.language == "console" }
        })
    func `what an article says is printed is printed`(article: String) async throws {
        let told = try #require(
            Story.all[article],
            "\(article) has a console block: tell its story in Tests/DocumentationTests/Snippets, and list it in Story.all")
        let written = Documentation.blocks.filter { $0.file == article && $0.language == "console" }
        let printed = try await told()
        try #require(written.count == printed.count, "\(article) has \(written.count) console blocks, its story \(printed.count)")
        for (block, lines) in zip(written, printed) {
            #expect(block.lines.map(String.init) == lines, "\(article), line \(block.line): not what the example prints")
        }
    }

    @Test(arguments: Documentation.links)
    func `each link leads to a file, and to a heading of it, that are there`(link: DocumentedLink) {
        guard Documentation.exists(link.path) else {
            Issue.record("there is no \(link.path)")
            return
        }
        guard let anchor = link.anchor else { return }
        #expect(DocumentedLink.anchors(of: Documentation.text(of: link.path)).contains(String(anchor)))
    }

    @Test(arguments: Documentation.articles.filter { $0.contains(".docc/") })
    func `an article links to others as files, in the form that the site turns into links of its own`(article: String) {
        #expect(!Documentation.text(of: article).contains("<doc:"), "\(article): write [title](Article.md)")
        let folder = article.split(separator: "/").dropLast().joined(separator: "/")
        for link in DocumentedLink.links(of: Documentation.text(of: article), file: article) where !link.target.hasPrefix("Resources/") {
            let isNeighbor = link.path.wholeMatch(of: /(.+)\/\w+\.md/).map { $0.1 == folder } ?? false
            let isInCatalogue = link.path.wholeMatch(of: /Sources\/[\w\/]+\/\w+\.docc\/\w+\.md/) != nil
            #expect(link.anchor == nil, "\(link.testDescription): the site spells headings in another way")
            #expect(isNeighbor || isInCatalogue, "\(link.testDescription) is not on the site")
        }
    }

    @Test func `the landing page has the modules in the order of the README`() {
        let pages = [Documentation.landingPage, "README.md"].map { page in
            DocumentedLink.links(of: Documentation.text(of: page), file: page).map(\.path)
                .filter { $0.wholeMatch(of: /Sources\/[\w\/]+\/(\w+)\.docc\/\1\.md/) != nil }
        }
        #expect(pages[0].count == 11)
        #expect(pages[0] == pages[1])
    }

    @Test func `links and headings are read as a reader of Markdown reads them`() {
        let text = """
            ## A cacher of your own, and `more`
            See [here](../Other/File.md#a-b) and [there](#c), not [the web](https://example.com).
            ```text
            [in a fence](no.md)
            ```
            """
        let links = DocumentedLink.links(of: text, file: "Sources/One/Article.md")
        #expect(links.map(\.path) == ["Sources/Other/File.md", "Sources/One/Article.md"])
        #expect(links.map(\.anchor) == ["a-b", "c"])
        #expect(DocumentedLink.anchors(of: text) == ["a-cacher-of-your-own-and-more"])
        #expect(!Documentation.exists("Sources/Other/File.md"))
    }

    @Test func `code that is not there is not found`() {
        let code = CompiledCode(files: ["    if isTrue {\n        act()  // why\n    }\n"])
        #expect(code.contains(["if isTrue {", "    act() // why", "}"]))
        #expect(!code.contains(["if isTrue {", "act() // why", "}"]))
        #expect(!code.contains(["if isTrue {", "}"]))
    }
}

extension DocumentedBlock: CustomTestStringConvertible {
    var testDescription: String { "\(file):\(line) \(firstLine)" }
}

/// An article's examples, run in order; gives what each of its console blocks must say.
struct Story {
    static let all: [String: @Sendable () async throws -> [[String]]] = [
        "README.md": readme,
        "Sources/StoreCore/Core/StoreCore.docc/StoreCore.md": landingPage,
        "Sources/StoreCore/Core/StoreCore.docc/GettingStarted.md": gettingStarted,
        "Sources/StoreCore/Resilience/StoreResilience.docc/OnAServer.md": OnAServerTests.output,
        "Sources/StoreCore/Outbox/StoreOutbox.docc/ChangesThatSurvive.md": ChangesThatSurviveTests.output,
        "Sources/StoreCore/Files/StoreFiles.docc/SharingACache.md": SharingACacheTests.output,
        "Sources/SyncEngine/SyncEngine.docc/GettingStarted.md": synchronizing,
    ]
}
