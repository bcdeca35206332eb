"""How far the storage's clock is from this machine's: grace periods and leases count by the storage's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from store.doctor.ground import Ground
from store.doctor.report import Check
from store.errors import KeyMissing

if TYPE_CHECKING:
    from store.backend.s3 import S3Backend

MOST_SKEW = timedelta(minutes=5)
"""S3 refuses requests from 15 minutes on."""


def clock_check(ground: Ground, s3: S3Backend | None) -> Check:
    """Compare clocks by the time of a new object and, on S3, by the `Date` of an answer."""
    skew = _by_object(ground)
    if s3 is not None:
        skew = max(skew, _by_answer(s3, ground), key=abs)
    seconds = abs(skew) // timedelta(seconds=1)
    if abs(skew) <= MOST_SKEW:
        return Check("clock", "ok", f"the storage's clock and this machine's differ by {seconds} s")
    where = "ahead of" if skew > timedelta(0) else "behind"
    return Check(
        "clock",
        "warn",
        f"the storage's clock is {seconds} s {where} this machine's; set the wrong one right, because "
        "requests are refused from 15 minutes on",
    )


def _by_object(ground: Ground) -> timedelta:
    key = ground.key("clock")
    before = datetime.now(UTC)
    ground.backend.put(key, ground.body())
    after = datetime.now(UTC)
    info = ground.backend.info(key)
    if info is None:
        raise KeyMissing(f"{key} is gone right after it was written")
    return _outside(info.modified, before, after)


def _by_answer(s3: S3Backend, ground: Ground) -> timedelta:
    before = datetime.now(UTC)
    answer = s3.client.head_object(Bucket=s3.bucket, Key=s3.prefix + ground.key("clock"))
    after = datetime.now(UTC)
    text = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    return _outside(parsedate_to_datetime(text), before, after) if text else timedelta(0)


def _outside(shown: datetime, before: datetime, after: datetime) -> timedelta:
    """How far `shown`, given in whole seconds, lies outside the span in which it was taken."""
    if shown > after:
        return shown - after
    return min(timedelta(0), shown + timedelta(seconds=1) - before)
