"""The commands on shadows, through the real command line, store, flow and a tiny host."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tiny_host import write_tiny_host

Cellar = Callable[..., tuple[int, str, str]]
SMALL = (
    *("--set", "host.name=tiny", "--set", "host.dtype=float32", "--set", "shadow.layers=[1,2]"),
    *("--set", "shadow.chunk_tokens=32", "--set", "shadow.chunks=6"),
    *("--set", "shadow.held.selection_tokens=256", "--set", "shadow.held.guard_tokens=256"),
    *("--set", "shadow.held.sealed_tokens=512"),
)

SEARCH = (
    *("--set", 'anneal.retention=[{"path": "squares.txt"}]', "--set", "anneal.evaluations=12"),
    *("--set", "anneal.passages=2", "--set", "anneal.passage_tokens=64", "--set", "anneal.scored=32"),
)
SEALED = (
    *("--set", "anneal.sealed.chunk_tokens=96", "--set", "anneal.sealed.card_tokens=5"),
    *("--set", 'anneal.sealed.baselines=["single", "random"]'),
)


@pytest.fixture
def text(workplace: Path) -> Path:
    write_tiny_host(workplace / "mine", layers=3)
    squares = "".join(f"{n * n} IS A SQUARE, {n} IS NOT?\n" for n in range(600))
    (workplace / "squares.txt").write_text(squares)
    path = workplace / "casks.txt"
    path.write_text("".join(f"the {n}th cask is cool; keep it shut.\n" for n in range(200)))
    return path


def planned(cellar: Cellar, *arguments: str) -> dict[str, list[str]]:
    """The steps of a plan that would run, with their reasons."""
    code, out, err = cellar("plan", *arguments, "--json")
    assert code == 0, err
    return {step["name"]: step["reasons"] for step in json.loads(out)["steps"] if step["state"] != "done"}


@pytest.mark.usefixtures("prefect_server")
def test_a_text_is_written_shown_and_merged(cellar: Cellar, workplace: Path, text: Path) -> None:
    assert cellar("host", "add", "tiny", "mine")[0] == 0
    casks = ("--source", str(text), "--name", "casks", *SMALL)
    assert planned(cellar, "anneal-eval", *casks, *SEARCH) == {
        "writing": ["never built"],
        "consolidation": ["its input will change: writing"],
        "evaluation": ["its input will change: consolidation"],
    }
    code, out, err = cellar("anneal", "write", "--source", str(text), "--name", "casks", *SMALL, "--json")
    assert code == 0, err
    written = json.loads(out)
    assert planned(cellar, "anneal-write", *casks) == {}
    assert planned(cellar, "anneal-write", *casks, "--set", "shadow.chunks=5") == {
        "writing": ["chunks 6 -> 5"]
    }
    squares = ("--source", "squares.txt", "--name", "casks", *SMALL)
    assert planned(cellar, "anneal-write", *squares) == {"writing": ["its text changed"]}
    assert written["shadow"].startswith("shadow/casks.written@")
    assert (written["layers"], written["alphas"], written["chunks"]) == ([1, 2], [1.0, 1.0], 6)
    again = cellar("anneal", "write", "--source", str(text), "--name", "casks", *SMALL, "--json")
    assert json.loads(again[1]) == written
    code, out, err = cellar(
        *("anneal", "consolidate", "--source", str(text), "--name", "casks", "--json"), *SMALL, *SEARCH
    )
    assert code == 0, err
    assert planned(cellar, "anneal-consolidate", *casks, *SEARCH) == {}
    other = ("--set", 'anneal.retention=[{"path": "casks.txt"}]')
    assert planned(cellar, "anneal-consolidate", *casks, *SEARCH, *other) == {
        "consolidation": ["other texts than before"]
    }
    found = json.loads(out)
    assert (found["evaluations"], found["host"]) == (12, written["host"])
    assert "guard " in cellar("anneal", "show", "casks")[1]
    code, out, err = cellar(
        *("anneal", "eval", "--source", str(text), "--name", "casks"), *SMALL, *SEARCH, *SEALED
    )
    assert code == 0, err
    assert out.splitlines()[0].startswith("5 sealed chunks, host ")
    assert planned(cellar, "anneal-eval", *casks, *SEARCH, *SEALED) == {}
    assert planned(cellar, "anneal-eval", *casks, *SEARCH) == {"evaluation": ["never evaluated so"]}
    result = json.loads((workplace / "results" / "anneal.json").read_text())
    assert result["shadow"] == found["shadow"]
    assert set(result["gain"]) == {"naive", "consolidated", "single", "random"}
    assert cellar("eval", "show")[1] == out.replace("wrote results/anneal.json\n", "")
    code, out, _ = cellar("anneal", "show")
    assert (code, [line.split()[0] for line in out.splitlines()]) == (
        0,
        ["shadow/casks", "shadow/casks.written"],
    )
    assert "layer 1  1.000  ####################" in cellar("anneal", "show", "casks.written")[1]
    code, out, err = cellar("anneal", "merge", "casks.written", "--out", "merged", *SMALL)
    assert code == 0, err
    assert out.splitlines()[-1] == "wrote   merged, 2 layers"
    code, _, err = cellar("host", "add", "merged", "merged")
    assert code == 0, err


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("write", "--source", "casks.txt", "--set", "host.name=other"), 4, "has no host other"),
        (("show", "casks"), 4, "has no shadow/casks"),
        (("write", "--set", "shadow.step_size=0"), 2, "shadow.step_size"),
        (("consolidate", "--source", "casks.txt", *SMALL), 2, "set anneal.retention"),
        (("cumulate",), 2, "learns two domains or more"),
        (("attach", "casks", "--text", " "), 2, "name shadows"),
        (("merge", "--out", "x"), 2, "which shadows?"),
        (("merge", "casks", "--out", "x", *SMALL), 4, "has no shadow/casks"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    cellar: Cellar, text: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    assert cellar("host", "add", "tiny", "mine")[0] == 0
    found, _, err = cellar("anneal", *arguments)
    assert found == code, err
    assert sentence in err


@pytest.mark.usefixtures("prefect_server")
def test_domains_are_learned_one_after_another(cellar: Cellar, workplace: Path, text: Path) -> None:
    assert cellar("host", "add", "tiny", "mine")[0] == 0
    (workplace / "brackets.txt").write_text("".join(f"[{n}] -> ({n}, {n})\n" for n in range(400)))
    domains = '{"casks": {"path": "casks.txt"}, "brackets": {"path": "brackets.txt"}}'
    two = ("--set", f"anneal.domains={domains}", "--set", "shadow.name=two", *SMALL, *SEARCH, *SEALED)
    before = planned(cellar, "anneal-cumulate", *two)
    code, out, err = cellar("anneal", "cumulate", *two)
    assert code == 0, err
    assert before["writing of two.casks"] == ["never built"]
    assert before["writing of two.brackets"] == ["its input will change: domains before it"]
    assert planned(cellar, "anneal-cumulate", *two) == {}
    assert [line.split()[0] for line in out.splitlines()[1:3]] == ["casks", "brackets"]
    result = json.loads((workplace / "results" / "cumulative.json").read_text())
    assert [ref.partition("@")[0] for ref in result["shadows"]] == ["shadow/two.casks", "shadow/two.brackets"]
    assert len(result["losses"]["retention"]) == 3
    code, out, err = cellar(
        *("anneal", "attach", "two.casks", "--text", "the 7th cask", "--tokens", "9", *SMALL, "--json")
    )
    assert code == 0, err
    continued = json.loads(out)
    assert continued["shadows"] == result["shadows"][:1]
    assert continued["detached"]
    code, out, err = cellar("anneal", "merge", "two.casks", "two.brackets", "--out", "merged", *SMALL)
    assert code == 0, err
