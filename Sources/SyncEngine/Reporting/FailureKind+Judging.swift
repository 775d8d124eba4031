internal import Foundation
internal import StoreCore

extension FailureKind {
    /// Returns the kind of an error from its advice or its file system code; transient without either.
    init(judging error: any Error) {
        if let advice = error as? any FailureAdvising {
            self = advice.failureKind
        } else if error is CancellationError || (error as? URLError)?.code == .cancelled {
            self = .cancelled
        } else if let code = (error as? StoreError)?.underlyingError as? POSIXError ?? error as? POSIXError {
            self = FailureKind(code.code)
        } else if let error = error as? CocoaError, error.code == .fileWriteOutOfSpace || error.code == .fileWriteVolumeReadOnly {
            self = .fatal
        } else {
            self = .transient
        }
    }

    /// Classifies a file system error: a full, missing or read-only disk fails every item, a taken name only its own.
    private init(_ code: POSIXErrorCode) {
        switch code {
        case .ENOSPC, .EDQUOT, .EROFS, .EIO, .ENODEV, .ENXIO: self = .fatal
        case .EINTR, .EAGAIN, .EBUSY, .EMFILE, .ENFILE, .ENOMEM, .ETIMEDOUT, .ECONNRESET, .ECONNREFUSED, .ENETDOWN, .ENETUNREACH,
            .EHOSTUNREACH, .EPIPE:
            self = .transient
        default: self = .permanent
        }
    }
}
