"""The commands on skills, through the real command line, a real store and real flows."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from store import Store
from tasks.skills import SkillsParams, publish_programs

Cellar = Callable[..., tuple[int, str, str]]
SMALL = """
skills:
  tokens: {vocab_size: 400, prompts: 300}
  controller: {width: 32, steps: 40, rows: 48}
  core:
    architecture: {width: 64, iterations: 2, hidden: 32, kernel: 3, dilations: [1, 2], correction_hidden: 32}
    steps: 50
    rows: 24
    warmup_steps: 10
  evaluation: {tasks: 20, resamples: 100}
"""


@pytest.fixture
def programs(workplace: Path) -> None:
    publish_programs(Store.open_or_create("file:build/store"), SkillsParams())


@pytest.mark.usefixtures("programs")
def test_a_skill_is_run_on_a_phrase_and_traced(cellar: Cellar) -> None:
    code, out, err = cellar("skill", "run", "divide", "minus forty-two divided by 5")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].startswith("skill     skill/divide@")
    assert lines[1:] == [
        "operands  -42 5",
        "       0  argument 0  -42",
        "       1  argument 1  -42 5",
        "       2  divide      -8",
        "       3  return      -8",
        "result    -8",
    ]
    record = json.loads(cellar("skill", "run", "modulo", "-42", "and", "5", "--json")[1])
    assert (record["operands"], record["value"], record["trap"], record["steps"]) == ([-42, 5], -2, None, 4)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("divide", "7 by zero"), 2, "skill/divide trapped at instruction 2: division by zero"),
        (("multiply", f"{2**62} 2"), 2, "the result lies outside signed 64-bit integers"),
        (("add", "one apple"), 2, "the phrase holds 1 whole number and the skill needs 2"),
        (("add", "1.5 plus 2"), 2, "1.5 is no whole number"),
        (("add",), 2, "which numbers?"),
        (("power", "2 3"), 4, "has no skill power"),
    ],
)
def test_what_cannot_be_computed_is_one_clear_sentence(
    cellar: Cellar, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    ended, _, err = cellar("skill", "run", *arguments)
    assert ended == code
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("programs")
def test_skills_are_listed_and_shown(cellar: Cellar) -> None:
    listed = cellar("skill", "show")[1].splitlines()
    assert [line.split()[0] for line in listed] == [
        f"skill/{name}" for name in ("add", "divide", "modulo", "multiply", "subtract")
    ]
    shown = json.loads(cellar("skill", "show", "divide", "--json")[1])
    assert shown["program"]["code"] == [["argument", 0], ["argument", 1], ["divide"], ["return"]]
    assert "division   truncate" in cellar("skill", "show", "divide")[1]


GCD = {
    "format": "cellar.skill/1",
    "arity": 2,
    "division": "floor",
    "step_limit": 1000,
    "code": [
        ["argument", 0],
        ["argument", 1],
        ["duplicate"],
        ["jump_if_zero", 8],
        ["swap"],
        ["over"],
        ["modulo"],
        ["jump", 2],
        ["drop"],
        ["return"],
    ],
}


def test_a_program_of_one_s_own_is_published_and_run(cellar: Cellar, workplace: Path) -> None:
    Path("gcd.json").write_text(json.dumps(GCD, indent=1))
    Path("negate.json").write_text(
        json.dumps({**GCD, "arity": 1, "code": [["argument", 0], ["negate"], ["return"]]})
    )
    first = json.loads(cellar("skill", "publish", "gcd", "gcd.json", "--json")[1])
    again = json.loads(cellar("skill", "publish", "gcd", "gcd.json", "--json")[1])
    assert first["skill"] == again["skill"]
    assert json.loads(cellar("skill", "run", "gcd", "84 and thirty-six", "--json")[1])["value"] == 12
    assert json.loads(cellar("skill", "show", "gcd", "--json")[1])["program"] == GCD
    cellar("skill", "publish", "negate", "negate.json")
    assert cellar("skill", "run", "negate", "minus seven")[1].splitlines()[-1] == "result    7"


@pytest.mark.parametrize(
    ("text", "code", "sentence"),
    [
        (None, 2, "p.json does not exist; give a JSON file"),
        ("{}", 2, "this is no skill program: its format is not cellar.skill/1"),
        (json.dumps({**GCD, "arity": 99}), 2, "its arity is not 0 to 16"),
        (json.dumps({**GCD, "host": "rm"}), 2, "a field ['host'] that means nothing"),
        (json.dumps({"format": GCD["format"]}), 2, "it lacks arity and code and division and step_limit"),
    ],
)
def test_a_file_that_is_no_program_is_refused(
    cellar: Cellar, workplace: Path, text: str | None, code: int, sentence: str
) -> None:
    if text is not None:
        Path("p.json").write_text(text)
    ended, _, err = cellar("skill", "publish", "p", "p.json")
    assert ended == code
    assert sentence in err


def test_a_store_without_skills_names_the_command_that_makes_them(cellar: Cellar, workplace: Path) -> None:
    cellar("init")
    assert "`cellar skill build`" in cellar("skill", "show")[1]
    code, _, err = cellar("skill", "ask", "what is 2 plus 2?")
    assert code == 4
    assert "run `cellar skill build` first" in err


def test_skills_have_no_snapshot_to_choose(cellar: Cellar, workplace: Path) -> None:
    code, _, err = cellar("eval", "run", "skills", "--snapshot", "v1")
    assert code == 2
    assert "--snapshot goes with attachment, " in err
    assert "skills are named by their parameters" in err
    assert cellar("eval", "run", "nothing")[0] == 2


@pytest.mark.usefixtures("prefect_server")
def test_skills_are_built_asked_and_evaluated(cellar: Cellar, workplace: Path) -> None:
    Path("params.yaml").write_text(SMALL)

    built = json.loads(cellar("skill", "build", "--json")[1])
    code, out, err = cellar("eval", "run", "skills", "--out", "figures", "--json")
    assert code == 0, err
    evaluated = json.loads(out)

    assert built["skills"] + built["trained"] == evaluated["elements"]
    assert evaluated["tasks"] == {"disjoint": 20, "train": 20}
    assert evaluated["families"].keys() == {"standalone", "external-skill", "intervention"}
    assert json.loads(Path("figures/skills.json").read_text()) == evaluated
    shown = cellar("eval", "show", "figures/skills.json")[1]
    assert re.search(r"external-skill positional\s+disjoint\s+20\s+whole output [01]\.", shown)
    asked = json.loads(cellar("skill", "ask", "what is 6 times seven?", "--json")[1])
    assert asked["operands"] == [6, 7]
    assert asked["written"] == str(asked["value"])
    assert sum(asked["probabilities"].values()) == pytest.approx(1, abs=1e-5)
