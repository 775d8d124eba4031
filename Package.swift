// swift-tools-version: 6.2
import PackageDescription

// The targets of the framework, and the targets that each may import. The compiler refuses any other import.
//
// | Target | Folder in Sources | May import | Product |
// |---|---|---|---|
// | StoreCore | StoreCore/Core | none | StoreCore |
// | StorePlatform | StoreCore/Platform | StoreCore | none |
// | StoreFiles | StoreCore/Files | StoreCore, StorePlatform | StoreCore |
// | StoreOutbox | StoreCore/Outbox | StoreCore, StorePlatform, StoreFiles | StoreCore |
// | StoreResilience | StoreCore/Resilience | StoreCore, its public API only | StoreCore |
// | StoreCoreTesting | StoreCore/Testing | StoreCore, StoreOutbox | StoreCoreTesting |
// | PostgresCacher | StoreCore/Postgres | StoreCore, its public API only; its C target | PostgresCacher |
// | RemoteHTTP | RemoteRouting/HTTP | StoreCore, StorePlatform, its C target | RemoteRouting, TextStore |
// | RemoteRouting | RemoteRouting/Routing | StoreCore, StorePlatform, StoreFiles, StoreOutbox, RemoteHTTP | RemoteRouting |
// | RemoteRoutingTesting | RemoteRouting/Testing | StoreCore, RemoteRouting | RemoteRoutingTesting |
// | TextStore | TextStore | StoreCore, StorePlatform, StoreFiles, RemoteHTTP | TextStore |
// | SyncEngine | SyncEngine | StoreCore, StorePlatform, StoreFiles | SyncEngine |
// | Inspector | ../Examples/Inspector | StoreCore, StoreOutbox, RemoteHTTP, RemoteRouting, TextStore, SyncEngine; LoopbackOrigin | Inspector |
//
// RemoteRouting needs StoreOutbox for `RemoteHost.delivery`, which sends the commands of an outbox.

