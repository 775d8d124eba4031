#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore
internal import StoreFiles
internal import StorePlatform

extension FailureKind {
    /// Returns the kind of an error from its advice or its file system code; permanent for a file of another version, otherwise transient.
    init(judging error: any Error) {
        if let advice = error as? any FailureAdvising {
            self = advice.failureKind
        } else if (error as? StoreError)?.isOfOtherVersion == true {
            self = .permanent
        } else if error is CancellationError || error.isCanceledTransfer {
            self = .cancelled
        } else if let code = (error as? StoreError)?.underlyingError as? POSIXError ?? error as? POSIXError {
            self = FailureKind(errno: code.code.rawValue)
        } else if let error = error as? CocoaError, error.code == .fileWriteOutOfSpace || error.code == .fileWriteVolumeReadOnly {
            self = .fatal
        } else {
            self = .transient
        }
    }

    /// Classifies a file system error: a full, missing or read-only disk fails every item, a taken name only its own.
    private init(errno code: Int32) {
        switch code {
        case ENOSPC, EDQUOT, EROFS, EIO, ENODEV, ENXIO: self = .fatal
        case EINTR, EAGAIN, EBUSY, EMFILE, ENFILE, ENOMEM, ETIMEDOUT, ECONNRESET, ECONNREFUSED, ENETDOWN, ENETUNREACH,
            EHOSTUNREACH, EPIPE:
            self = .transient
        default: self = .permanent
        }
    }
}

extension Error {
    /// Whether this is `URLError.cancelled`, recognized by domain and code: naming the type would link all of Foundation on Linux.
    fileprivate var isCanceledTransfer: Bool { _domain == "NSURLErrorDomain" && _code == -999 }
}
