import Testing
import RemoteRouting
