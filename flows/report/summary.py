"""The summary of a chain: every figure that it must answer for, read from the store's records."""

import json
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flows.params import Params
from flows.pins import Pin, Stage
from flows.report.beside import evaluated_beside
from flows.settings import Settings
from store import Store
from tasks.evaluation import Sample, load_samples

EXAMPLES = 12
_CODEC_FIGURES = ("token_recall", "span8_exact", "loss", "cell_bytes_per_block")
_NAMED: tuple[Stage, ...] = ("tokenizer", "codec", "indexes", "core", "evaluation")
_RETRIEVAL_SHARES = ("candidate_recall", "recall_at_1", "recall_at_1_named")
_COUNTS = ("documents", "published", "rejected")


def summarise(store: Store, pins: Mapping[Stage, Pin]) -> dict[str, Any]:
    """Everything that follows from what was pinned: counts, codec, retrieval, conditions, gains, accounts.

    What else was evaluated stands beside them (`evaluated_beside`), as far as the store has it.
    Figures are reproducible; seconds, milliseconds and rates are those of the run that published the
    evaluation.
    """
    evaluation = pins["evaluation"]
    ref, samples_ref = evaluation.references()
    found = json.loads(store.read(ref))
    row = store.catalog().get(ref.version)
    assert row is not None, "a reference that was just read is visible"
    costs = row.facts
    memory = pins["memory"].figures
    assert evaluation.snapshot is not None, "an evaluation is of a snapshot"
    return {
        **{name: memory[name] for name in _COUNTS},
        "snapshot": evaluation.snapshot,
        "refs": {
            stage: list(pins[stage].refs) for stage in ("tokenizer", "codec", "indexes", "core", "evaluation")
        },
        "corpus": pins["corpus"].figures,
        "codec": {name: memory[name] for name in _CODEC_FIGURES},
        "retrieval": {**found["retrieval"], **costs["addressing"]},
        "nll": found["nll"],
        "greedy_exact": found["greedy_exact"],
        "gain": found["gain"],
        "standalone": found["standalone"],
        "conditions": {
            name: _condition(values, costs["single_task_milliseconds"].get(name))
            for name, values in found["conditions"].items()
        },
        "tasks": {"count": found["tasks"], "documents": found["documents"], "by_kind": found["kinds"]},
        "accounting": found["accounting"],
        "storage": found["storage"],
        "reconstruction": found["reconstruction"],
        "rejected_documents": memory.get("rejected_documents", []),
        "examples": _examples(load_samples(store.read(samples_ref))),
        **evaluated_beside(store, row, tokenizer=pins["tokenizer"].one("tokenizer")),
    }


def run_record(
    params: Params,
    settings: Settings,
    stages: Mapping[str, float | None],
    wall_s: float,
    *,
    found: Sequence[str],
) -> dict[str, Any]:
    """How long it took and with which parameters and settings; `peak_rss_mb` is of this process, in MiB.

    `stages` are the seconds of the work, whichever run did it, None where nobody knows; `found` names the
    stages whose work this run found done. `wall_s` is of this run alone.
    """
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "stages": {name: round(seconds, 3) for name, seconds in stages.items() if seconds is not None},
        "found": list(found),
        "wall_s": round(wall_s, 3),
        "peak_rss_mb": round(peak / (1024**2 if sys.platform == "darwin" else 1024), 1),
        "params": params.model_dump(mode="json"),
        "settings": settings.model_dump(mode="json"),
    }


def write_summary(summary: Mapping[str, Any], folder: Path) -> Path:
    """Write `<folder>/summary.json` and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "summary.json"
    path.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def write_metrics(summary: Mapping[str, Any], folder: Path) -> Path:
    """Write `<folder>/metrics.json`, the figures that follow from the inputs alone, and return its path."""
    metrics = {name: summary[name] for name in (*_COUNTS, "codec", "nll", "greedy_exact")}
    metrics["retrieval"] = {name: summary["retrieval"][name] for name in _RETRIEVAL_SHARES}
    metrics["gain"] = {name: value for name, value in summary["gain"].items() if isinstance(value, float)}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "metrics.json"
    path.write_text(json.dumps(metrics, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


def _condition(values: Mapping[str, Any], latency_ms: float | None) -> dict[str, Any]:
    figures = {name: values[name]["value"] for name in ("nll", "token_accuracy", "greedy_exact")}
    return {
        "family": values["family"],
        **figures,
        "nll_ci95": [values["nll"]["low"], values["nll"]["high"]],
        "bytes_read": values["bytes_read"],
        "mean_weight": values["mean_weight"],
        "latency_ms": latency_ms,
    }


def _examples(samples: list[Sample]) -> list[dict[str, Any]]:
    """A few tasks, evenly spread, with what the core wrote under every condition."""
    by_task: dict[str, dict[str, Sample]] = {}
    for sample in samples:
        by_task.setdefault(sample.task, {})[sample.condition] = sample
    names = sorted(by_task)
    chosen = names[:: max(1, len(names) // EXAMPLES)][:EXAMPLES]
    return [_example(by_task[name]) for name in chosen]


def _example(answers: Mapping[str, Sample]) -> dict[str, Any]:
    any_sample = next(iter(answers.values()))
    retrieved = answers.get("retrieved")
    return {
        "document": any_sample.element,
        "kind": any_sample.kind,
        "cue": any_sample.cue,
        "target": any_sample.target,
        "retrieved": retrieved.evidence if retrieved else "",
        "answers": {condition: sample.written for condition, sample in answers.items()},
    }
