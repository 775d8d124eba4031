import Testing
import SyncEngine
