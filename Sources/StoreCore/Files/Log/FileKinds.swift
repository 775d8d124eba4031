// The logs and the sealed files on disk. Two further formats are the records of a `FileCacher`, which can be read without their content,
// and the notes in the files of leases.

extension LogFormat {
    /// The commands of an outbox.
    package static let outbox = LogFormat("SHoutbox", version: 2, noun: "the log of an outbox")
    /// The changes of a directory that several processes share.
    package static let changes = LogFormat("SHchange", version: 2, noun: "the list of changes of a shared directory")
    /// The files that a mirror has installed.
    package static let mirror = LogFormat("SHmirror", version: 1, noun: "the journal of a mirror")
    /// The floors of a session's texts, or the places of its texts.
    package static let texts = LogFormat("SHjotext", version: 1, noun: "a journal of texts")

    package static let all = [outbox, changes, mirror, texts]
}

extension SealedFile {
    /// A text, a manifest, or the acceptances of a session.
    package static let session = SealedFile("SHtext01", version: 1, temporaryKind: "text")
    /// The origin of the bytes in a partial download.
    package static let part = SealedFile("SHpartof", version: 1, temporaryKind: "part")
    /// A list of files, and the token of its state.
    package static let list = SealedFile("SHlistof", version: 1, temporaryKind: "list")

    package static let all = [session, part, list]
}
