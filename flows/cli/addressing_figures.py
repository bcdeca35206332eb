"""Evaluating addressing from the command line, and its figures for people."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.evidence import indexed_snapshot, open_snapshot, read_pinned
from flows.cli.launch import orchestration
from flows.cli.published import Figures, ranged, show_published
from flows.cli.session import Session
from flows.formatting import columns

if TYPE_CHECKING:
    from flows.params import Params


def evaluate_addressing(params: "Params", session: Session, *, snapshot: str | None, out: Path) -> None:
    """Evaluate the index of a snapshot, or of the pin files, and write addressing.json."""
    from flows.settings import make_folder

    corpus = list(read_pinned(session, "corpus")["corpus"].refs) if snapshot is None else None
    opened = indexed_snapshot(session, snapshot)
    make_folder(out, "--out")
    with orchestration(session, session.settings) as settings:
        from flows.evaluate_addressing import evaluate_addressing as flow

        made = flow(params, settings, opened.id, corpus)
    show_published(session, made, out, ADDRESSING)


def evaluate_questions(
    params: "Params", session: Session, data: Path, *, snapshot: str | None, out: Path
) -> None:
    """Ask the questions of a file with the codec of a snapshot, or of the pin files; write questions.json."""
    from flows.errors import UsageError
    from flows.settings import make_folder
    from store.paths import existing_file
    from tasks.addressing import read_squad

    existing_file(data, UsageError, remedy="give a file in the SQuAD layout with --data")
    read_squad(data, longest=params.corpus.max_characters)  # what is wrong is said before a server is started
    opened = open_snapshot(session, snapshot)
    for kind in ("tokenizer", "codec"):
        opened.one(kind)  # or it is said that there is none, before a server is started
    make_folder(out, "--out")
    with orchestration(session, session.settings) as settings:
        from flows.evaluate_questions import evaluate_questions as flow

        made = flow(params, settings, opened.id, data.absolute())
    show_published(session, made, out, QUESTIONS)


def addressing_lines(result: dict[str, Any]) -> list[str]:
    """An evaluation of addressing, for people: what it comes to, then shares with intervals, and rates."""
    head = (
        f"{result['protocol']}: {result['tasks']:,} tasks from {result['documents']:,} documents, "
        f"{result['ambiguous']:,} of them ambiguous: their cue stands elsewhere with another answer"
    )
    rows: list[tuple[str, ...]] = [
        ("kind", "changed", "searcher", "candidate recall", "recall at 1", "the same cue", "the very element")
    ]
    for row in result["table"]:
        shown = (
            ranged(row[name])
            for name in ("candidate_recall", "recall_at_1", "recall_at_1_cue", "recall_at_1_named")
        )
        rows.append((row["kind"], f"{row['corruption']:.0%}", row["searcher"], *shown))
    rates: list[tuple[str, ...]] = [("searcher", "changed", "queries/s", "p50 ms", "p99 ms")]
    for searcher, by_share in result["costs"]["rates"].items():
        for share, rate in by_share.items():
            figures = (f"{rate['queries_per_second']:,.0f}", f"{rate['p50_ms']:.2f}", f"{rate['p99_ms']:.2f}")
            rates.append((searcher, f"{float(share):.0%}", *figures))
    return [head, *_answer(result), "", *columns(rows), "", *columns(rates)]


def _answer(result: dict[str, Any]) -> list[str]:
    """How often the right memory comes first over all kinds of tasks: in a sentence, and by searcher."""
    rows = {
        (row["searcher"], row["corruption"]): row["recall_at_1"] for row in result["table"] if _whole(row)
    }
    shares = sorted({share for _, share in rows})
    chosen = sorted({shares[0], shares[-1]})
    ours, *others = result["searchers"]
    found = [f"{100 * rows[ours, share]['value']:.1f} %" for share in chosen]
    more = {
        other: " and ".join(
            f"{100 * row['recall_at_1']['value']:.1f}"
            for share in chosen
            for row in result["margins"]
            if _whole(row) and (row["over"], row["corruption"]) == (other, share)
        )
        for other in others
    }
    changed = f", and in {found[-1]} with {chosen[-1]:.0%} of the cue changed" if len(chosen) > 1 else ""
    less = ", ".join(f"{points} points more than {other}" for other, points in more.items())
    table: list[tuple[str, ...]] = [("right memory first", *(_changed(share) for share in chosen))]
    table += [(name, *(ranged(rows[name, share]) for share in chosen)) for name in result["searchers"]]
    sentence = f"{ours} finds the right memory first in {found[0]} of tasks{changed}"
    return [f"{sentence}: {less}" if less else sentence, *columns(table)]


def _whole(row: dict[str, Any]) -> bool:
    return bool(row["kind"] == "all")


def _changed(share: float) -> str:
    return f"{share:.0%} of the cue changed" if share else "cue as it is"


def question_lines(result: dict[str, Any]) -> list[str]:
    """The figures of an evaluation by questions, for people: shares with intervals."""
    rows: list[tuple[str, ...]] = [("searcher", "recall at 1", "recall at 5", "reciprocal rank")]
    for name, found in {**result["figures"], "hybrid - bm25": result["margin"]}.items():
        rows.append((name, *(ranged(found[f]) for f in ("recall_at_1", "recall_at_5", "reciprocal_rank"))))
    head = (
        f"{result['protocol']}: {result['questions']:,} questions on {result['paragraphs']:,} paragraphs of "
        f"{result['articles']:,} articles; token recall of their memories {result['token_recall']:.4f}"
    )
    weights = ", ".join(f"{name} {weight:.3f}" for name, weight in result["weights"].items())
    return [head, *columns(rows), f"weights   {weights}"]


ADDRESSING = Figures("addressing.json", "searchers", addressing_lines)
QUESTIONS = Figures("questions.json", "weights", question_lines)
