"""The checks in the order in which they are made: permissions, conditions, objects, kind of storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from store.backend import Backend
from store.backend.local import LocalBackend
from store.doctor import conditions, objects
from store.doctor.clock import clock_check
from store.doctor.folder import TRIALS as FOLDER_TRIALS
from store.doctor.ground import Ground
from store.doctor.permissions import DENIED, permissions
from store.doctor.report import ESSENTIAL, Check, Status
from store.errors import AnswerLost, KeyMissing, StorageUnavailable

if TYPE_CHECKING:
    from store.backend.s3 import S3Backend

Trial = Callable[[Ground], str]
"""Tries one thing and returns what is wrong with it, or "" if nothing is."""

TRIALS: dict[str, tuple[Trial, str]] = {
    "create": (conditions.create_is_enforced, "a key is created once"),
    "replace": (conditions.replace_is_enforced, "only the fresh ETag replaces"),
    "replace-absent": (conditions.replace_needs_the_key, "what does not exist is not replaced"),
    "create-race": (conditions.racing_creates_have_one_winner, "of simultaneous creates one wins"),
    "create-race-two": (
        conditions.racing_creates_of_two_keys_have_two_winners,
        "of simultaneous creates of two keys one wins each",
    ),
    "replace-race": (conditions.racing_replaces_have_one_winner, "of simultaneous replacements one wins"),
    "read-after-write": (objects.reads_see_writes, "reads see what was written and deleted"),
    "list-after-write": (objects.listings_see_writes, "listings see what was written and deleted"),
    "ranges": (objects.ranges_are_exact, "parts of objects are read exactly"),
}
_BEARABLE = frozenset({"case"})


def examine(ground: Ground) -> Iterator[Check]:
    """Make every check that this identity's permissions allow."""
    allowed = set()
    for check in permissions(ground):
        if check.status == "ok":
            allowed.add(check.name)
        yield check
    if not allowed.issuperset(ESSENTIAL):
        yield Check("conditions", "warn", "not checked, since this identity lacks permissions for it")
        return
    for name, (trial, sentence) in TRIALS.items():
        yield _tried(name, trial, ground, sentence)
    s3 = _s3(ground.backend)
    yield clock_check(ground, s3)
    if s3 is not None:
        from store.doctor.bucket import bucket_checks

        yield from bucket_checks(s3, ground)
    if isinstance(ground.backend, LocalBackend):
        folder = ground.backend.root / ground.prefix
        for name, (look, sentence) in FOLDER_TRIALS.items():
            problem = look(folder)
            worst: Status = "warn" if name in _BEARABLE else "fail"
            yield Check(name, worst if problem else "ok", problem or sentence)


def _tried(name: str, trial: Trial, ground: Ground, sentence: str) -> Check:
    """Make one check; an error that has nothing to do with it ends the examination."""
    try:
        problem = trial(ground)
    except KeyMissing:
        problem = "an object that was just written is not there"
    except DENIED as error:
        return Check(name, "warn", f"not checked: {error}")
    except AnswerLost as error:
        raise StorageUnavailable(f"{error}; run `cellar doctor` again") from error
    return Check(name, "fail" if problem else "ok", problem or sentence)


def _s3(backend: Backend) -> S3Backend | None:
    if not backend.url.startswith("s3:"):
        return None
    from store.backend.s3 import S3Backend  # boto3 takes a third of a second to import

    return backend if isinstance(backend, S3Backend) else None
