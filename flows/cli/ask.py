"""The command that asks a snapshot in plain words and shows the decoded text around the answer."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from flows.cli.launch import Injected

if TYPE_CHECKING:
    from rich.text import Text

    from tasks.retrieval import AskHit

# A token's colour by the decoder's confidence in it: sure, fair, doubtful.
_SURE, _FAIR = 0.9, 0.5


def ask(
    *words: str,
    snapshot: str | None = None,
    top: Annotated[int, Parameter(name=["--top", "-k"])] = 3,
    context: int = 24,
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
    from flows.pins import read_pin
    from tasks.retrieval import Asker, Index

    if not words:
        raise UsageError('what are the words? For example: cellar ask "least squares solution"')
    store = session.open_store()
    chosen = store.snapshot(snapshot or str(read_pin(session.settings.pins, "snapshot").snapshot))
    asker = Asker(chosen, Index.open(store, chosen))
    hits = asker.ask(" ".join(words), k=top, context_tokens=context)
    session.emit(
        {"snapshot": chosen.id, "words": " ".join(words), "hits": [_record(hit) for hit in hits]},
        [] if hits else ["nothing in this snapshot comes near these words"],
    )
    if not session.as_json:
        _print(hits)


def _record(hit: "AskHit") -> dict[str, Any]:
    return {**asdict(hit), "text": hit.text, "confidence": hit.confidence}


def _print(hits: "list[AskHit]") -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for number, hit in enumerate(hits, start=1):
        console.print(f"[bold]{number}. {hit.name}[/bold]  {hit.match} match, score {hit.score:.2f}")
        console.print(
            f"   version  {hit.version}\n   checksum {hit.checksum}\n   source   {hit.source}", style="dim"
        )
        console.print(_marked(hit))
        console.print(f"   confidence {hit.confidence:.3f}, lowest {_lowest(hit):.3f}\n", style="dim")


def _marked(hit: "AskHit") -> "Text":
    """The decoded text; the match stands out, and doubtful tokens carry their confidence's colour."""
    from rich.text import Text

    text = Text()
    for token in hit.tokens:
        colour = "green" if token.confidence >= _SURE else "yellow" if token.confidence >= _FAIR else "red"
        text.append(token.text, style=f"bold underline {colour}" if token.matched else colour)
    return text


def _lowest(hit: "AskHit") -> float:
    return min((token.confidence for token in hit.tokens), default=0.0)
