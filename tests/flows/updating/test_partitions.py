"""Partitions and shards as people name them."""

from datetime import datetime, timedelta, timezone

import pytest

from flows.errors import UsageError
from flows.updating.partitions import expand_partitions, moment, shard_numbers

AT = datetime(2026, 3, 1, 0, 30, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["news"], ["news"]),
        (["b,a", "a"], ["b", "a"]),
        (["2026-02-27..2026-03-01"], ["2026-02-27", "2026-02-28", "2026-03-01"]),
        (["2025-11..2026-02"], ["2025-11", "2025-12", "2026-01", "2026-02"]),
        (["2026-01-31..2026-01-31"], ["2026-01-31"]),
        (["today"], ["2026-03-01"]),
        (["yesterday..today"], ["2026-02-28", "2026-03-01"]),
    ],
)
def test_partitions_are_names_days_months_and_ranges(texts: list[str], names: list[str]) -> None:
    assert expand_partitions(texts, AT) == names


def test_a_day_is_that_of_the_zone_of_the_moment() -> None:
    utc = AT.astimezone(timezone.utc)  # noqa: UP017 - beside the zone above
    assert expand_partitions(["today"], AT) == ["2026-03-01"]
    assert expand_partitions(["today"], utc) == ["2026-02-28"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no partition"),
        ("a..b", "is no range"),
        ("2026-01..2026-01-31", "is no range"),
        ("2026-02-28..2026-02-30", "a date that is none"),
        ("2026-03-01..2026-02-01", "ends before it begins"),
        ("0001-01-01..9999-12-31", "longer than 10,000"),
    ],
)
def test_what_is_no_partition_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        expand_partitions([text], AT)


def test_shards_are_numbers_and_ranges_that_pass_over_those_of_the_codec() -> None:
    assert shard_numbers("1,4..9", 16) == {1, 5, 7, 9}


@pytest.mark.parametrize(
    "text", ["2", "x", "1..", "17", "9..3", "2..2,", "4..4", "9" * 5000, "1..9" + "9" * 99]
)
def test_what_is_no_worker_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="shard"):
        shard_numbers(text, 16)


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00", "9999-12-31T23:59:59"])
@pytest.mark.parametrize("zone", ["+23:59", "-23:59"])
def test_today_is_there_also_at_the_ends_of_the_calendar(time: str, zone: str) -> None:
    assert expand_partitions(["today"], moment(time + zone)) == [time.partition("T")[0]]


def test_no_day_is_before_the_first() -> None:
    with pytest.raises(UsageError, match="no day is yesterday"):
        expand_partitions(["yesterday"], moment("0001-01-01T00:00:00Z"))
