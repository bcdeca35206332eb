"""Which blocks have a shadow, payloads that read back or are refused, and hosts that stay what they were."""

import hashlib
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from store import Ref, Store
from store.errors import ElementNotFound, InputError
from tasks.errors import BadHost, BadPayload, UnfitHost
from tasks.hosts import Host, read_manifest
from tasks.payload import pack_tensors, unpack_tensors
from tasks.shadows import (
    Attachment,
    Shadow,
    attached,
    default_layers,
    load_shadow,
    merge,
    new_shadow,
    open_shadow,
    shadow_element,
)

DIGEST = "ab" * 32
REF = Ref("shadow/docs", "1" * 64)


@pytest.fixture
def shadow(host: Host) -> Shadow:
    zero = new_shadow(host, (1, 3, 5), document=DIGEST, seeds={"documents": 7})
    draws = torch.Generator().manual_seed(3)
    deltas = tuple(0.05 * torch.randn(delta.shape, generator=draws) for delta in zero.deltas)
    return replace(zero, deltas=deltas, losses=(5.5, 4.25))


def logits(host: Host) -> Tensor:
    with torch.no_grad():
        found: Tensor = host.model(torch.tensor([host.encode("a cool, dark cellar")])).logits
    return found


def test_full_attention_layers_of_a_hybrid_model_and_every_fifth_where_all_are_alike() -> None:
    hybrid = ["linear_attention", "linear_attention", "linear_attention", "full_attention"] * 3
    assert default_layers(hybrid, 12) == (3, 7, 11)
    assert default_layers(["full_attention"] * 12, 12) == (4, 9, 11)
    assert default_layers(None, 30) == (4, 9, 14, 19, 24, 29)
    assert default_layers(None, 2) == (1,)


def test_a_zero_shadow_leaves_the_logits_bit_for_bit(host: Host, shadow: Shadow) -> None:
    plain = logits(host)
    for nothing in (
        shadow.scaled([0, 0, 0]),
        replace(shadow, deltas=tuple(torch.zeros_like(delta) for delta in shadow.deltas)),
    ):
        assert nothing.is_zero
        with attached(host, nothing):
            assert torch.equal(logits(host), plain)
    with attached(host, shadow):
        assert not torch.equal(logits(host), plain)
    assert torch.equal(logits(host), plain)


def test_attaching_adds_alpha_times_d_and_leaves_the_weights_alone(host: Host, shadow: Shadow) -> None:
    shadow = shadow.scaled([0.5, 0.0, 1.2])
    weights = [layer.mlp.down_proj.weight for layer in host.model.model.layers]
    before = [weight.clone() for weight in weights]
    attachment = Attachment(host, shadow)
    found = logits(host)
    attachment.detach()
    attachment.detach()
    assert all(torch.equal(weight, kept) for weight, kept in zip(weights, before, strict=True))
    for layer, delta, alpha in zip(shadow.layers, shadow.deltas, shadow.alphas, strict=True):
        weights[layer].data = before[layer] + alpha * delta
    torch.testing.assert_close(found, logits(host), rtol=0, atol=1e-5)


def test_a_shadow_reads_back_from_the_store_with_equal_bytes(
    store: Store, host: Host, shadow: Shadow
) -> None:
    [ref] = store.publish([shadow_element("wine", shadow, host=host.ref)], message="m")
    found, opened = open_shadow(store, "wine", host)
    assert found == ref
    assert opened.to_bytes() == shadow.to_bytes()
    assert host.ref.version in store.catalog().rows("shadow")[0].requires
    with pytest.raises(ElementNotFound, match="no shadow/beer"):
        open_shadow(store, "beer", host)


CHANGES: dict[str, Callable[[dict[str, Any], dict[str, Tensor]], object]] = {
    "format": lambda r, t: r.update(format=2),
    "host version": lambda r, t: r.update(host="cd" * 32),
    "not ascending": lambda r, t: r.update(layers=[3, 1, 5]),
    "numbers of layers": lambda r, t: r.update(layers=[1, 3, 99]),
    "integers": lambda r, t: r.update(layers=[1, 3, True]),
    "integers ": lambda r, t: r.update(layers=list(range(10**6))),
    "its names": lambda r, t: r.update(names=["lm_head", *r["names"][1:]]),
    "its alphas": lambda r, t: r.update(alphas=[0.5, 1.3, 0]),
    "not finite": lambda r, t: r.update(alphas=[0.5, float("nan"), 0]),
    "numbers is not": lambda r, t: r.update(losses=["1"]),
    "its matrices": lambda r, t: t.pop("delta.3"),
    "matrix of layer 3": lambda r, t: t.update({"delta.3": torch.zeros(2, 2)}),
    "float64": lambda r, t: t.update({"delta.1": t["delta.1"].double()}),
    "layer 5 is not finite": lambda r, t: t["delta.5"].fill_(float("inf")),
    "its document": lambda r, t: r.update(document="../x"),
    "its seeds": lambda r, t: r.update(seeds=[1]),
    "losses": lambda r, t: r.pop("losses"),
}


@pytest.mark.parametrize("sentence", CHANGES)
def test_a_forged_payload_is_refused(host: Host, shadow: Shadow, sentence: str) -> None:
    tensors, record = unpack_tensors(shadow.to_bytes(), what="shadow")
    CHANGES[sentence](record, tensors)
    with pytest.raises(BadPayload, match=sentence.strip()):
        load_shadow(pack_tensors(tensors, what="shadow", record=record), host)


