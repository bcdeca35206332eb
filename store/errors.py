"""The error tree of the whole project, grouped by what the caller can do next.

Every message is one sentence that says what happened, where, and what to do. `exit_code` is what the
command line returns for the class; the codes are part of the public contract:

    1 a bug                     5 integrity: wrong bytes, missing data
    2 bad input                 6 storage unavailable: unreachable, read-only, full
    3 configuration             7 conflict: somebody else was first, or the outcome is unknown
    4 not found                 8 a quality threshold was not met        130 interrupted

Constructors take the message only, so that errors survive the trip between processes.
"""

from __future__ import annotations

from typing import ClassVar


class CellarError(Exception):
    """Root of every error that the project raises on purpose."""

    exit_code: ClassVar[int] = 1


class InputError(CellarError, ValueError):
    """Something the caller passed in is wrong: fix the input and run again."""

    exit_code = 2


class InvalidName(InputError):
    """An element, build, tag or head name breaks the naming rules."""


class InvalidRecord(InputError):
    """A record holds a value that has no canonical JSON form."""


class InvalidPayload(InputError):
    """A payload is not what its media type says, or is larger than the store accepts."""


class MissingRequirement(InputError):
    """A set was chosen without a version that one of its elements requires; nothing is damaged."""


class ConfigurationError(CellarError):
    """The store address, its credentials or its format do not fit: fix the configuration."""

    exit_code = 3


class InvalidURL(ConfigurationError):
    """A store URL is neither `file:` nor `s3://bucket/prefix`."""


class BucketMissing(ConfigurationError):
    """The bucket of an `s3://` URL does not exist at the endpoint."""


class CredentialsError(ConfigurationError):
    """Credentials are missing, incomplete, expired or not accepted."""


class NotAStore(ConfigurationError):
    """There is no store at the URL, or something else is there."""


class StoreExists(ConfigurationError):
    """A store was to be created where one already is."""


class UnsupportedFormat(ConfigurationError):
    """The store was written in a format that this version cannot read."""


class NotFoundError(CellarError, LookupError):
    """A named thing does not exist in the store."""

    exit_code = 4


class ElementNotFound(NotFoundError):
    """No element or version of that name is visible."""


class SnapshotNotFound(NotFoundError):
    """No snapshot, tag or head answers to that name."""


class HoldNotFound(NotFoundError):
    """No hold answers to that name."""


class KeyMissing(NotFoundError):
    """The backend holds no object under that key."""


class IntegrityError(CellarError):
    """Stored bytes are not the bytes that were published: nothing was returned."""

    exit_code = 5


class StorageUnavailable(CellarError):
    """The storage cannot serve the request now: repair access and run again."""

    exit_code = 6


class Unreachable(StorageUnavailable):
    """The endpoint does not answer."""


class AccessDenied(StorageUnavailable):
    """The storage refuses the operation to this identity."""


class ReadOnly(StorageUnavailable):
    """The folder cannot be written."""


class DiskFull(StorageUnavailable):
    """No space is left where the store writes."""


class ConflictError(CellarError):
    """Somebody else changed the same name first, or the outcome is not known."""

    exit_code = 7


class KeyExists(ConflictError):
    """A create-only write found an object under its key (HTTP 412)."""


class TokenMismatch(ConflictError):
    """An If-Match write found another content than the one it expected (HTTP 412)."""


class Contended(ConflictError):
    """The storage met another conditional write in flight: try the same write again (HTTP 409)."""


class AnswerLost(ConflictError):
    """A conditional write was sent and may have landed, but no answer arrived."""


class TagExists(ConflictError):
    """A tag of that name already points to another snapshot."""


class HeadMoved(ConflictError):
    """A head no longer points where the caller expected."""


class HoldExists(ConflictError):
    """A hold of that name keeps another snapshot."""


class CollectorBusy(ConflictError):
    """Another garbage collection is, or may still be, at work on the store."""


class ClaimHeld(ConflictError):
    """Another run works on the same thing at this moment."""


class CommitStateUnknown(ConflictError):
    """A conditional write may or may not be visible: look before writing again."""


class ThresholdNotMet(CellarError):
    """A result is below the quality that the parameters demand."""

    exit_code = 8
