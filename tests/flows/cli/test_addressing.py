"""Evaluating addressing through the real command line, a real store and a real flow."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.cli.addressing_figures import addressing_lines
from flows.pins import Pin, write_pin
from tests.tasks.addressing.test_step import furnish

Cellar = Callable[..., tuple[int, str, str]]
SMALL = """
addressing:
  tasks: 12
  cue_tokens: 16
  answer_tokens: 4
  timed_queries: 3
  resamples: 100
  corruption: [0, 0.2]
"""


def test_addressing_has_no_core_to_choose(cellar: Cellar, workplace: Path) -> None:
    code, _, err = cellar("eval", "run", "addressing", "--core", "core/assembly")
    assert code == 2
    assert "--core goes with attachment, reading, replacement, audit; " in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("questions",), "questions need a file of them"),
        (("addressing", "--data", "q.json"), "--data goes with questions, not with addressing"),
        (("questions", "--data", "q.json", "--core", "core/assembly"), "--core goes with attachment"),
        (
            ("questions", "--data", "nothing.json"),
            "nothing.json does not exist; give a file",
        ),
    ],
)
def test_what_goes_with_questions_is_said_in_a_sentence(
    cellar: Cellar, workplace: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    code, _, err = cellar("eval", "run", *arguments)
    assert code == 2
    assert sentence in err
    assert err.count("\n") == 1


def test_a_bad_file_of_questions_is_refused_before_a_store_is_opened(cellar: Cellar, workplace: Path) -> None:
    paragraph = {"context": "Water boils.", "qas": [{"question": "What boils?"}]}
    Path("q.json").write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))
    asked = ("eval", "run", "questions", "--data", "q.json")
    code, _, err = cellar(*asked, "--set", "corpus.max_characters=11")
    assert code == 2
    assert err == (
        "cellar: q.json: the 'context' of article 1, paragraph 1 is unusable: longer than 11 characters; "
        "correct the file\n"
    )
    assert "no store" in cellar(*asked)[2]


def test_a_file_without_a_question_is_refused_in_a_sentence(cellar: Cellar, workplace: Path) -> None:
    Path("q.json").write_text(
        json.dumps({"data": [{"paragraphs": [{"context": "Water boils.", "qas": []}]}]})
    )
    code, _, err = cellar("eval", "run", "questions", "--data", "q.json")
    assert code == 2
    assert err == (
        "cellar: q.json holds paragraphs (1) but no question on them; give a file that has some below 'qas'\n"
    )


def test_the_figures_begin_with_what_answers_the_question() -> None:
    def figure(value: float) -> dict[str, float]:
        return {"value": value, "low": value - 0.01, "high": value + 0.01}

    names = ("candidate_recall", "recall_at_1", "recall_at_1_cue", "recall_at_1_named")
    result = {
        "protocol": "coordinate-assisted",
        "tasks": 12,
        "documents": 4,
        "ambiguous": 1,
        "searchers": ["charts", "bm25"],
        "table": [
            {"kind": kind, "corruption": share, "searcher": searcher, **dict.fromkeys(names, figure(value))}
            for kind in ("quote_continuation", "all")
            for share in (0.0, 0.2)
            for searcher, value in (("charts", 0.95 - share), ("bm25", 0.9 - share))
        ],
        "margins": [
            {"kind": "all", "corruption": share, "over": "bm25", "recall_at_1": figure(0.05)}
            for share in (0.0, 0.2)
        ],
        "costs": {"rates": {}},
    }
    lines = addressing_lines(result)
    assert lines[1] == (
        "charts finds the right memory first in 95.0 % of tasks, and in 75.0 % with 20% of the cue changed: "
        "5.0 and 5.0 points more than bm25"
    )
    assert [line.split()[0] for line in lines[2:5]] == ["right", "charts", "bm25"]
    assert lines[3].split()[1:] == ["0.9500", "[0.9400,", "0.9600]", "0.7500", "[0.7400,", "0.7600]"]
    one = {**result, "table": [row for row in result["table"] if not row["corruption"]]}
    assert addressing_lines(one)[1] == (
        "charts finds the right memory first in 95.0 % of tasks: 5.0 points more than bm25"
    )


def test_a_missing_pin_is_said_before_anything_starts(cellar: Cellar, workplace: Path) -> None:
    cellar("init")
    code, _, err = cellar("eval", "run", "addressing")
    assert code == 2
    assert err.count("\n") == 1


@pytest.mark.usefixtures("prefect_server")
def test_addressing_of_the_pin_files_is_evaluated_and_shown(cellar: Cellar, workplace: Path) -> None:
    place = furnish("file:build/store")
    Path("params.yaml").write_text(SMALL)
    pins = workplace / "pins"
    pins.mkdir()
    write_pin(pins, Pin(stage="corpus", refs=tuple(map(str, place.corpus))))
    write_pin(pins, Pin(stage="snapshot", snapshot=place.snapshot.id))

    code, out, err = cellar("eval", "run", "addressing", "--out", "figures", "--json")
    assert code == 0, err
    evaluated = json.loads(out)

    assert evaluated["snapshot"] == place.snapshot.id
    assert evaluated["searchers"] == ["charts", "dense", "bm25"]
    assert {row["corruption"] for row in evaluated["table"]} == {0.0, 0.2}
    assert json.loads(Path("figures/addressing.json").read_text()) == evaluated
    shown = cellar("eval", "show", "figures")[1]
    assert shown == cellar("eval", "show", "figures/addressing.json")[1]
    assert shown.startswith("coordinate-assisted: ")
    assert re.search(r"quote_continuation\s+20%\s+bm25\s+[01]\.", shown)

    text = "Water boils at a hundred degrees. Ice floats on water because it is lighter than water."
    paragraph = {"context": text, "qas": [{"question": "When does water boil?"}]}
    other = {"context": "Lists are mutable sequences, and tuples are immutable ones of them.", "qas": []}
    Path("q.json").write_text(json.dumps({"data": [{"paragraphs": [paragraph, other]}]}))
    code, out, err = cellar("eval", "run", "questions", "--data", "q.json", "--out", "figures", "--json")
    assert code == 0, err
    assert json.loads(out)["figures"]["hybrid"]["recall_at_5"]["value"] == 1.0
    shown = cellar("eval", "show", "figures/questions.json")[1]
    assert shown.startswith("question-only: 1 questions on 2 paragraphs")
    # The corpus of a snapshot without a report of its corpus cannot be found in the store.
    code, _, err = cellar("eval", "run", "addressing", "--snapshot", place.snapshot.id)
    assert code == 2
    assert "no corpus" in err
