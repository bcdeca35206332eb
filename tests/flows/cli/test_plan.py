"""A plan says of which store it speaks: the one that is named, otherwise that of the demo."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from cyclopts import App

from flows.cli import anneal, larc
from flows.cli.demo import demo_settings
from flows.cli.plan import What
from flows.cli.session import Session

Cellar = Callable[..., tuple[int, str, str]]


@pytest.fixture
def source(workplace: Path) -> tuple[str, ...]:
    folder = workplace / "texts"
    folder.mkdir()
    for i in range(12):
        (folder / f"{i}.txt").write_text(f"Document {i} speaks of {i * i} words and of some more. " * 4)
    return "--set", "corpus.reader=folder", "--set", f"corpus.path={folder}"


def test_a_plan_of_the_demo_is_about_the_store_that_is_set(
    cellar: Cellar, source: tuple[str, ...], workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def store(*options: str) -> str:
        code, out, err = cellar("plan", *source, *options, "--json")
        assert code == 0, err
        return str(json.loads(out)["store"])

    assert store() == "file:build/demo/store"
    assert store("--out", "elsewhere") == "file:elsewhere/store"
    monkeypatch.setenv("CELLAR_STORE", f"file:{workplace}/set")
    assert store() == f"file:{workplace}/set"
    assert store("--store", "file:given") == "file:given"


def test_the_text_of_a_plan_names_its_store_and_whether_there_is_one(
    cellar: Cellar, source: tuple[str, ...]
) -> None:
    _, before, _ = cellar("plan", "corpus", *source)
    cellar("init")
    _, after, _ = cellar("plan", "corpus", *source)

    assert before.splitlines()[0] == "store file:build/store, which is not there yet"
    assert after.splitlines()[0] == "store file:build/store"


def test_a_demo_keeps_in_its_folder_only_what_is_set_nowhere(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Path("demo")
    nothing_set = demo_settings(Session(), out)
    monkeypatch.setenv("CELLAR_PINS", "my-pins")
    monkeypatch.setenv("CELLAR_WORK_DIR", "my-work")
    all_set = demo_settings(Session(store_url="file:mine", quiet=True), out)

    assert (nothing_set.store, nothing_set.pins, nothing_set.work_dir) == (
        "file:demo/store",
        out / "pins",
        out / "work",
    )
    assert (all_set.store, all_set.pins, all_set.work_dir) == (
        "file:mine",
        Path("my-pins"),
        Path("my-work"),
    )
    assert all_set.quiet


def test_partitions_that_are_passed_over_are_named(cellar: Cellar, workplace: Path) -> None:
    (workplace / "2026-11-01.jsonl").write_text('{"id": "a", "text": "some words"}\n')
    asked = (
        *("plan", "update", "--set", "corpus.reader=jsonl", "--set", "corpus.path={partition}.jsonl"),
        *("--partition", "2026-11-01..2026-11-03", "--skip-missing"),
    )

    code, out, err = cellar(*asked)
    as_json = json.loads(cellar(*asked, "--json")[1])

    assert code == 0, err
    assert "without a file: 2026-11-02, 2026-11-03" in out.splitlines()
    assert as_json["missing"] == ["2026-11-02", "2026-11-03"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("larc-eval",), 3, "there is no store at file:"),
        (("larc-eval", "--head", "docs"), 2, "--head is an option of an update"),
        (("larc-eval", "--jobs", "jobs.csv"), 2, "cellar plan larc-replay --jobs FILE"),
        (("larc-replay", "--source", "a.txt"), 2, "cellar plan anneal-eval --source FILE"),
        (("anneal-facts", "--source", "a.txt"), 2, "cellar plan anneal-eval --source FILE"),
        (("anneal-facts", "domain"), 2, "cellar plan anneal-compose NAME..."),
        (("anneal-eval", "--snapshot", "head:docs"), 2, "cellar plan anneal-compose NAME..."),
        (
            ("anneal-compose", "--snapshot", "head:docs"),
            2,
            "which shadows? For example: cellar plan anneal-c",
        ),
    ],
)
def test_what_a_plan_of_a_flow_on_a_host_lacks_is_said(
    cellar: Cellar, workplace: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    found, _, err = cellar("plan", *arguments)
    assert (found, said in err) == (code, True), err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("larc-eval",), 4, "has no host smollm2; `cellar host fetch`"),
        (("larc-replay",), 2, "which jobs? For example: cellar plan larc-replay --jobs jobs.csv"),
        (("anneal-cumulate",), 2, "cumulate learns two domains or more"),
        (("anneal-facts",), 4, "has no host smollm2"),
        (("anneal-compose", "domain"), 2, "or name a snapshot with --snapshot"),
        (("anneal-compose", "domain", "--snapshot", "gone"), 4, "no snapshot, tag or head"),
    ],
)
def test_what_is_missing_for_a_flow_on_a_host_is_said_by_its_plan(
    cellar: Cellar, workplace: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    cellar("init")
    found, _, err = cellar("plan", *arguments)
    assert (found, said in err) == (code, True), err


@pytest.mark.parametrize(("prefix", "app"), [("larc", larc.app), ("anneal", anneal.app)])
def test_every_command_that_computes_on_a_host_has_its_plan(prefix: str, app: App) -> None:
    at_once = {"attach", "detach", "show", "continue", "merge"}
    commands = {name for name in app if not name.startswith("-")} - at_once
    assert {f"{prefix}-{name}" for name in commands} == {
        name for name in get_args(What) if name.startswith(f"{prefix}-")
    }
