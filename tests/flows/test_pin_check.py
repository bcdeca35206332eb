"""Pins are compared with the store: what is gone or damaged is said of the stage that named it."""

from pathlib import Path

import pytest

from flows.pin_check import check_pins
from flows.pins import Pin, Stage
from store import Ref, Store
from tests.store.samples import codec, memory


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(str(tmp_path / "store"))


@pytest.fixture
def pins(store: Store) -> dict[Stage, Pin]:
    """A codec, and a snapshot of three memories that need it."""
    width = codec()
    needing = [memory(number, requires=(width.version,)) for number in range(3)]
    [ref, *memories] = store.publish([width, *needing], message="four")
    snapshot = store.pin([ref, *memories], message="all").id
    return {
        "codec": Pin(stage="codec", refs=(str(ref),)),
        "memory": Pin(stage="memory", snapshot=snapshot),
        "snapshot": Pin(stage="snapshot", snapshot=snapshot),
    }


def test_what_several_pins_name_is_read_once(store: Store, pins: dict[Stage, Pin]) -> None:
    report = check_pins(store, pins)

    assert (report.elements, report.snapshots, report.problems) == (1, 1, ())
    assert report.bytes_read == store.snapshot(pins["memory"].snapshot or "").bytes + len(
        store.read(Ref.parse(pins["codec"].refs[0]))
    )


def test_an_element_that_was_never_here_is_a_problem_of_its_stage(
    store: Store, pins: dict[Stage, Pin]
) -> None:
    pins["core"] = Pin(stage="core", refs=("core/assembly@" + "5" * 64,), snapshot="6" * 64)

    report = check_pins(store, pins)

    assert [(one.stage, one.what.partition("@")[0][:13]) for one in report.problems] == [
        ("core", "core/assembly"),
        ("core", "snapshot 6666"),
    ]


@pytest.mark.parametrize("gone", [True, False])
def test_a_lost_or_flipped_pack_is_a_problem_of_every_stage_that_needs_it(
    store: Store, pins: dict[Stage, Pin], tmp_path: Path, gone: bool
) -> None:
    [pack] = (tmp_path / "store").glob("packs/*/*")
    data = bytearray(pack.read_bytes())
    data[120] ^= 1
    pack.unlink()
    if not gone:
        pack.write_bytes(data)

    report = check_pins(Store.open(store.url), pins)

    assert {one.stage for one in report.problems} == {"codec", "memory"} if gone else {"codec"}
