@testable import StoreCore

// The searches with the commands of an outbox.

extension ModelSetting {
    /// Settings with the commands of an outbox.
    static let commands: [ModelSetting] = [
        ModelSetting("commands", world: [.commands, .failures, .late], needs: [.content, .refresh, .acceptedContent], observers: 1),
        ModelSetting(
            "commands and mutations", world: [.commands, .patches], needs: [.acceptedContent, .refresh], observers: 1, callers: 1),
        ModelSetting(
            "commands with responses", expiry: 2, world: [.commands, .responses, .validators], needs: [.content, .refresh], observers: 1,
            callers: 1),
        ModelSetting(
            "commands and writing", world: [.commands, .writes, .faults], needs: [.acceptedContent, .refresh], observers: 1, callers: 1),
        ModelSetting(
            "commands and clearing the store", world: [.commands, .writes, .clearAll, .noStore], needs: [.acceptedContent], callers: 1),
        ModelSetting(
            "commands and paging", isList: true, world: [.commands, .responses], needs: [.page(.next, continueWhenError: true), .refresh],
            observers: 1, callers: 1),
        ModelSetting("three commands", world: [.commands], needs: [.acceptedContent, .refresh], observers: 1, callers: 1, patches: 3),
        ModelSetting(
            "commands without a fetch afterwards", expiry: 2, world: [.commands, .responses, .writes], needs: [.content], observers: 1,
            callers: 1, policy: StorePolicy(revalidatesAfterMutation: false)),
        ModelSetting(
            "commands and all other events", expiry: 2, world: .all.union(.commands), policy: StorePolicy(staleIfError: .seconds(2))),
    ]

    /// Histories that lead to states with commands in which more can go wrong than at the beginning.
    static let commandPreludes: [[ModelEvent]] = {
        let observed: [ModelEvent] = [
            .join(forces: false), .read(succeeds: true), .fetched(nil, .modified), .saved(succeeds: true), .command, .begin(0),
        ]
        return [
            observed,
            observed + [.arrive(.refresh), .fetched(nil, .modified), .saved(succeeds: true)],
            observed + [.command, .begin(1), .deliver(1, responds: false)],
            observed + [.deliver(0, responds: false), .kill],
            observed + [.deliver(0, responds: false), .saved(succeeds: true), .kill],
            observed + [.leave, .clear, .saved(succeeds: true)],
        ]
    }()
}
