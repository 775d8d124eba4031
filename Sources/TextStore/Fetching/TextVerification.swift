/// What a text store's own verification looks at.
public struct TextVerification: Sendable {
    /// The text; `nil` for a manifest.
    public var identifier: String?
    /// The version that the bytes are said to be.
    public var version: SemanticVersion?
    /// The bytes as the origin sent them.
    public var bytes: [UInt8]
}
