"""The pages on hosts, LARC and ANNEAL stay true: on a small host their commands print what they show."""

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tiny_host import write_tiny_host

Cellar = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[3]
SMALL = """
host: {dtype: float32}
shadow:
  chunk_tokens: 32
  chunks: 3
  held: {selection_tokens: 256, guard_tokens: 256, sealed_tokens: 512}
anneal:
  evaluations: 6
  held: {selection_tokens: 256, guard_tokens: 256, sealed_tokens: 512}
  passages: 2
  passage_tokens: 32
  scored: 16
  sealed: {chunk_tokens: 96, resamples: 100}
replay: {training_jobs: 12, audit_jobs: 8, resamples: 100, fit: {jobs: 6}}
"""
INSTEAD = {
    "host fetch smollm2": "host add smollm2 tiny",  # no download
    "--tokens 24": "--tokens 4",
}


def shown(page: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a page in order, with the lines that they print."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = "".join(re.findall(r"```console\n(.*?)```", text, re.DOTALL)).splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("$ cellar ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start].removeprefix("$ cellar "), lines[start + 1 : end]


def shape(lines: list[str]) -> list[str]:
    """Lines without what differs between hosts and machines: digests, figures, bars, texts, reasons."""
    text = "\n".join(line for line in lines if not line.startswith("kept     nothing"))
    text = re.sub(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{12}\b", "DIGEST", text)
    text = re.sub(r"^(with|without)\b.*$", r"\1 TEXT", text, flags=re.MULTILINE)
    text = re.sub(r"^(from +|.* LlamaForCausalLM +)\S+$", r"\1ORIGIN", text, flags=re.MULTILINE)
    text = re.sub(r"^(layer +\d+ +[\d.]+) +#* +norm", r"\1 norm", text, flags=re.MULTILINE)
    text = re.sub(r"(?<!\w)[-+]?(\d[\d,.]*|(nan|inf)\b)|(?<=median: )-", "0", text)
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.fixture
def prepared(workplace: Path) -> Path:
    """What the pages begin with: a model directory, texts and a table of jobs."""
    (workplace / "params.yaml").write_text(SMALL)
    squares = [f"{n * n} IS A SQUARE, {n} IS NOT?\n" for n in range(600)]
    for name in ("wiki.txt", "other.txt"):
        (workplace / name).write_text("".join(squares))
    casks = [f"the {n}th cask is cool; keep it shut.\n" for n in range(200)]
    (workplace / "notes.txt").write_text("".join(casks))
    web = [json.dumps({"id": f"page{n}", "text": "".join(squares[40 * n : 40 * n + 40])}) for n in range(15)]
    (workplace / "web.jsonl").write_text("\n".join(web) + "\n")
    labels = ["COMPLETED", "FAILED", "ABORTED", "skipped"]
    rows = ["job_id,repository,job_name,status,head_sha,started_at,completed_at"]
    for number in range(24):
        start, end = f"2026-05-14T01:{number:02}:00Z", f"2026-05-14T01:{number + number % 3:02}:30Z"
        rows.append(f"{number},o/r,job{number % 3},{labels[number % 4]},c{number // 6},{start},{end}")
    rows.append("99,o/r,job1,COMPLETED,c1,2026-05-14T01:05:00Z,2026-05-14T01:04:00Z")
    (workplace / "jobs.csv").write_text("\n".join(rows) + "\n")
    return workplace


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize(
    ("page", "layers", "commands"),
    [
        ("docs/hosts.md", 2, 4),
        ("docs/anneal.md", 30, 7),
        ("docs/larc.md", 2, 3),
    ],
)
def test_the_commands_of_a_page_print_what_it_shows(
    cellar: Cellar, prepared: Path, page: str, layers: int, commands: int
) -> None:
    write_tiny_host(prepared / "tiny", layers=layers)
    write_tiny_host(prepared / "models" / "mine", layers=layers, seed=1)
    found = list(shown(page))
    assert len(found) >= commands
    for command, lines in found:
        given = command
        for text, other in INSTEAD.items():
            given = given.replace(text, other)
        code, out, err = cellar(*shlex.split(given))
        assert code == 0, (command, err)
        assert shape(out.splitlines()) == shape(lines), command


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server")
def test_the_commands_on_a_host_of_the_readme_run(cellar: Cellar, prepared: Path) -> None:
    write_tiny_host(prepared / "tiny")
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## On a language model")[2]
    block = section.partition("```console\n")[2].partition("```")[0]
    commands = [line.partition("  #")[0].removeprefix("$ cellar ") for line in block.splitlines()]
    assert len(commands) == 3
    for command in commands:
        code, _, err = cellar(*shlex.split(INSTEAD.get(command.strip(), command)))
        assert code == 0, (command, err)
