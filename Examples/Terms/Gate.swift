import Foundation
import StoreCore
import TextStore

/// An app's gate: it opens after the user has accepted the current texts.
struct Gate {
    let store: TextStore
    let screen: Screen
    /// The account that accepts; `nil` for the user of the device.
    var account: String?
    /// The answer to every question; `nil` to ask.
    var answer: Bool?

    /// Shows each text that needs acceptance, and asks; returns whether all texts are accepted.
    func open(_ identifiers: [String]) async -> Bool {
        var closed: [String] = [], isAvailable = true
        for identifier in identifiers {
            do {
                if try await !pass(identifier) { closed.append(identifier) }
            } catch {
                screen.warning("\(identifier): \(Mistake.reason(of: error))")
                closed.append(identifier)
                isAvailable = false
            }
        }
        if closed.isEmpty {
            screen.good("the gate is open\n")
        } else {
            let remedy = isAvailable ? "; answer y, or pass --accept" : ""
            screen.warning("the gate stays closed, because of \(closed.joined(separator: ", "))\(remedy)\n")
        }
        return closed.isEmpty
    }

    private func pass(_ identifier: String) async throws -> Bool {
        let first = try? await store.text(for: identifier)
        if let first { screen.good("available at once: \(name(first)), \(origin(first))") }
        let newest = try await store.text(for: identifier, awaiting: .remote(timeout: .seconds(5)))
        if newest.version != first?.version || newest.language != first?.language {
            screen.good("now available: \(name(newest)), \(origin(newest))")
        }
        if let reason = newest.fallbackReason {
            screen.warning("\(name(newest)) may not be the newest text: \(reason.message)")
        }
        if newest.isBelowFloor { screen.warning("\(name(newest)) is older than a text that was shown before") }
        // Unreadable acceptances count as missing, so the gate asks again.
        let accepted = try? await store.acceptance(of: identifier, account: account)
        guard await store.needsAcceptance(of: newest, account: account) else {
            screen.good("\(name(newest)) needs no acceptance: \(accepted.map(describe) ?? "it was accepted")")
            return true
        }
        if let accepted, accepted.language == newest.language, let wording = try? await wording(of: accepted) {
            let difference = TextDifference(from: wording, to: newest.text)
            screen.good("\(describe(accepted)); \(difference.isEmpty ? "the wording is the same" : "since then:")")
            if !difference.isEmpty { screen.show(difference) }
        } else {
            screen.show(newest.text)
        }
        let question = "Do you accept \(name(newest))?"
        guard let isAccepted = answer ?? screen.ask(question) else {
            screen.warning("\(name(newest)) was not accepted: there was no answer")
            return false
        }
        guard isAccepted else {
            screen.warning("\(name(newest)) was declined")
            return false
        }
        // Accepts exactly the shown text, because a newer one may become current while the user reads it.
        try await store.accept(newest, account: account)
        screen.good("\(name(newest)) is accepted, and the acceptance is saved")
        return true
    }

    /// Returns the accepted text from the evidence; `nil` if the evidence does not have it.
    private func wording(of accepted: Acceptance) async throws -> String? {
        try await store.acceptanceRecords().last { $0.acceptance.digest == accepted.digest }?.wording
    }

    private func describe(_ accepted: Acceptance) -> String {
        let version = "version \(accepted.version?.description ?? "without a number")" + (accepted.language.map { " (\($0))" } ?? "")
        return "\(version) was accepted at \(accepted.date.formatted(.iso8601))"
    }

    private func name(_ text: VersionedText) -> String {
        "\(text.identifier) \(text.version?.description ?? "without a number")" + (text.language.map { " (\($0))" } ?? "")
    }

    private func origin(_ text: VersionedText) -> String {
        switch text.origin {
        case .bundle: "which came with the app"
        case .cache: "saved by an earlier start"
        case .remote: text.isVerified ? "from the publisher, with the digest of its manifest" : "from the publisher"
        }
    }
}
