"""What else was evaluated, as the summary of an attachment evaluation takes it in."""

from collections.abc import Mapping, Sequence
from typing import Any

from flows.formatting import section
from store import Ref, Row, Store
from tasks.audit import audit_of
from tasks.evaluation import Condition, Sample, load_samples, newest_evaluation

EDITED = 12
_ANSWERING = (Condition.RETRIEVED, Condition.RAW_TEXT, Condition.RIGHT)
_TABLES = {"leakage": ("pairs", "documents", "samples"), "replacement": ("before", "samples")}


def evaluated_beside(store: Store, evaluation: Row, *, tokenizer: Ref) -> dict[str, Any]:
    """The newest other evaluations that go with one of attachments, by their sections of the summary.

    `leakage` is the audit of the evaluation, `reading` and `replacement` are those of its snapshot and core,
    `addressing` is that of the snapshot's index, `skills` that of skills in the store, and `rate` that of
    smaller cells with the same tokenizer. Each is missing where there is none yet.
    """
    made_from = {name: str(evaluation.provenance.get(name)) for name in ("snapshot", "core")}
    found = {
        "leakage": audit_of(store, evaluation.ref),
        "reading": newest_evaluation(store, "reading", **made_from),
        "replacement": newest_evaluation(store, "replacement", **made_from),
        "addressing": newest_evaluation(store, "addressing", snapshot=made_from["snapshot"]),
        "skills": newest_evaluation(store, "skills"),
        "rate": newest_evaluation(store, "rate", tokenizer=str(tokenizer)),
    }
    sections: dict[str, Any] = {
        name: {**one[1], "refs": _refs(one[0], _TABLES.get(name, ("samples",)))}
        for name, one in found.items()
        if one is not None
    }
    if (read := found["reading"]) is not None:
        sections["reading"]["latency_ms"] = dict(section(read[0].facts, "single_task_milliseconds"))
    if (replaced := found["replacement"]) is not None:
        sections["replacement"]["answers"] = _edited(store, *replaced)
    return sections


def _edited(store: Store, row: Row, summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The first tasks that ask the replaced element for what was edited, or write something else now.

    Each has its prompt, what the old and the new version say (None where that is not known), and what was
    written before and after under each condition that shows it.
    """
    sides = [
        {(sample.condition, sample.task): sample for sample in _samples(store, row, table)}
        for table in ("before", "samples")
    ]
    edited = section(summary, "edited")
    pairs = [(old, sides[1][key]) for key, old in sides[0].items() if key in sides[1]]
    by_task: dict[str, dict[str, tuple[Sample, Sample]]] = {}
    for old, new in pairs:
        if old.element == summary.get("replaced") and old.condition in _ANSWERING:
            by_task.setdefault(old.task, {})[old.condition] = (old, new)
    chosen = [
        task
        for task, answers in sorted(by_task.items())
        if task in edited or any(old.written != new.written for old, new in answers.values())
    ]
    return [_answers(by_task[task], edited.get(task)) for task in chosen[:EDITED]]


def _answers(answers: Mapping[str, tuple[Sample, Sample]], new_text: object) -> dict[str, Any]:
    asked = next(iter(answers.values()))[0]
    return {
        "kind": asked.kind,
        "cue": asked.cue,
        "old": asked.target,
        "new": new_text if isinstance(new_text, str) else None,
        "written": {
            name: {"before": answers[name][0].written, "after": answers[name][1].written}
            for name in _ANSWERING
            if name in answers
        },
    }


def _samples(store: Store, row: Row, table: str) -> list[Sample]:
    ref = row.provenance.get(table)
    return load_samples(store.read(Ref.parse(str(ref)))) if ref else []


def _refs(row: Row, tables: Sequence[str]) -> dict[str, str]:
    """The references of a summary and of the tables beside it."""
    named = {name: row.provenance.get(name) for name in tables}
    return {"summary": str(row.ref), **{name: str(ref) for name, ref in named.items() if ref}}
