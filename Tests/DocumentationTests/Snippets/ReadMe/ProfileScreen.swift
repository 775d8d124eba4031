internal import StoreCore

#if canImport(SwiftUI)
internal import SwiftUI
#endif

//: README.md: struct ProfileScreen
