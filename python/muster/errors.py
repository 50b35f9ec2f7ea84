"""The exceptions of muster: one class for each code of a C++ absl::Status, as tf.errors has them.

Each is also the exception of Python's own that comes nearest, so `except ValueError` and `except TimeoutError` work."""

from __future__ import annotations

from typing import ClassVar


class Error(Exception):
    """What muster raises. `code` is the status code's name, `exit_code` what a task that ends by it exits with."""

    code: ClassVar[str] = "UNKNOWN"

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class CancelledError(Error):
    code = "CANCELLED"


class UnknownError(Error):
    code = "UNKNOWN"


class InvalidArgumentError(Error, ValueError):
    code = "INVALID_ARGUMENT"


class DeadlineExceededError(Error, TimeoutError):
    code = "DEADLINE_EXCEEDED"


class NotFoundError(Error, LookupError):
    code = "NOT_FOUND"


class AlreadyExistsError(Error):
    code = "ALREADY_EXISTS"


class PermissionDeniedError(Error, PermissionError):
    code = "PERMISSION_DENIED"


class ResourceExhaustedError(Error):
    code = "RESOURCE_EXHAUSTED"


class FailedPreconditionError(Error):
    code = "FAILED_PRECONDITION"


class AbortedError(Error):
    code = "ABORTED"


class OutOfRangeError(Error):
    code = "OUT_OF_RANGE"


class UnimplementedError(Error, NotImplementedError):
    code = "UNIMPLEMENTED"


class InternalError(Error):
    code = "INTERNAL"


class UnavailableError(Error, ConnectionError):
    code = "UNAVAILABLE"


class DataLossError(Error):
    code = "DATA_LOSS"


class UnauthenticatedError(Error):
    code = "UNAUTHENTICATED"


_CLASSES: dict[str, type[Error]] = {one.code: one for one in Error.__subclasses__()}


def of_status(code: str, message: str, exit_code: int) -> Error:
    """The exception of a status. The library calls it for everything that C++ throws as a muster::Error."""
    return _CLASSES.get(code, UnknownError)(message, exit_code)
