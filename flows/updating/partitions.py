"""Which parts of a source a run is about: partitions by name, date or range, and worker shards by number."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta

from flows.errors import UsageError

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MONTH = re.compile(r"\d{4}-\d{2}")
_NUMBER = re.compile(r"\d{1,9}")
_RELATIVE = {"today": 0, "yesterday": 1}
_MOST = 10_000


def expand_partitions(texts: Sequence[str], at: datetime) -> list[str]:
    """The partitions that names, comma-separated lists and ranges `first..last` mean, each once, in order.

    A range is of days (2026-11-01..2026-11-30) or of months (2026-01..2026-11), both ends included. `today`
    and `yesterday` are days at the moment `at`, in its own time zone.

    Raises:
        UsageError: a range that is none, or one of more than 10,000 partitions.
    """
    names = [name for text in texts for part in text.split(",") for name in _named(part.strip(), at)]
    return list(dict.fromkeys(names))


def _named(text: str, at: datetime) -> list[str]:
    first, dots, last = (_day(part.strip(), at) for part in text.partition(".."))
    if not first:
        raise UsageError(f"{text!r} names no partition; write a name, a date, or a range first..last")
    if not dots:
        return [first]
    for pattern, members in ((_DAY, _days), (_MONTH, _months)):
        if pattern.fullmatch(first) and pattern.fullmatch(last):
            return _counted(text, members(first, last))
    raise UsageError(
        f"{text!r} is no range of partitions; write two days (2026-11-01..2026-11-30) or two months, or list "
        "the names, separated by commas"
    )


def _day(text: str, at: datetime) -> str:
    if text not in _RELATIVE:
        return text
    try:
        return (at.date() - timedelta(days=_RELATIVE[text])).isoformat()
    except OverflowError as error:
        raise UsageError(f"no day is {text} at {at.isoformat()}; give a later moment") from error


def _counted(text: str, names: Iterator[str]) -> list[str]:
    try:
        found = [name for _, name in zip(range(_MOST + 1), names, strict=False)]
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text!r} holds a date that is none ({error}); correct it") from error
    if not found:
        raise UsageError(f"{text!r} ends before it begins; write the earlier date first")
    if len(found) > _MOST:
        raise UsageError(f"{text!r} is longer than {_MOST:,} partitions; give shorter ranges")
    return found


def _days(first: str, last: str) -> Iterator[str]:
    day, end = date.fromisoformat(first), date.fromisoformat(last)
    while day <= end:
        yield day.isoformat()
        day += timedelta(days=1)


def _months(first: str, last: str) -> Iterator[str]:
    month, end = (date.fromisoformat(f"{text}-01") for text in (first, last))
    while month <= end:
        yield month.isoformat()[:7]
        month = (month + timedelta(days=31)).replace(day=1)


def shard_numbers(text: str, shards: int) -> set[int]:
    """The worker shards that numbers and ranges such as `1,3..9` mean; a range passes over even ones.

    Raises:
        UsageError: no number, an even one, or one that the corpus does not have.
    """
    found: set[int] = set()
    for part in text.split(","):
        first, dots, last = (piece.strip() for piece in part.partition(".."))
        if not _NUMBER.fullmatch(first) or (dots and not _NUMBER.fullmatch(last)):
            raise UsageError(f"{part.strip()[:60]!r} is no shard; write numbers and ranges, as in 1,3..9")
        one, other = int(first), int(last or first)
        if not one <= other < shards:
            raise UsageError(f"{part.strip()!r} is no shard of 0 to {shards - 1}; correct --shards")
        if not dots and one % 2 == 0:
            raise UsageError(f"shard {one} trains the codec and holds no memories; worker shards are odd")
        found.update(number for number in range(one, other + 1) if number % 2)
    if not found:
        raise UsageError(f"{text!r} names no worker shard; those are the odd ones")
    return found


def moment(text: str | None) -> datetime:
    """A time with its zone; the present one without a text.

    Raises:
        UsageError: the text is no such time.
    """
    if text is None:
        return datetime.now().astimezone()
    try:
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.astimezone()
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text!r} is no time; write e.g. 2026-11-30T02:00:00+01:00") from error
