"""What is shown of shadows and stacks, of a store that somebody else filled too."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli.shadow_lines import shadow_row
from store import Element, Ref, Store
from tasks.errors import BadPayload
from tasks.shadows import attach_shadows

Cellar = Callable[..., tuple[int, str, str]]
FACTS: dict[str, Any] = {"layers": [1, 4], "alphas": [1.0, 0.5], "norms": [0.1, 0.2], "chunks": 3}
FIGURES = {"gain": 0.1, "rise": 0.0, "drift": 0.0}
HOST = Element("host", "tiny", b"{}", media="application/json")


def shadow(name: str, facts: dict[str, Any]) -> Element:
    return Element(
        *("shadow", name, name.encode()), media="text/plain", requires=(HOST.version,), facts=facts
    )


@pytest.fixture
def store(workplace: Path) -> Store:
    store = Store.create(f"file:{workplace / 'build' / 'store'}")
    store.publish([HOST, shadow("good", FACTS)], message="good")
    return store


@pytest.mark.parametrize(
    "changes",
    [
        {"layers": None},
        {"layers": [1]},
        {"layers": "14"},
        {"alphas": ["1", "1"]},
        {"alphas": [1.0, 1e300]},
        {"norms": [0.1, True]},
        {"norms": [0.1, 10**400]},
        {"chunks": "three"},
        {"stopped": 7},
        {"guard": FIGURES},
        {"selection": 1, "selection_naive": 1, "guard": 1, "guard_naive": 1},
        {"selection": {}, "selection_naive": {}, "guard": FIGURES, "guard_naive": FIGURES},
    ],
)
def test_a_shadow_whose_record_is_none_is_named_and_the_others_are_shown(
    cellar: Cellar, store: Store, changes: dict[str, Any]
) -> None:
    facts = {name: value for name, value in {**FACTS, **changes}.items() if value is not None}
    store.publish([shadow("odd", facts)], message="odd")
    code, out, err = cellar("anneal", "show", "odd")
    assert (code, out) == (5, ""), err
    assert "does not say what a shadow says of itself; write it again" in err
    code, out, err = cellar("anneal", "show")
    assert (code, [line.split()[0] for line in out.splitlines()]) == (5, ["shadow/good"])
    assert err.startswith("cellar: shadow/odd is left out, since shadow/odd@")
    assert len(err.splitlines()) == 1


def test_a_damaged_head_is_named_and_the_others_are_shown(
    cellar: Cellar, store: Store, workplace: Path
) -> None:
    [good] = [row.ref for row in store.catalog().rows("shadow")]
    attach_shadows(store, "reader", [good])
    attach_shadows(store, "broken", [good])
    lost = Ref("shadow/lost", "0" * 64)
    record = f'{{"format": 1, "host": "{HOST.ref}", "shadows": ["{lost}"]}}'.encode()
    [stray] = store.publish([Element("stack", "stray", record, media="application/json")], message="stray")
    store.move_head("stray", store.pin([stray], message="stray").id, expect=None)
    (workplace / "build" / "store" / "refs" / "heads" / "broken").write_bytes(b"{}")

    code, out, err = cellar("anneal", "show")
    assert code == 5
    assert [line.split()[0] for line in out.splitlines() if line] == [
        "shadow/good",
        "head:reader",
        "shadow/good",
    ]
    broken, missing = err.splitlines()
    assert "refs/heads/broken" in broken
    assert missing.startswith("cellar: head:stray is left out, since ")
    assert f"has no {lost}" in missing


def test_a_reference_that_the_store_lacks_is_no_crash(store: Store) -> None:
    [good] = [row.ref for row in store.catalog().rows("shadow")]
    assert shadow_row(store, str(good)).ref == good
    for ref in (Ref("shadow/lost", "0" * 64), Ref("shadow/other", good.version)):
        with pytest.raises(BadPayload, match="though it is named"):
            shadow_row(store, str(ref))
