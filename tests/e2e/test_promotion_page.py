"""The page on promotion, lineage and plan stays true: its commands run and print what it shows."""

import re
import shlex

import pytest

from tests.e2e.workplace import ROOT, Workplace

PAGE = (ROOT / "docs" / "promotion.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
FAILING = {"DOES NOT HOLD": 8}
"""Exit codes by what a command prints; all others end well."""


def shown() -> list[tuple[str, list[str]]]:
    """The commands of the page in order, with the lines that they print."""
    found: list[tuple[str, list[str]]] = []
    for line in "".join(BLOCKS).splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        else:
            found[-1][1].append(line)
    return found


def shape(lines: list[str]) -> list[str]:
    """Lines without what differs between runs and machines: digests, times, numbers, places, who."""
    text = "\n".join(lines)
    text = re.sub(r"code \S+( [0-9a-f]{40}(\+modified)?)?$", "code CODE", text, flags=re.MULTILINE)
    text = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "RUN", text)
    text = re.sub(r"\b[0-9a-f]{64}\b|@[0-9a-f]{12}\b|\b[0-9a-f]{12}\b", "DIGEST", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+", "TIME", text)
    text = re.sub(r"\bby \S+@\S+?(?=,| |$)|(?<=  )\S+@[^\s@]+(?=  )", "WHO", text, flags=re.MULTILINE)
    text = re.sub(r"^( *settings ).*$", r"\1SETTINGS", text, flags=re.MULTILINE)
    text = re.sub(r"^store \S+$", "store STORE", text, flags=re.MULTILINE)
    text = re.sub(r"-?\d[\d,.]*", "0", text)
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.mark.slow
def test_the_page_prints_what_it_shows(copy: Workplace, with_server: dict[str, str]) -> None:
    commands = shown()
    assert len(commands) >= 14
    for command, lines in commands:
        words = shlex.split(command)
        assert words[0] == "cellar"
        expected = next((code for what, code in FAILING.items() if what in "\n".join(lines)), 0)
        ended = copy.cellar(*words[1:], **with_server)
        assert ended.code == expected, (command, ended.err)
        assert shape((ended.out + ended.err).splitlines()) == shape(lines), command
