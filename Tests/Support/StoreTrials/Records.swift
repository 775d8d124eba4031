import Foundation
package import StoreCore

package func record<Content>(_ content: Content, at seconds: Double = 1000) -> CacheRecord<Content> {
    CacheRecord(content: content, fetchedAt: Date(timeIntervalSinceReferenceDate: seconds))
}
