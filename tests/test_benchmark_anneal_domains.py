"""The benchmark of several texts under several seeds: every text is learned under every seed, and told of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.anneal_domains import main
from tests.tiny_host import write_tiny_host


def _text(path: Path, first: int) -> Path:
    """About 16,000 tokens of a byte-level host."""
    path.write_text(" ".join(f"line {number} of {path.stem}" for number in range(first, first + 800)))
    return path


def test_every_text_is_learned_under_every_seed_and_a_second_run_goes_on(tmp_path: Path) -> None:
    host = write_tiny_host(tmp_path / "tiny", layers=3)
    web = tmp_path / "web.jsonl"
    text = _text(tmp_path / "web.txt", 0).read_text()
    web.write_text(json.dumps({"id": "one", "text": text}) + "\n")
    out, store = tmp_path / "report.json", tmp_path / "store"
    arguments = ["--host", str(host), "--no-packages", "--retention", str(web), "--store", str(store)]
    for name, first in (("ships", 100), ("birds", 3_000)):
        arguments += ["--domain", f"{name}={_text(tmp_path / f'{name}.txt', first)}"]
    arguments += ["--seeds", "2", "--chunks", "4", "--evaluations", "6", "--out", str(out)]
    code = main(arguments)
    report = json.loads(out.read_text())
    figures = {one["name"]: one["values"] for one in report["section"]["figures"]}
    assert len(figures["ships: gain consolidated"]) == len(figures["birds: drift naive"]) == 2
    held = {one["name"]: one for one in report["section"]["requirements"]}
    both = [sum(figures[f"{name}: gain consolidated"]) / 2 for name in ("ships", "birds")]
    assert held["mean gain of domains"]["value"] == pytest.approx(sum(both) / 2)
    assert held["least gain of a domain"]["value"] == pytest.approx(min(both))
    assert code == int(any(one["verdict"] == "FAIL" for one in held.values()))
    assert main(arguments) == code
    assert json.loads(out.read_text())["found"] == report["found"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--retention", "web.txt", "--domain", "ships"], "NAME=SOURCE"),
        (["--retention", "web.txt", "--domain", "a b=x.txt"], "'a b' cannot name a domain"),
        (["--retention", "web.txt", "--domain", "retention-0=x.txt"], "cannot name a domain"),
        (["--retention", "web.txt", "--domain", "Numpy=x.txt"], "two domains have one name"),
        (["--retention", "web.txt", "--domain", "a=x.txt", "--domain", "a=y.txt"], "two domains have one"),
        (["--retention", "web.txt", "--seeds", "0"], "above zero"),
        (["--retention", "web.txt", "--step-size", "nan"], "above zero"),
        (["--retention", "web.txt", "--host", "nowhere"], "holds no model"),
        ([], "--retention"),
    ],
)
def test_what_cannot_be_measured_is_said(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert said in capsys.readouterr().err
