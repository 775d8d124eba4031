internal import StoreCore

extension Experiment {
    /// Measures a call that only queues: the figure is the caller's time, and the queue is dropped with its store.
    static let prefetch = Experiment(.reading, "prefetch", "prefetch of 300 000 keys: time for the caller") { _ in
        [
            .floor {
                let watch = Stopwatch()
                let keys = Array(0..<300_000)
                let elapsed = watch.nanoseconds
                blackHole(keys.count)
                return [elapsed]
            },
            .storehouse {
                let store = Store(cacher: MemoryCacher<Int, User>()) { User(id: $0) }
                let watch = Stopwatch()
                store.prefetch(0..<300_000)
                return [watch.nanoseconds]
            },
        ]
    }
}
