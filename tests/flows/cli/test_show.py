"""Figures of every subject are found in a folder, told apart by what they hold, and shown."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pytest

from flows.cli.subjects import FIGURES, SUBJECTS, SubjectName
from tasks.evaluation import Condition
from tasks.package import Reproduction, compare
from tests.tasks.evaluation.test_statistics import sample

Cellar = Callable[..., tuple[int, str, str]]
SUMMARY = Path(__file__).parents[1] / "report" / "summary.json"


def _reproduction() -> dict[str, Any]:
    expected, found = (
        [sample(0, Condition.RIGHT, 2.0), sample(1, Condition.RIGHT, nll)] for nll in (1.0, 1.5)
    )
    losses = compare(expected, found)
    assert losses is not None
    made = Reproduction("5" * 64, "6" * 64, "core/assembly@7", 2, 3, losses, False, 1.25)
    return {**json.loads(json.dumps(asdict(made))), "largest": made.largest, "package": "p.tar"}


def test_every_subject_has_its_place_in_the_table() -> None:
    assert set(SUBJECTS) == set(get_args(SubjectName))
    assert len({kind.file for kind in FIGURES}) == len({kind.member for kind in FIGURES}) == len(FIGURES)
    assert {subject.figures for subject in SUBJECTS.values()} < set(FIGURES)
    for subject in SUBJECTS.values():
        assert subject.reads or (subject.snapshot and subject.core)


def test_a_folder_of_a_package_scored_again_is_shown(cellar: Cellar, workplace: Path) -> None:
    (workplace / "results").mkdir()
    (workplace / "results/reproduction.json").write_text(json.dumps(_reproduction()))

    code, out, err = cellar("eval", "show")

    assert code == 0, err
    assert [Condition.RIGHT.value, "1.500000", "1.750000", "0.5", "1"] in [
        line.split() for line in out.splitlines()
    ]
    assert "not bit for bit: losses of tasks differ by up to 0.5 nats" in out
    assert cellar("eval", "show", "results") == (code, out, err)
    assert json.loads(cellar("eval", "show", "results", "--json")[1]) == _reproduction()


def test_a_summary_is_shown_before_what_lies_beside_it(cellar: Cellar, workplace: Path) -> None:
    shutil.copy(SUMMARY, workplace / "summary.json")
    alone = cellar("eval", "show", ".")[1]
    (workplace / "reproduction.json").write_text(json.dumps(_reproduction()))

    both = cellar("eval", "show", ".")[1]

    assert both.startswith(alone)
    assert both[len(alone) :] == ". holds reproduction.json too; give the path of one to see it\n"


def test_a_renamed_file_is_known_by_what_it_holds(cellar: Cellar, workplace: Path) -> None:
    (workplace / "kept.json").write_text(json.dumps(_reproduction()))

    assert "core/assembly@7" in cellar("eval", "show", "kept.json")[1]


@pytest.mark.parametrize("member", [kind.member for kind in FIGURES])
def test_figures_that_lack_something_are_refused(cellar: Cellar, workplace: Path, member: str) -> None:
    for number, content in enumerate(({member: []}, {member: {}}, [member], {"points": [], member: 1})):
        (workplace / f"{number}.json").write_text(json.dumps(content))
        code, _, err = cellar("eval", "show", f"{number}.json")
        assert (code, "is no summary of an evaluation" in err) == (2, True)


def test_a_folder_without_figures_is_named(cellar: Cellar, workplace: Path) -> None:
    code, _, err = cellar("eval", "show")
    assert (code, "no figures of an evaluation in results or build/demo" in err) == (2, True)


@pytest.mark.parametrize("command", ["run", "show"])
def test_help_names_every_file(cellar: Cellar, workplace: Path, command: str) -> None:
    out = cellar("eval", command, "--help")[1]
    assert [kind.file for kind in FIGURES if kind.file not in out] == []
