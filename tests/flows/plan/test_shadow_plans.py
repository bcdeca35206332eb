"""Plans of shadows say what is left of interrupted work, and what a text cannot give."""

import json
from pathlib import Path
from typing import Any

import pytest

from flows.params import Params
from flows.plan import Step, plan_cumulation, plan_lines, plan_shadow
from flows.settings import Settings
from flows.timing import timed
from store import Store
from tasks.anneal import AnnealParams, consolidate, evaluation_work
from tasks.anneal.params import SealedParams
from tasks.corpus import Document
from tasks.errors import UnfitHost
from tasks.hosts import Host, HostParams, publish_host
from tasks.shadows import HeldParams, ShadowParams, TextSource, documents, write_domain
from tests.tasks.killing import Killed, stop_at
from tests.tiny_host import write_tiny_host

HELD = HeldParams(selection_tokens=128, guard_tokens=128, sealed_tokens=256)


@pytest.fixture
def settings(tmp_path: Path, store: Store) -> Settings:
    return Settings(store=store.url, work_dir=tmp_path / "work", device="cpu")


@pytest.fixture
def params(tmp_path: Path) -> Params:
    for name, line in (("casks", "the {n}th cask is cool and dark.\n"), ("other", "{n} TIMES {n}?\n")):
        (tmp_path / f"{name}.txt").write_text("".join(line.format(n=n) for n in range(300)))
    source = TextSource(path=tmp_path / "casks.txt")
    shadow = ShadowParams(domain=source, held=HELD, layers=(1, 3), chunk_tokens=32, chunks=8, step_size=0.5)
    anneal = AnnealParams(
        retention=(TextSource(path=tmp_path / "other.txt"),),
        held=HELD,
        passages=2,
        passage_tokens=32,
        scored=16,
        evaluations=20,
        sealed=SealedParams(chunk_tokens=64, baselines=("single",)),
    )
    return Params(host=HostParams(name="tiny", dtype="float32"), shadow=shadow, anneal=anneal)


def remember(settings: Settings, **units: int) -> None:
    """As if a second had been spent on so many units of some stages."""
    spent = {f"{stage.replace('_', '-')} {count} x": 1.0 for stage, count in units.items()}
    settings.work_dir.mkdir(exist_ok=True)
    (settings.work_dir / "seconds.json").write_text(json.dumps(spent))


def states(steps: list[Step]) -> list[tuple[str, int | None, int | None]]:
    return [(step.state, step.done, step.to_do) for step in steps]


def test_what_an_interrupted_run_kept_is_not_to_do(
    store: Store,
    host: Host,
    params: Params,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = evaluation_work(params.shadow, params.anneal)
    remember(settings, write_shadow=2, consolidate_shadow=10, evaluate_shadow=whole)
    steps = plan_shadow(store, params, settings)
    assert states(steps) == [("to run", 0, 8), ("to run", 0, 20), ("to run", 0, whole)]
    assert [step.seconds for step in steps] == [4, 2, 1]
    assert [line.split()[:5] for line in list(plan_lines(steps))[1:4]] == [
        ["writing", "to", "run", "0", "of"],
        ["consolidation", "to", "run", "0", "of"],
        ["evaluation", "to", "run", "0", "of"],
    ]
    assert "0 of 8 chunks" in list(plan_lines(steps))[1]
    assert "0 of 20 alphas" in list(plan_lines(steps))[2]
    options: dict[str, Any] = {"work_dir": settings.work_dir, "checkpoint_s": 0}
    with pytest.raises(Killed):
        write_domain(store, host, params.shadow, progress=stop_at(6), **options)
    [write, *_] = plan_shadow(store, params, settings)
    assert (write.state, write.done, write.to_do, write.seconds) == ("partly done", 5, 3, 1.5)
    write_domain(store, host, params.shadow, **options)
    with pytest.raises(Killed):
        consolidate(store, host, params.shadow, params.anneal, progress=stop_at(7), **options)
    _, search, _ = plan_shadow(store, params, settings)
    assert (search.state, search.done, search.to_do, search.seconds) == ("partly done", 7, 13, 1.3)
    consolidate(store, host, params.shadow, params.anneal, **options)
    read: list[TextSource] = []

    def noted(store: Store, source: TextSource) -> list[Document]:
        read.append(source)
        return documents.read_documents(store, source)

    monkeypatch.setattr("tasks.shadows.read_documents", noted)
    write, search, evaluation = plan_shadow(store, params, settings)
    assert [write.state, search.state, evaluation.state] == ["done", "done", "to run"]
    assert write.seconds is None
    assert read == [params.shadow.domain, *params.anneal.retention]


def test_domains_say_their_units_before_anything_is_published(
    store: Store, host: Host, params: Params, settings: Settings
) -> None:
    domains = {"a": params.shadow.domain, "b": params.anneal.retention[0]}
    two = params.model_copy(update={"anneal": params.anneal.model_copy(update={"domains": domains})})
    steps = plan_cumulation(store, two, settings)
    assert [(step.done, step.to_do, step.unit) for step in steps] == [
        *([(0, 8, "chunks"), (0, 20, "alphas")] * 2),
        (0, 3 * (2 * 4 + 4), "chunks"),
    ]


def test_a_text_gives_no_more_chunks_than_it_has_bytes(
    store: Store,
    host: Host,
    params: Params,
    settings: Settings,
    tmp_path: Path,
) -> None:
    remember(settings, write_shadow=1)
    (tmp_path / "casks.txt").write_text("x" * (HELD.total + 3 * 32 - 1))
    [write] = plan_shadow(store, params, settings, until="write")
    assert (write.seconds, write.to_do) == (4, 4)


def test_what_another_host_learned_is_refused_as_the_commands_refuse_it(
    store: Store, host: Host, params: Params, settings: Settings, tmp_path: Path
) -> None:
    write_domain(store, host, params.shadow)
    publish_host(store, write_tiny_host(tmp_path / "other"), "other")
    above = params.shadow.model_copy(update={"name": "above", "onto": ("domain.written",)})
    domains = dict.fromkeys(("a", "b"), params.shadow.domain)
    chosen = params.model_copy(
        update={
            "host": HostParams(name="other", dtype="float32"),
            "shadow": above,
            "anneal": params.anneal.model_copy(update={"domains": domains}),
        }
    )
    for plan in (plan_shadow, plan_cumulation):
        with pytest.raises(UnfitHost, match=r"domain\.written belongs to host/tiny@"):
            plan(store, chosen, settings)


def test_a_run_is_timed_by_what_it_did_itself(store: Store, settings: Settings) -> None:
    with timed(settings.work_dir, store, "write-shadow") as work:
        report = work.counted(stop_at(-1))
        report(5, 8)
        report(6, 8)
        report(8, 8)
    assert work.documents == 3
