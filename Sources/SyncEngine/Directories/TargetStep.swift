/// What a pass does with a directory, told to a test just before it happens; a test that throws makes the step fail.
enum TargetStep: Hashable, Sendable {
    /// A directory below the root is listed.
    case lists(String)
    /// A file that is there is read, to be compared.
    case reads(String)
    /// Bytes of a file are written beside its place.
    case writes(String)
    /// A file is brought to the disk by itself.
    case synchronizes(String)
    /// Everything that was written is brought to the disk.
    case flushBegins
    /// Everything that was written before is on the disk.
    case flushEnds
    /// A file that has arrived takes its name.
    case renames(String)
    /// It has it now.
    case renamed(String)
}
