"""The command that asks a snapshot in plain words and shows the decoded text around the answer."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from flows.cli.evidence import indexed_snapshot
from flows.cli.given_text import given_text
from flows.cli.launch import Injected

if TYPE_CHECKING:
    from rich.text import Text

    from tasks.retrieval import AskHit

_COLOURS = {"sure": "green", "fair": "yellow", "doubtful": "red"}


def ask(
    *words: str,
    snapshot: str | None = None,
    top: Annotated[int, Parameter(name=["--top", "-k"], validator=Number(gte=1))] = 3,
    context: Annotated[int, Parameter(validator=Number(gte=0))] = 24,
    session: Injected,
) -> None:
    """Find the elements that hold some words, and print what their memories say around them.

    Parameters
    ----------
    words
        Some words from a document.
    snapshot
        Which snapshot: its id, a tag or a head; otherwise the one that was pinned last.
    top
        Show this many elements.
    context
        Tokens shown on both sides of the match.
    """
    from flows.errors import UsageError
    from tasks.retrieval import Asker, Index

    if not words:
        raise UsageError('what are the words? For example: cellar ask "least squares solution"')
    question = given_text(" ".join(words), "the question")
    store = session.open_store()
    chosen = indexed_snapshot(session, snapshot)
    asker = Asker(chosen, Index.open(store, chosen))
    hits = asker.ask(question, k=top, context_tokens=context)
    session.emit(
        {"snapshot": chosen.id, "words": question, "hits": [_record(hit) for hit in hits]},
        [] if hits else ["nothing in this snapshot comes near these words"],
    )
    if not session.as_json:
        if hits and all(hit.match == "nearest" for hit in hits):
            print("no element of this snapshot holds these words; the nearest are")
        print_hits(hits)


def _record(hit: "AskHit") -> dict[str, Any]:
    return {**asdict(hit), "text": hit.text, "confidence": hit.confidence}


def print_hits(hits: "list[AskHit]") -> None:
    """Print hits for people."""
    from rich.console import Console

    from flows.formatting import printable

    class Pipe(Console):
        def on_broken_pipe(self) -> None:
            """Leave it to the command line, which ends quietly; rich would exit with code 1."""
            raise BrokenPipeError

    # Names, sources and decoded text come from documents that anybody wrote: neither markup nor an escape
    # sequence in them may act on the terminal.
    console = Pipe(highlight=False, soft_wrap=True, markup=False, emoji=False)
    for number, hit in enumerate(hits, start=1):
        console.print(f"{number}. {printable(hit.name)}", style="bold", end="")
        console.print(f"  {hit.match} match, score {hit.score:.2f}")
        source = printable(hit.source)
        console.print(
            f"   version  {hit.version}\n   checksum {hit.checksum}\n   source   {source}", style="dim"
        )
        console.print(_marked(hit))
        console.print(f"   confidence {hit.confidence:.3f}, lowest {_lowest(hit):.3f}\n", style="dim")


def _marked(hit: "AskHit") -> "Text":
    """The decoded text; the match stands out, and doubtful tokens carry their confidence's colour."""
    from rich.text import Text

    from flows.formatting import confidence_level, printable

    text = Text()
    for token in hit.tokens:
        colour = _COLOURS[confidence_level(token.confidence)]
        text.append(printable(token.text), style=f"bold underline {colour}" if token.matched else colour)
    return text


def _lowest(hit: "AskHit") -> float:
    return min((token.confidence for token in hit.tokens), default=0.0)
