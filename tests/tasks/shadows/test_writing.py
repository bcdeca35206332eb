"""A text is learned chunk by chunk, resumes bit for bit, and stops before it does harm."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from store import Store
from tasks.checkpoint import Checkpoints, checkpoint_path
from tasks.errors import Exploded, TooLittleText
from tasks.hosts import Host
from tasks.shadows import (
    HeldParams,
    Shadow,
    ShadowParams,
    TextSource,
    attached,
    load_shadow,
    mean_loss,
    new_shadow,
    open_shadow,
    read_domain,
    write_domain,
    write_shadow,
)

PARAMS = ShadowParams(
    layers=(2, 4),
    chunk_tokens=32,
    chunks=12,
    step_size=0.3,
    held=HeldParams(selection_tokens=128, guard_tokens=128, sealed_tokens=256),
)


class Killed(Exception):
    """Stands for Ctrl-C."""


@pytest.fixture
def zero(host: Host) -> Shadow:
    return new_shadow(host, PARAMS.layers, document="ab" * 32, seeds={})


@pytest.fixture
def tokens_T(host: Host) -> Tensor:  # noqa: N802
    return torch.tensor(host.encode("the third cask is cool; keep it shut. " * 60))


def loss(host: Host, tokens_T: Tensor) -> float:
    with torch.no_grad():
        return float(mean_loss(host.model(tokens_T[None]).logits[0, :-1], tokens_T[1:]))


def test_chunks_are_scored_before_they_are_learned_and_the_text_is_learned(
    host: Host, zero: Shadow, tokens_T: Tensor
) -> None:
    before = loss(host, tokens_T[:256])
    written = write_shadow(host, zero, tokens_T, PARAMS)
    assert len(written.losses) == 12
    assert written.losses[0] == pytest.approx(loss(host, tokens_T[:32]), abs=1e-6)
    assert written.losses[-1] < written.losses[0] - 0.05
    with attached(host, written):
        assert loss(host, tokens_T[:256]) < before - 0.05
    assert loss(host, tokens_T[:256]) == before
    assert not any(parameter.grad is not None for parameter in host.model.parameters())


def test_one_step_is_the_plain_gradient_of_the_weight_itself(
    host: Host, zero: Shadow, tokens_T: Tensor
) -> None:
    written = write_shadow(host, zero, tokens_T, PARAMS.model_copy(update={"chunks": 1}))
    weights = [host.model.model.layers[layer].mlp.down_proj.weight for layer in (2, 4)]
    for weight in weights:
        weight.requires_grad_()
    mean_loss(host.model(tokens_T[None, :32]).logits[0, :-1], tokens_T[1:32]).backward()
    for weight, delta in zip(weights, written.deltas, strict=True):
        torch.testing.assert_close(delta, -0.3 * weight.grad, rtol=1e-4, atol=1e-7)
    moved = write_shadow(host, zero, tokens_T, PARAMS.model_copy(update={"chunks": 1, "normalise": True}))
    assert sum(norm**2 for norm in moved.norms()) ** 0.5 == pytest.approx(0.3, rel=1e-5)


@pytest.mark.parametrize("killed_after", [1, 5, 11])
def test_an_interrupted_stream_resumes_bit_for_bit(
    host: Host, zero: Shadow, tokens_T: Tensor, tmp_path: Path, killed_after: int
) -> None:
    whole = write_shadow(host, zero, tokens_T, PARAMS)
    checkpoints = Checkpoints(tmp_path, "f" * 64, seconds=0)
    seen: list[int] = []

    def watch(done: int, total: int, **figures: float) -> None:
        seen.append(done)
        if done == killed_after + 1:
            raise Killed

    with pytest.raises(Killed):
        write_shadow(host, zero, tokens_T, PARAMS, progress=watch, checkpoints=checkpoints)
    resumed = write_shadow(
        host,
        zero,
        tokens_T,
        PARAMS,
        checkpoints=checkpoints,
        progress=lambda done, *_, **__: seen.append(done),
    )
    resumed_at = seen[killed_after + 2 :]
    assert resumed_at[:2] == [killed_after, killed_after + 1], "what was kept is not learned again"
    assert resumed.to_bytes() == whole.to_bytes()


def test_an_explosion_is_stopped_and_its_step_taken_back(host: Host, zero: Shadow, tokens_T: Tensor) -> None:
    noise_T = torch.randint(0, 256, (64,), generator=torch.Generator().manual_seed(0))
    turned_T = torch.cat([tokens_T[: 5 * 32], noise_T])
    wild = PARAMS.model_copy(update={"step_size": 4.0, "most_rise": 0.5})
    stopped = write_shadow(host, zero, turned_T, wild)
    assert stopped.stopped.startswith("the loss of chunk 5 was")
    assert len(stopped.losses) == 5
    good = write_shadow(host, zero, turned_T, wild.model_copy(update={"chunks": 4}))
    assert all(torch.equal(a, b) for a, b in zip(stopped.deltas, good.deltas, strict=True))
    with pytest.raises(Exploded, match="nothing is left"):
        write_shadow(host, zero, tokens_T, wild.model_copy(update={"step_size": 1.0, "most_rise": 0.01}))


def test_a_loss_that_is_not_finite_stops_the_stream(host: Host, zero: Shadow, tokens_T: Tensor) -> None:
    poisoned = tokens_T.clone()
    poisoned[40] = 260  # a token that the text has not, in its second chunk
    host.model.get_input_embeddings().register_forward_hook(
        lambda _, given, found: torch.where(given[0][..., None] == 260, torch.nan, found)
    )
    with pytest.raises(Exploded, match="chunk 1 was nan"):
        write_shadow(host, zero, poisoned, PARAMS)
    poisoned[[40, 100]] = poisoned[[100, 40]]
    stopped = write_shadow(host, zero, poisoned, PARAMS)
    assert "chunk 3 was nan" in stopped.stopped
    assert all(bool(torch.isfinite(delta).all()) for delta in stopped.deltas)


def test_a_step_that_is_not_finite_is_not_applied_even_if_it_is_the_last(
    host: Host, zero: Shadow, tokens_T: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = PARAMS.model_copy(update={"step_size": 1_000.0, "chunks": 2})
    gradients = iter([1e-6, 1e37])  # which a thousand times is beyond float32

    def steep(_host: Host, shadow: Shadow, *_: object) -> tuple[float, list[Tensor]]:
        number = next(gradients)
        return 1.0, [torch.full_like(delta, number) for delta in shadow.deltas]

    monkeypatch.setattr("tasks.shadows.writing._gradients", steep)
    stopped = write_shadow(host, zero, tokens_T, wide)
    assert stopped.stopped == "the step of chunk 1 was not finite and was not applied"
    assert len(stopped.losses) == 1
    assert load_shadow(stopped.to_bytes(), host).norms() == stopped.norms()


def test_a_damaged_checkpoint_or_one_of_another_shape_starts_over(
    host: Host, zero: Shadow, tokens_T: Tensor, tmp_path: Path
) -> None:
    whole = write_shadow(host, zero, tokens_T, PARAMS)
    other = replace(zero, deltas=zero.deltas[:1], layers=(2,), names=zero.names[:1])
    checkpoints = Checkpoints(tmp_path, "f" * 64, seconds=0)
    write_shadow(host, other, tokens_T, PARAMS, checkpoints=checkpoints)
    assert write_shadow(host, zero, tokens_T, PARAMS, checkpoints=checkpoints).to_bytes() == whole.to_bytes()
    checkpoint_path(tmp_path, "f" * 64).write_bytes(b"junk")
    assert write_shadow(host, zero, tokens_T, PARAMS, checkpoints=checkpoints).to_bytes() == whole.to_bytes()
    with pytest.raises(TooLittleText, match="no chunk of 32"):
        write_shadow(host, zero, tokens_T[:5], PARAMS)


def test_a_domain_is_written_once_and_its_checkpoint_goes(
    store: Store, host: Host, text_file: Path, tmp_path: Path
) -> None:
    params = PARAMS.model_copy(update={"domain": TextSource(path=text_file), "name": "casks"})
    work = tmp_path / "work"
    ref = write_domain(store, host, params, work_dir=work, checkpoint_s=0)
    assert ref.name == "shadow/casks.written"
    assert list(work.iterdir()) == []
    assert write_domain(store, host, params) == ref
    assert write_domain(store, host, params.model_copy(update={"step_size": 0.2})) != ref
    _, shadow = open_shadow(store, ref, host)
    assert shadow.document == read_domain(store, host, params).digest
    assert shadow.alphas == (1.0, 1.0)


def test_a_text_is_written_on_top_of_others(
    store: Store, host: Host, text_file: Path, tmp_path: Path
) -> None:
    first = PARAMS.model_copy(update={"domain": TextSource(path=text_file), "name": "first"})
    ref = write_domain(store, host, first)
    other = tmp_path / "other.txt"
    other.write_text("".join(f"{n * n} IS A SQUARE\n" for n in range(400)))
    second = first.model_copy(update={"domain": TextSource(path=other), "name": "second"})
    alone = write_domain(store, host, second)
    stacked = write_domain(
        store, host, second.model_copy(update={"name": "third", "onto": ("first.written",)})
    )
    row = store.catalog().get(stacked.version)
    assert row is not None
    assert ref.version in row.requires
    assert row.provenance["onto"] == [str(ref)]
    domain_T = read_domain(store, host, second).train_T
    _, below = open_shadow(store, ref, host)
    _, above = open_shadow(store, stacked, host)
    assert above.losses[0] != open_shadow(store, alone, host)[1].losses[0]
    with attached(host, below):
        assert above.losses[0] == pytest.approx(loss(host, domain_T[:32]), abs=1e-6)
