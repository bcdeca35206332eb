"""Slow states in a store: found by name or reference, bound to their host, refused when forged."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings

from store import Element, Ref, Store
from store.errors import ElementNotFound
from tasks.errors import BadPayload, Diverged
from tasks.larc import (
    SlowState,
    encode_residual,
    load_residual,
    new_slow_state,
    open_residual,
    residual_element,
)
from tasks.payload import pack_tensors
from tests.tasks.forging import changed_header, forged
from tests.tasks.larc.conftest import WIDTH

HOST = Ref("core/host", "ab" * 32)
SLOW = replace(new_slow_state(WIDTH, seed=3, insertion=1), version=256, B_Dr=torch.ones(WIDTH, 4))


def same(one: SlowState, two: SlowState) -> bool:
    return (
        torch.equal(one.A_rD, two.A_rD)
        and torch.equal(one.B_Dr, two.B_Dr)
        and (one.version, one.insertion) == (two.version, two.insertion)
    )


def test_a_slow_state_comes_back_as_it_was(tmp_path: Path) -> None:
    store = Store.create(f"file:{tmp_path}/store")
    host = Element("core", "host", b"stands for one", media="text/plain")
    element = residual_element("a/static-1", SLOW, host=host.ref, provenance={"recipe": "r"}, facts={"x": 1})
    again = residual_element("residual/a/static-1", SLOW, host=host.ref, provenance={"recipe": "r"})
    assert again.ref == element.ref
    store.publish([host, element], message="a residual")
    for what in (element.ref, "a/static-1", "residual/a/static-1"):
        ref, found = open_residual(store, what, host=host.ref, width=WIDTH)
        assert ref == element.ref
        assert same(found, SLOW)
    assert element.requires == (host.version,)
    assert element.facts == {"rank": 4, "insertion": 1, "updates": 256, "x": 1}
    with pytest.raises(ElementNotFound, match="has no residual/other; train one"):
        open_residual(store, "other", host=host.ref, width=WIDTH)
    with pytest.raises(BadPayload, match="not abababababab; open it with that host"):
        open_residual(store, element.ref, host=HOST, width=WIDTH)


def test_equal_states_give_equal_bytes() -> None:
    assert encode_residual(SLOW, HOST.version) == encode_residual(replace(SLOW), HOST.version)


def _record(**changes: object) -> dict[str, object]:
    return {
        "host": HOST.version,
        "rank": 4,
        "width": WIDTH,
        "outputs": WIDTH,
        "insertion": 0,
        "version": 1,
        "scale": 1,
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rank": 5}, "A of the residual is torch.float32"),
        ({"rank": 10**9}, "rank: Input should be less than"),
        ({"scale": 2}, "scale"),
        ({"version": -1}, "version"),
        ({"host": "x"}, "host"),
        ({"more": 1}, "more"),
        ({"width": 64, "outputs": 64}, "is 64 wide and its host 32"),
    ],
)
def test_a_record_that_does_not_fit_is_refused(changes: dict[str, object], said: str) -> None:
    tensors = {"A": SLOW.A_rD, "B": SLOW.B_Dr}
    payload = pack_tensors(tensors, what="residual", record=_record(**changes))
    with pytest.raises(BadPayload, match=said):
        load_residual(payload, host=HOST.version, width=WIDTH)


@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_factors_that_are_not_finite_are_refused(number: float) -> None:
    B_Dr = SLOW.B_Dr.clone()
    B_Dr[3, 1] = number
    with pytest.raises(Diverged, match="after 256 updates are not finite"):
        encode_residual(replace(SLOW, B_Dr=B_Dr), HOST.version)
    payload = pack_tensors({"A": SLOW.A_rD, "B": B_Dr}, what="residual", record=_record())
    with pytest.raises(BadPayload, match="B of the residual holds a number that is not finite"):
        load_residual(payload)


def test_factors_of_another_type_are_refused() -> None:
    tensors = {"A": SLOW.A_rD.double(), "B": SLOW.B_Dr}
    with pytest.raises(BadPayload, match="float64"):
        load_residual(pack_tensors(tensors, what="residual", record=_record()))


@given(payload=forged(encode_residual(SLOW, HOST.version), changed_header))
@settings(max_examples=150, deadline=None)
def test_whatever_a_payload_holds_it_loads_or_is_refused(payload: bytes) -> None:
    try:
        slow = load_residual(payload)
    except BadPayload:
        return
    assert slow.A_rD.isfinite().all()
    assert slow.B_Dr.shape == slow.A_rD.mT.shape
