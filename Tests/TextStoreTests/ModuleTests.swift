import Testing
import TextStore