def test_what_is_no_shadow_or_too_large_is_refused(host: Host) -> None:
    with pytest.raises(BadPayload, match="not a shadow"):
        load_shadow(b"junk", host)
    with pytest.raises(BadPayload, match="at most"):
        load_shadow(bytes(20 * 1024**2), host)


def test_another_host_or_a_block_without_a_gated_mlp_is_refused(host: Host, shadow: Shadow) -> None:
    with pytest.raises(UnfitHost, match="belongs to host version"):
        Attachment(host, replace(shadow, host="ef" * 32))
    with pytest.raises(UnfitHost, match="has 6 decoder layers"):
        new_shadow(host, (6,), document=DIGEST, seeds={})
    host.model.model.layers[1].mlp = torch.nn.Identity()
    with pytest.raises(UnfitHost, match="layer 1 of host/tiny ends in no gated MLP"):
        new_shadow(host, (1,), document=DIGEST, seeds={})


def test_a_merged_host_is_a_directory_that_transformers_loads(
    host: Host, host_folder: Path, shadow: Shadow, tmp_path: Path
) -> None:
    shadow = shadow.scaled([0.5, 0.0, 1.2])
    out = tmp_path / "new" / "merged"
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert merge(host_folder, host.ref, [(REF, shadow)], out) == 2
    with attached(host, shadow):
        expected = logits(host)
    ids = torch.tensor([host.encode("a cool, dark cellar")])
    merged = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)
    torch.testing.assert_close(merged(ids).logits, expected, rtol=0, atol=1e-5)
    changed = read_manifest(host_folder).difference(read_manifest(out))
    assert changed == "2 of 56 tensors differ, the first is model.layers.1.mlp.down_proj.weight"
    for taken in (out, tmp_path / "gone"):
        with pytest.raises(InputError, match="is there already"):
            merge(host_folder, host.ref, [(REF, shadow)], taken)
    elsewhere = replace(shadow, names=("elsewhere", *shadow.names[1:]))
    with pytest.raises(BadHost, match=r"has no tensor elsewhere\.weight"):
        merge(host_folder, host.ref, [(REF, elsewhere)], tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir() if "other" in path.name) == []


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), BadHost("it lacks 1 tensor")])
def test_what_is_wrong_with_the_host_is_not_said_of_the_shadow(
    host: Host, shadow: Shadow, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload, unread = shadow.to_bytes(), replace(host)

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(type(host.parts), "model", fail)
    with pytest.raises(type(error), match=str(error)):
        load_shadow(payload, unread)


def test_a_merged_folder_says_what_is_in_it_and_how_to_check_it(
    host: Host, host_folder: Path, shadow: Shadow, tmp_path: Path
) -> None:
    shadow = shadow.scaled([0.5, 0.0, 1.2])
    odd = Ref("shadow/other", "3" * 64)
    for out in ("one", "two"):
        merge(host_folder, host.ref, [(REF, shadow), (odd, shadow)], tmp_path / out)
    card = (tmp_path / "one" / "README.md").read_text()
    assert {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()} == {
        path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()
    }
    weights = (tmp_path / "one" / "model.safetensors").read_bytes()
    for said in (
        f"| host | `{host.ref}` |",
        f"| shadow | `{REF}` |",
        f"| `shadow/docs` | `{DIGEST}` | 1: 0.5, 3: 0, 5: 1.2 |",
        f"{hashlib.sha256(weights).hexdigest()}  model.safetensors",
    ):
        assert said in card
    [command] = [line for line in card.splitlines() if line.startswith("cellar anneal merge")]
    assert shlex.split(command) == [
        *("cellar", "anneal", "merge", str(REF), str(odd)),
        *("--set", "host.name=tiny", "--out", "again"),
    ]


def test_several_shadows_are_summed_in_memory_and_in_weights(
    host: Host, host_folder: Path, shadow: Shadow, tmp_path: Path
) -> None:
    other = replace(
        new_shadow(host, (3,), document=DIGEST, seeds={}), deltas=(0.1 * torch.ones_like(shadow.deltas[1]),)
    )
    with attached(host, shadow), attached(host, other):
        expected = logits(host)
    with attached(host, shadow):
        assert not torch.allclose(logits(host), expected, atol=1e-3)
    both = [(REF, shadow), (Ref("shadow/other", "2" * 64), other)]
    assert merge(host_folder, host.ref, both, tmp_path / "both") == 3
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "both", dtype=torch.float32)
    ids = torch.tensor([host.encode("a cool, dark cellar")])
    torch.testing.assert_close(merged(ids).logits, expected, rtol=0, atol=1e-5)


def test_a_sum_that_is_no_number_makes_no_host(
    host: Host, host_folder: Path, shadow: Shadow, tmp_path: Path
) -> None:
    large = replace(shadow, deltas=tuple(torch.full_like(delta, 3e38) for delta in shadow.deltas))
    with pytest.raises(UnfitHost, match=r"down_proj\.weight has numbers that float32 does not hold"):
        merge(host_folder, host.ref, [(REF, large), (REF, large)], tmp_path / "large")
    assert list(tmp_path.glob("*large*")) == []
