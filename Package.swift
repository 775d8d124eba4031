// swift-tools-version: 6.2
import PackageDescription

/// One list for every target: what is strict in one folder is strict in all of them.
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
    products: [
        .library(name: "StoreCore", targets: ["StoreCore"]),
        .library(name: "TextStore", targets: ["TextStore"]),
        .library(name: "RemoteRouting", targets: ["RemoteRouting"]),
        .library(name: "SyncEngine", targets: ["SyncEngine"]),
    ],
    dependencies: [],
    targets: [
        // The framework: three modules on one core, none of which knows another.
        .target(name: "StoreCore", swiftSettings: settings),
        .target(name: "TextStore", dependencies: ["StoreCore"], swiftSettings: settings),
        .target(name: "RemoteRouting", dependencies: ["StoreCore"], swiftSettings: settings),
        .target(name: "SyncEngine", dependencies: ["StoreCore"], swiftSettings: settings),

        // What the tests build on: a client that has the main actor as its default isolation.
        .target(
            name: "MainActorClient", dependencies: ["StoreCore"], path: "Tests/Support/MainActorClient",
            swiftSettings: settings + [.defaultIsolation(MainActor.self)]),
        // A process that saves records and is killed meanwhile.
        .executableTarget(name: "CrashWriter", dependencies: ["StoreCore"], path: "Tests/Support/CrashWriter", swiftSettings: settings),
        .testTarget(name: "StoreCoreTests", dependencies: ["StoreCore", "MainActorClient", "CrashWriter"], swiftSettings: settings),
    ]
)
