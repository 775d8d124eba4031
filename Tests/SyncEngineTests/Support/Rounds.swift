import Foundation

/// How many rounds a test of chance runs: a number that is quick, or as many as the environment says.
func rounds(_ usual: Int) -> Int {
    ProcessInfo.processInfo.environment["STOREHOUSE_SEEDS"].flatMap { Int($0) } ?? usual
}