/// The settings of all targets, so that every folder is equally strict.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "Storehouse",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    // The programs are not products, because `swift run` needs none. As products, their targets would be part of every package that depends
    // on this one, and no target there could have the name of one of them or of a target that they use. The inspector is a product, and
    // brings the server of the test origin, `LoopbackOrigin`.
    products: [
        .library(name: "StoreCore", targets: ["StoreCore", "StoreFiles", "StoreOutbox", "StoreResilience"]),
        .library(name: "StoreCoreTesting", targets: ["StoreCoreTesting"]),
        .library(name: "TextStore", targets: ["TextStore", "RemoteHTTP"]),
        .library(name: "RemoteRouting", targets: ["RemoteRouting", "RemoteHTTP"]),
        .library(name: "RemoteRoutingTesting", targets: ["RemoteRoutingTesting"]),
        .library(name: "SyncEngine", targets: ["SyncEngine"]),
        .library(name: "PostgresCacher", targets: ["PostgresCacher"]),
        .library(name: "Inspector", targets: ["Inspector"]),
    ],
    dependencies: [],
    targets: [
        // The framework, by the table above.
        .target(name: "StoreCore", path: "Sources/StoreCore/Core", swiftSettings: settings),
        .target(
            name: "StorePlatform", dependencies: ["StoreCore"], path: "Sources/StoreCore/Platform", swiftSettings: settings),
        .target(
            name: "StoreFiles", dependencies: ["StoreCore", "StorePlatform"], path: "Sources/StoreCore/Files", swiftSettings: settings),
        .target(
            name: "StoreOutbox", dependencies: ["StoreCore", "StorePlatform", "StoreFiles"], path: "Sources/StoreCore/Outbox",
            swiftSettings: settings),
        // Without package access, so that it compiles like the code of a user.
        .target(
            name: "StoreResilience", dependencies: ["StoreCore"], path: "Sources/StoreCore/Resilience", packageAccess: false,
            swiftSettings: settings),
        .target(
            name: "StoreCoreTesting", dependencies: ["StoreCore", "StoreOutbox"], path: "Sources/StoreCore/Testing", swiftSettings: settings
        ),
        // Exchanges over libcurl, which is found at run time on Linux, or over `URLSession`.
        .target(
            name: "RemoteHTTP",
            dependencies: ["StoreCore", "StorePlatform", .target(name: "CurlShim", condition: .when(platforms: [.linux]))],
            path: "Sources/RemoteRouting/HTTP", exclude: ["CurlShim"], swiftSettings: settings),
        .target(name: "CurlShim", path: "Sources/RemoteRouting/HTTP/CurlShim"),
        .target(
            name: "TextStore", dependencies: ["StoreCore", "StorePlatform", "StoreFiles", "RemoteHTTP"], swiftSettings: settings),
        .target(
            name: "RemoteRouting", dependencies: ["StoreCore", "StorePlatform", "StoreFiles", "StoreOutbox", "RemoteHTTP"],
            path: "Sources/RemoteRouting/Routing", swiftSettings: settings),
        .target(
            name: "RemoteRoutingTesting", dependencies: ["StoreCore", "RemoteRouting"], path: "Sources/RemoteRouting/Testing",
            swiftSettings: settings),
        .target(name: "SyncEngine", dependencies: ["StoreCore", "StorePlatform", "StoreFiles"], swiftSettings: settings),

        // A cacher over PostgreSQL, also without package access. libpq is found at run time.
        .target(
            name: "PostgresCacher", dependencies: ["StoreCore", "PostgresShim"], path: "Sources/StoreCore/Postgres",
            exclude: ["PostgresShim"], packageAccess: false, swiftSettings: settings),
        .target(name: "PostgresShim", path: "Sources/StoreCore/Postgres/PostgresShim"),

        // A page in the browser that shows a running program. Its server is that of the test origin.
        .target(
            name: "Inspector",
            dependencies: ["StoreCore", "StoreOutbox", "RemoteHTTP", "RemoteRouting", "TextStore", "SyncEngine", "LoopbackOrigin"],
            path: "Examples/Inspector", swiftSettings: settings),

        // Examples: programs that a newcomer runs.
        .executableTarget(
            name: "hello", dependencies: ["StoreCore"], path: "Examples/Hello",
            swiftSettings: settings),
        .executableTarget(
            name: "tour",
            dependencies: [
                "StoreCore", "StoreFiles", "StoreOutbox", "StorePlatform", "RemoteRouting", "TextStore", "SyncEngine",
                "LoopbackOrigin", "Console", "Inspector",
            ],
            path: "Examples/Tour", swiftSettings: settings),
        .executableTarget(
            name: "orgs",
            dependencies: ["StoreCore", "StoreFiles", "RemoteRouting", "LoopbackOrigin", "Console", "Inspector"],
            path: "Examples/Orgs",
            swiftSettings: settings),
        .executableTarget(
            name: "stars",
            dependencies: [
                "StoreCore", "StoreFiles", "StoreOutbox", "RemoteRouting", "LoopbackOrigin", "Console", "Trials",
            ], path: "Examples/Stars",
            swiftSettings: settings),
        .executableTarget(
            name: "terms",
            dependencies: [
                "StoreCore", "StorePlatform", "TextStore", "RemoteRouting", "LoopbackOrigin", "Console",
            ], path: "Examples/Terms",
            resources: [.copy("Texts")], swiftSettings: settings),
        .executableTarget(
            name: "mirror",
            dependencies: [
                "StoreCore", "StorePlatform", "SyncEngine", "RemoteRouting", "RemoteHTTP", "LoopbackOrigin",
                "Console",
            ],
            path: "Examples/Mirror",
            swiftSettings: settings),
        .executableTarget(
            name: "fleet",
            dependencies: [
                "StoreCore", "StoreFiles", "RemoteRouting", "PostgresCacher", "LoopbackOrigin", "Console",
                "Trials",
            ],
            path: "Examples/Fleet", swiftSettings: settings),

        // Support: a real origin on 127.0.0.1 that misbehaves on command, and a client that lives on the main actor.
        .target(
            name: "LoopbackOrigin", dependencies: ["StoreCore", "StorePlatform"],
            path: "Tests/Support/LoopbackOrigin", swiftSettings: settings),
        .target(
            name: "MainActorClient", dependencies: ["StoreCore", "StoreFiles"],
            path: "Tests/Support/MainActorClient",
            swiftSettings: settings + [.defaultIsolation(MainActor.self)]),
        // The output of the examples and the benchmarks: a terminal with or without colors, or plain lines.
        .target(name: "Console", path: "Tests/Support/Console", swiftSettings: settings),
        // The rounds and seeds of random tests, and the processes that are started and killed in them.
        .target(
            name: "Trials", dependencies: ["StoreCore", "StorePlatform"], path: "Tests/Support/Trials",
            swiftSettings: settings),
        // The parts that the suites of stores share: logs of events, observers, origins, and objects that are counted.
        .target(
            name: "StoreTrials", dependencies: ["StoreCore", "StoreCoreTesting", "Trials"], path: "Tests/Support/StoreTrials",
            swiftSettings: settings),
        // The kinds of files on disk, each with the code that writes and reads it.
        .target(
            name: "DiskFormats", dependencies: ["StoreCore", "StoreFiles", "StorePlatform"], path: "Tests/Support/DiskFormats",
            swiftSettings: settings),
        // A bound on the number of tests that run at once; every test target links it.
        .target(name: "TestWidth", path: "Tests/Support/TestWidth"),
        // A client process, which a hostile response may end.
        .executableTarget(
            name: "HostileClient", dependencies: ["RemoteRouting", "StoreCore", "StoreFiles", "Trials"],
            path: "Tests/Support/HostileClient",
            swiftSettings: settings),
        // Processes that save records, switch texts, or mirror files, and are killed meanwhile.
        .executableTarget(
            name: "CrashWriter", dependencies: ["StoreCore", "StoreFiles", "StoreOutbox", "StorePlatform", "DiskFormats", "Trials"],
            path: "Tests/Support/CrashWriter", swiftSettings: settings),
        .executableTarget(
            name: "TextCrashWriter", dependencies: ["StoreCore", "StorePlatform", "TextStore", "Trials"],
            path: "Tests/Support/TextCrashWriter",
            swiftSettings: settings),
        .executableTarget(
            name: "SyncCrashWriter", dependencies: ["StoreCore", "StorePlatform", "SyncEngine", "Trials"],
            path: "Tests/Support/SyncCrashWriter",
            swiftSettings: settings),

        // StoreCore has three test targets, which the compiler builds in parallel: for stores of values, streams, models, locks and clocks;
        .testTarget(
            name: "StoreCoreTests",
            dependencies: [
                "StoreCoreTesting", "StoreCore", "StoreFiles", "StorePlatform", "StoreResilience", "MainActorClient", "StoreTrials",
                "Trials", "TestWidth",
            ],
            swiftSettings: settings),
        // the engine's machine and its parts, checks of all states, and random histories that are compared with a model;
        .testTarget(
            name: "StoreMachineTests", dependencies: ["StoreCoreTesting", "StoreCore", "StoreTrials", "Trials", "TestWidth"],
            swiftSettings: settings),
        // lists, links between stores, combined states, and cachers that other users change.
        .testTarget(
            name: "StoreListTests",
            dependencies: [
                "StoreCoreTesting", "StoreCore", "StoreFiles", "StoreResilience", "StoreTrials", "Trials", "TestWidth",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "StoreCoreTestingTests",
            dependencies: ["StoreCoreTesting", "StoreCore", "StoreFiles", "StorePlatform", "StoreTrials", "Trials", "TestWidth"],
            swiftSettings: settings),
        // Records and shared directories; and every kind of file on disk, damaged, cut, replaced, and written by processes that are killed or
        // have no space.
        .testTarget(
            name: "StoreFilesTests",
            dependencies: [
                "StoreCoreTesting", "StoreCore", "StoreFiles", "StoreOutbox", "StorePlatform", "DiskFormats", "CrashWriter", "StoreTrials",
                "Trials", "TestWidth",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "StorePlatformTests", dependencies: ["StoreCore", "StorePlatform", "Trials", "TestWidth"], swiftSettings: settings),
        .testTarget(
            name: "StoreOutboxTests",
            dependencies: [
                "StoreCoreTesting", "StoreCore", "StoreFiles", "StoreOutbox", "StorePlatform", "CrashWriter", "Trials", "TestWidth",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "StoreResilienceTests",
            dependencies: ["StoreCoreTesting", "StoreCore", "StoreResilience", "StoreTrials", "Trials", "TestWidth"],
            swiftSettings: settings),
        .testTarget(
            name: "RemoteHTTPTests",
            dependencies: ["StoreCoreTesting", "RemoteHTTP", "StoreCore", "LoopbackOrigin", "Trials", "TestWidth"],
            swiftSettings: settings),
        .testTarget(
            name: "RemoteRoutingTests",
            dependencies: [
                "RemoteRoutingTesting", "StoreCoreTesting", "RemoteRouting", "RemoteHTTP", "StoreCore", "StoreFiles", "StoreOutbox",
                "StorePlatform", "LoopbackOrigin", "HostileClient",
                "Trials", "TestWidth",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "TextStoreTests",
            dependencies: [
                "StoreCoreTesting", "TextStore", "StoreCore", "StoreFiles", "StorePlatform", "RemoteHTTP", "LoopbackOrigin",
                "TextCrashWriter", "terms", "Trials", "TestWidth",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "SyncEngineTests",
            dependencies: [
                "StoreCoreTesting", "SyncEngine", "StoreCore", "StoreFiles", "StoreOutbox", "StorePlatform", "LoopbackOrigin",
                "SyncCrashWriter", "mirror", "Trials", "TestWidth",
            ],
            swiftSettings: settings),
        // The examples that are tested as an app would be.
        .testTarget(
            name: "OrgsTests",
            dependencies: [
                "RemoteRoutingTesting", "StoreCoreTesting", "orgs", "stars", "StoreCore", "RemoteRouting", "Console", "Trials", "TestWidth",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PostgresCacherTests",
            dependencies: [
                "StoreCoreTesting", "PostgresCacher", "StoreCore", "fleet", "Trials",
                "TestWidth",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "LoopbackOriginTests",
            dependencies: ["LoopbackOrigin", "StoreCore", "StorePlatform", "Trials", "TestWidth"],
            swiftSettings: settings),
        // The inspector, with and without a browser.
        .testTarget(
            name: "InspectorTests",
            dependencies: [
                "StoreCoreTesting", "Inspector", "StoreCore", "StoreFiles", "StoreOutbox", "RemoteHTTP", "RemoteRouting",
                "RemoteRoutingTesting", "TextStore", "SyncEngine", "LoopbackOrigin", "tour", "Trials", "TestWidth",
            ],
            swiftSettings: settings),
        // The examples of the documentation, compiled and run, and a check that the documentation shows no others. The plugin writes the files
        // of the folder `Snippets` with the blocks of the articles and doc comments in place.
        .plugin(name: "SnippetPlugin", capability: .buildTool(), path: "Tests/Support/SnippetPlugin"),
        .testTarget(
            name: "DocumentationTests",
            dependencies: [
                "PostgresCacher",
                "RemoteRoutingTesting", "StoreCoreTesting", "StoreCore", "StoreFiles", "StoreOutbox", "StoreResilience", "TextStore",
                "RemoteRouting", "SyncEngine", "LoopbackOrigin", "Inspector",
                "hello", "Trials", "TestWidth",
            ],
            exclude: ["Snippets"], swiftSettings: settings, plugins: ["SnippetPlugin"]),

        // The benchmarks, and the functions of the allocator that they call.
        .executableTarget(
            name: "benchmarks",
            dependencies: [
                "StoreCore", "StoreFiles", "StoreOutbox", "StorePlatform", "RemoteRouting", "TextStore", "SyncEngine", "LoopbackOrigin",
                "Console", "Trials", "CHeapUsage",
                "SyncCrashWriter", "PostgresCacher", "PostgresShim", "Inspector",
            ],
            path: "Tests/Benchmarks", exclude: ["README.md", "Peers", "sizes"], swiftSettings: settings),
        .systemLibrary(name: "CHeapUsage", path: "Tests/Support/CHeapUsage"),
    ]
)

// `.ci/run`, `.ci/sanitize --quick` and `.ci/release` name the targets that they run, and the rest is left out.
if let names = Context.environment["STOREHOUSE_TARGETS"] {
    var needed = Set(names.split(separator: " ").map(String.init))
    var count = 0
    while count < needed.count {
        count = needed.count
        for target in package.targets where needed.contains(target.name) {
            for case .plugin(let name, _) in target.plugins ?? [] { needed.insert(name) }
            for dependency in target.dependencies {
                switch dependency {
                case .targetItem(let name, _), .byNameItem(let name, _): needed.insert(name)
                default: break
                }
            }
        }
    }
    package.targets.removeAll { !needed.contains($0.name) }
    package.products.removeAll { !(($0 as? Product.Library)?.targets.allSatisfy(needed.contains) ?? false) }
}
