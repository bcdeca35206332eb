"""What is attached is kept at a head, in order and by version, and taken off again without a trace."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from store import Element, Ref, Store, canonical_json
from store.errors import ElementNotFound, HeadMoved, IntegrityError, SnapshotNotFound
from tasks.errors import BadPayload, BadStack, UnfitHost
from tasks.hosts import Host
from tasks.shadows import (
    attach_shadows,
    check_written_on,
    detach_shadows,
    load_stack,
    new_shadow,
    open_stack,
    shadow_element,
    stack_refs,
    stacks,
    standing_on,
)


def publish(store: Store, host: Host, name: str, seed: int) -> Ref:
    zero = new_shadow(host, (1, 4), document="ab" * 32, seeds={})
    draws = torch.Generator().manual_seed(seed)
    full = replace(zero, deltas=tuple(0.1 * torch.randn(d.shape, generator=draws) for d in zero.deltas))
    [ref] = store.publish([shadow_element(name, full, host=host.ref)], message=name)
    return ref


@torch.no_grad()
def logits(host: Host) -> Tensor:
    return host.model(torch.tensor([host.encode("the third cask")])).logits


def test_what_is_attached_stays_in_order_and_is_found_by_its_head(store: Store, host: Host) -> None:
    one, two = (publish(store, host, name, seed) for seed, name in enumerate(("one", "two")))
    first = attach_shadows(store, "reader", [two])
    kept = attach_shadows(store, "reader", [one])
    assert kept.stack.shadows == (two, one)
    assert open_stack(store, "head:reader") == kept
    assert store.head("reader") == kept.snapshot != first.snapshot
    assert stack_refs(store, ["head:reader"]) == (two, one)
    assert stacks(store) == {"reader": kept.stack}
    names = {row.name for row in store.snapshot("head:reader").rows()}
    assert names == {"host/tiny", "shadow/one", "shadow/two", "stack/reader"}
    [*_, last] = store.head_log("reader")
    assert (last.note.action, last.note.why) == ("attach", "attach one")


def test_one_that_is_named_twice_is_refused_where_it_would_be_added_twice(store: Store, host: Host) -> None:
    one, two = (publish(store, host, name, seed) for seed, name in enumerate(("one", "two")))
    attach_shadows(store, "reader", [one, two])
    for names in (["one", "two", "one"], ["head:reader", "two"], [one, "one"]):
        with pytest.raises(BadStack, match=r"shadow/(one|two) is named twice, and would be added twice"):
            stack_refs(store, names)
    assert stack_refs(store, ["head:reader", "two"], repeated=True) == (one, two, two)
    assert attach_shadows(store, "reader", [one, one]).stack.shadows == (one, two)


def test_what_was_written_once_is_refused_where_it_would_be_added_twice(store: Store, host: Host) -> None:
    zero = new_shadow(host, (1, 4), document="ab" * 32, seeds={})
    full = publish(store, host, "one.written", 0)

    def derived(name: str, search: int, **provenance: object) -> Ref:
        element = shadow_element(
            name,
            replace(zero, seeds={"search": search}),
            host=host.ref,
            requires=(full.version,),
            provenance=provenance,
        )
        [ref] = store.publish([element], message=name)
        return ref

    old, new, other = (
        derived(name, search, written=str(full)) for search, name in enumerate(("one", "one", "other"))
    )
    foreign = publish(store, host, "two", 5)
    kept = attach_shadows(store, "reader", [old, foreign])
    assert attach_shadows(store, "reader", [new]).stack.shadows == (
        new,
        foreign,
    )  # it takes the old one's place
    attach_shadows(store, "reader", [old])
    for refs, said in (
        ([full], "shadow/one@.* was made from shadow/one.written@"),
        ([other], "shadow/one@.* and shadow/other@.* were both made from shadow/one.written@"),
    ):
        with pytest.raises(BadStack, match=f"{said}.*added twice; take one of them"):
            attach_shadows(store, "reader", refs)
        with pytest.raises(BadStack, match=said):
            stack_refs(store, ["head:reader", *map(str, refs)])
    assert open_stack(store, "head:reader") == kept
    with pytest.raises(BadStack, match=r"were both made from shadow/one.written@"):
        stack_refs(store, ["head:reader", "one"])
    rewritten = publish(store, host, "two", 6)
    with pytest.raises(BadStack, match="are two versions of one shadow"):
        stack_refs(store, ["head:reader", "two"])
    again = derived("two", 9, onto=[str(rewritten)])
    assert stack_refs(store, [rewritten, again]) == (rewritten, again)  # the one was written on the other
    with pytest.raises(BadStack, match="would not lie below it in that version and order"):
        stack_refs(store, [again, rewritten])


def test_a_shadow_of_another_host_is_told_by_its_record(store: Store, host: Host) -> None:
    one = publish(store, host, "one", 0)
    check_written_on(store, [one], host.ref)
    with pytest.raises(
        UnfitHost, match=r"shadow/one belongs to host/tiny@\w{12}, .* name its host with `--set h"
    ):
        check_written_on(store, [one], Ref("host/big", "0" * 64))
    with pytest.raises(UnfitHost, match=r"the host is host/tiny@0{12}; write it again on this one"):
        check_written_on(store, [one], Ref("host/tiny", "0" * 64))
    with pytest.raises(ElementNotFound, match="has no shadow/gone@"):
        check_written_on(store, [Ref("shadow/gone", "0" * 64)], host.ref)
    [bare] = store.publish([Element("shadow", "bare", b"x", media="text/plain")], message="no host")
    with pytest.raises(BadPayload, match="requires 0 hosts instead of one"):
        check_written_on(store, [bare], host.ref)


def test_attaching_again_takes_the_newest_version_in_its_place(store: Store, host: Host) -> None:
    one, two = (publish(store, host, name, seed) for seed, name in enumerate(("one", "two")))
    kept = attach_shadows(store, "reader", [one, two])
    assert attach_shadows(store, "reader", [one]) == kept
    newer = publish(store, host, "one", 7)
    assert stack_refs(store, ["head:reader"]) == (one, two)
    assert attach_shadows(store, "reader", [newer]).stack.shadows == (newer, two)


def test_detaching_all_gives_the_logits_of_the_host_bit_for_bit(store: Store, host: Host) -> None:
    one, two = (publish(store, host, name, seed) for seed, name in enumerate(("one", "two")))
    bare = logits(host)
    weights = {name: parameter.clone() for name, parameter in host.model.named_parameters()}
    attach_shadows(store, "reader", [one, two])
    with standing_on(store, host, stack_refs(store, ["head:reader"])):
        both = logits(host)
    detach_shadows(store, "reader", ["one"])
    with standing_on(store, host, stack_refs(store, ["head:reader"])):
        less = logits(host)
    empty = detach_shadows(store, "reader", None)
    with standing_on(store, host, stack_refs(store, ["head:reader"])):
        assert torch.equal(logits(host), bare)
    with standing_on(store, host, [two]):
        assert torch.equal(less, logits(host))
    assert not torch.equal(both, bare)
    assert not torch.equal(less, both)
    assert empty.stack.shadows == ()
    assert all(torch.equal(weights[name], value) for name, value in host.model.named_parameters())


def test_what_cannot_be_attached_or_detached_is_refused_and_nothing_moves(store: Store, host: Host) -> None:
    one = publish(store, host, "one", 0)
    with pytest.raises(SnapshotNotFound, match="no snapshot, tag or head"):
        detach_shadows(store, "reader", None)
    kept = attach_shadows(store, "reader", [one])
    with pytest.raises(
        ElementNotFound, match="shadow/two is not attached at head reader; attached there: sh"
    ):
        detach_shadows(store, "reader", ["two"])
    with pytest.raises(BadStack, match="nothing to attach"):
        attach_shadows(store, "reader", [])
    other = Element("host", "other", b"{}", media="application/json")
    foreign = Element("shadow", "foreign", b"x", media="text/plain", requires=(other.version,))
    _, ref = store.publish([other, foreign], message="foreign")
    with pytest.raises(UnfitHost, match="attach shadows of one host"):
        attach_shadows(store, "reader", [ref])
    store.move_head("docs", store.pin([host.ref], message="no stack").id, expect=None)
    with pytest.raises(BadStack, match="holds no stack of shadows"):
        attach_shadows(store, "docs", [one])
    assert store.head("reader") == kept.snapshot


def test_what_cannot_be_pinned_is_refused_before_anything_is_published(store: Store, host: Host) -> None:
    old, new = (publish(store, host, "base", seed) for seed in (0, 1))
    zero = new_shadow(host, (1, 4), document="ab" * 32, seeds={})
    onto = {"onto": [str(old)]}
    element = shadow_element("top", zero, host=host.ref, requires=(old.version,), provenance=onto)
    [top] = store.publish([element], message="top")
    hostile = shadow_element("hostile", zero, host=host.ref, provenance={"onto": ["shadow/\n"]})
    kept = attach_shadows(store, "reader", [old])
    tip = store.tip().sequence
    for refs in ([top], [top, old], [new, top]):
        with pytest.raises(BadStack, match="top was written on shadow/base@"):
            attach_shadows(store, "fresh", refs)
        with pytest.raises(BadStack, match="top was written on shadow/base@"):
            stack_refs(store, refs)  # as merge, continue and compose do
    assert stack_refs(store, [old, top]) == (old, top)
    assert store.tip().sequence == tip
    assert store.head("fresh") is None
    assert attach_shadows(store, "reader", [top]).stack.shadows == (old, top)
    with pytest.raises(BadStack, match="take both, in that order, or neither"):
        attach_shadows(store, "reader", [new])
    with pytest.raises(BadStack, match="take both, in that order, or neither"):
        detach_shadows(store, "reader", ["base"])
    tip = store.tip().sequence
    [bad] = store.publish([hostile], message="no foundation")
    with pytest.raises(BadPayload, match="does not say what it was written on"):
        attach_shadows(store, "fresh", [bad])
    assert kept.stack.shadows == (old,)
    assert store.tip().sequence == tip + 1


def test_two_versions_of_what_shadows_require_are_said_by_name(store: Store, host: Host) -> None:
    texts = [Element("corpus", "text", bytes([65 + n]), media="text/plain") for n in range(2)]
    zero = new_shadow(host, (1, 4), document="ab" * 32, seeds={})
    shadows = [
        shadow_element(name, zero, host=host.ref, requires=(text.version,))
        for name, text in zip(("one", "two"), texts, strict=True)
    ]
    for text, shadow in zip(texts, shadows, strict=True):
        store.publish([text, shadow], message="one more")
    refs = [shadow.ref for shadow in shadows]
    tip = store.tip().sequence
    with pytest.raises(BadStack, match="a snapshot holds one version of a name"):
        attach_shadows(store, "reader", refs)
    assert store.tip().sequence == tip
    assert not store.snapshots()


def test_a_damaged_head_is_told_of_and_the_others_are_listed(
    store: Store, host: Host, tmp_path: Path
) -> None:
    one = publish(store, host, "one", 0)
    kept = attach_shadows(store, "reader", [one])
    attach_shadows(store, "broken", [one])
    [bad] = store.publish([Element("stack", "bad", b"[]", media="application/json")], message="bad")
    store.move_head("bad", store.pin([bad], message="bad").id, expect=None)
    (tmp_path / "store" / "refs" / "heads" / "broken").write_bytes(b"{}")
    with pytest.raises(IntegrityError):
        stacks(store)
    told: list[str] = []
    found = stacks(store, damaged=lambda what, error: told.append(f"{what}: {error}"))
    assert found == {"reader": kept.stack}
    assert len(told) == 2
    assert "refs/heads/broken" in told[0]
    assert told[1].startswith("head:bad: the payload is no stack of shadows")


def test_two_who_attach_at_once_do_not_lose_a_shadow(
    store: Store, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three = (publish(store, host, name, seed) for seed, name in enumerate(("one", "two", "three")))
    attach_shadows(store, "reader", [one])
    pin = store.pin

    def slow_pin(*args: object, **options: object) -> object:
        monkeypatch.undo()
        attach_shadows(store, "reader", [two])
        return pin(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "pin", slow_pin)
    with pytest.raises(HeadMoved):
        attach_shadows(store, "reader", [three])
    assert open_stack(store, "head:reader").stack.shadows == (one, two)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"shadows": "shadow/a"},
        {"shadows": ["shadow/a"]},
        {"shadows": ["memory/a@" + "0" * 64]},
        {"shadows": ["shadow/a@" + "0" * 64] * 2},
        {"shadows": [f"shadow/{n}@" + "0" * 64 for n in range(65)]},
        {"host": "shadow/a@" + "0" * 64},
        {"host": 7},
    ],
)
def test_a_payload_that_is_no_stack_is_refused(change: dict[str, object]) -> None:
    record = {"format": 1, "host": "host/a@" + "0" * 64, "shadows": ["shadow/a@" + "0" * 64]}
    assert load_stack(canonical_json(record)).shadows == (Ref("shadow/a", "0" * 64),)
    with pytest.raises(BadPayload, match="no stack of shadows"):
        load_stack(canonical_json({**record, **change}))
    with pytest.raises(BadPayload):
        load_stack(b"[" * 100_000)
