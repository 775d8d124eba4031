internal import StoreCore
import StoreCoreTesting
internal import SyncEngine
internal import Testing
import Trials

// The examples of the article on testing a synchronization.

@Suite(.timeLimit(.minutes(hangMinutes)))
struct NoteProcessorTests {
    //: TestingASynchronization.md: let time = ManualTime

    //: TestingASynchronization.md: @Test func `a sync adds

    //: TestingASynchronization.md: @Test func `a plan lists

    //: TestingASynchronization.md: @Test func `a transient

    //: TestingASynchronization.md: @Test func `an empty list
}
