extension String {
    /// Returns the text with an escape, such as `\u{202E}`, for each character that would act on a terminal or reorder its surroundings.
    ///
    /// Escapes control characters (C0, DEL and C1), the separators of lines and paragraphs, and the marks, embeddings, overrides and
    /// isolates of bidirectional text (Unicode Standard Annex 9, "Explicit Directional Embedding and Override").
    package func escapedForDisplay(atMost limit: Int? = nil) -> String {
        let shown = limit.map { unicodeScalars.prefix($0) } ?? unicodeScalars[...]
        let isCut = shown.endIndex != unicodeScalars.endIndex
        // Almost every text is plain.
        guard isCut || shown.contains(where: \.actsOnDisplay) else { return self }
        var text = ""
        for scalar in shown {
            if scalar.actsOnDisplay {
                text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
        return isCut ? text + "…" : text
    }
}

extension Unicode.Scalar {
    /// Whether the character is invisible and changes how the text around it is shown.
    package var actsOnDisplay: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x61C, 0x200E, 0x200F, 0x2028, 0x2029, 0x202A...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
