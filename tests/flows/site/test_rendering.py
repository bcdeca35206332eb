"""Times, sizes and digests as a site prints them, whatever a record holds."""

import pytest

from flows.site.rendering import moment


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        ("2026-11-30T02:00:00+01:00", "2026-11-30 01:00"),
        ("2026-11-30T02:00:00", "2026-11-30 02:00"),
        ("0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00+23:59"),
        ("9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59-23:59"),
        ("soon", "soon"),
        (5, "5"),
        (None, "–"),
    ],
)
def test_a_time_is_printed_in_utc_and_what_is_none_as_it_is(time: object, shown: str) -> None:
    assert moment(time) == shown
