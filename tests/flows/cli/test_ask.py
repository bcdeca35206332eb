"""How `cellar ask` prints what documents of unknown origin are called and say."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flows.cli.ask import print_hits
from store import Store
from tasks.retrieval import AskedToken, AskHit

Cellar = Callable[..., tuple[int, str, str]]


def hit(*, source: str, text: str) -> AskHit:
    tokens = (AskedToken(text, 0.9, matched=True),)
    return AskHit("memory/a", "1" * 64, "2" * 64, source, "exact", 1.0, 1.0, 0, tokens)


def test_no_escape_sequence_of_a_document_reaches_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_hits([hit(source="\x1b[2Ja.txt", text="one\ntwo \x1b]0;title\x07 \u202eeerht")])

    out = capsys.readouterr().out
    assert "one\ntwo ␛]0;title␇ ⟨U+202E⟩eerht" in out
    assert "source   ␛[2Ja.txt" in out
    assert {character for character in out if not character.isprintable()} == {"\n"}


def test_brackets_in_a_name_and_a_text_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_hits([hit(source="[bold red]a[link=x].txt", text="[red]b[/red] :smile: [/nope]")])

    out = capsys.readouterr().out
    assert "source   [bold red]a[link=x].txt" in out
    assert "[red]b[/red] :smile: [/nope]" in out


def test_without_a_pin_the_question_can_name_its_snapshot(cellar: Cellar, workplace: Path) -> None:
    Store.create(str(workplace / "build" / "store"))

    code, _, err = cellar("ask", "words")

    assert code == 2
    assert "run `cellar snapshot pin` first, or name a snapshot with --snapshot" in err


def test_a_question_in_another_encoding_is_refused(cellar: Cellar, workplace: Path) -> None:
    code, _, err = cellar("ask", "caf\udce9")

    assert (code, "the question holds bytes that are no UTF-8" in err) == (2, True), err
    assert list(workplace.iterdir()) == []
