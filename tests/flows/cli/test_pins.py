"""`cellar pins` lists what the stages left, and `cellar pins verify` fails when it is gone."""

import json
from collections.abc import Callable
from pathlib import Path

from flows.pins import Pin, write_pin
from store import Store
from tests.store.samples import codec

Cellar = Callable[..., tuple[int, str, str]]


def leave_a_pin() -> Pin:
    [ref] = Store.create("build/store").publish([codec()], message="one")
    pin = Pin(stage="codec", refs=(str(ref),))
    write_pin(Path("pins"), pin)
    return pin


def test_pins_are_listed_with_what_they_name(cellar: Cellar) -> None:
    pin = leave_a_pin()

    assert cellar("pins")[:2] == (0, f"codec  {pin.refs[0]}\n")
    assert json.loads(cellar("pins", "--json")[1]) == {"codec": pin.model_dump(mode="json")}


def test_a_pin_whose_object_is_gone_fails_with_its_stage(cellar: Cellar, workplace: Path) -> None:
    leave_a_pin()
    assert cellar("pins", "verify")[0] == 0
    for pack in (workplace / "build" / "store").glob("packs/*/*"):
        pack.unlink()

    code, out, err = cellar("pins", "verify")

    assert code == 5
    assert "codec: codec/c@" in out
    assert err.startswith("cellar: pins name what file:")
    assert "(stages: codec)" in err
    assert "--repair" in err


def test_a_folder_without_pins_says_which_command_makes_them(cellar: Cellar) -> None:
    code, _, err = cellar("pins", "verify")

    assert code == 2
    assert "run `cellar corpus build` or `cellar demo` first" in err
