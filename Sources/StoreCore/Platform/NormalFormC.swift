extension String {
    /// The string in Unicode's normal form C (UAX #15), in which canonically equivalent strings have equal bytes.
    package var normalFormC: String {
        if utf8.allSatisfy({ $0 < 0x80 }) { return self }
        // Foundation's mapping is not part of FoundationEssentials and would link the data of ICU (about 40 MB) into static programs. On
        // Linux, Foundation also leaves a Hangul syllable beside its final consonant. The standard library composes every string that it
        // hashes or compares; this underscored property exposes the result. It can go when the standard library gets a public one.
        return String(decoding: _nfcCodeUnits, as: UTF8.self)
    }
}
