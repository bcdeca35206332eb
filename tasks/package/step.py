"""The package room's door: write an evaluation as one export that opens anywhere, and score it again.

A package is an export of a snapshot like any other: it holds the core, its codec and tokenizer, the
memories that some task is shown, and the evaluation with its samples and its tasks as they were posed.
Indexes, the corpus and every other memory stay behind.
"""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from store import Element, Ref, Row, Snapshot, Store
from store.transfer import ExportReport, check_archive, export_snapshot
from tasks.assembly import load_core
from tasks.codec import load_codec
from tasks.corpus import Tokenizer
from tasks.errors import BadPayload
from tasks.evaluation import (
    EvaluationParams,
    EvaluationSetting,
    Evaluator,
    PublishedEvaluation,
    evaluate_attachment,
    load_samples,
    named_elements,
)
from tasks.package.posed import PosedTasks, check_vocabulary, load_posed
from tasks.package.reproduction import Reproduction, compare
from tasks.package.scratch import scratch
from tasks.progress import Progress, silent
from tasks.retrieval import Index

POSED = "tasks"
"""Last part of the name of the element that holds the posed tasks."""

TOLERANCE = 1e-4
"""Nats per target token between processors and versions of torch; on equal ones nothing differs."""

_MOST_BATCH = 4096
"""Tasks scored together that a package of unknown origin may ask for."""


def write_package(
    store: Store,
    params: EvaluationParams,
    *,
    snapshot: Snapshot,
    core: Ref,
    corpus: Sequence[Ref],
    path: Path,
    work_dir: Path,
    progress: Progress = silent,
) -> ExportReport:
    """Write the evaluation of a core against a snapshot to `path`: a folder, or a file if that ends in .tar.

    The evaluation is made first unless it is published; what is chosen is put together in `work_dir`. The
    same evaluation gives the same file, byte by byte. Raises what `evaluate_attachment` and
    `export_snapshot` raise; nothing is at `path` then.
    """
    evaluation = evaluate_attachment(
        store, params, snapshot=snapshot, core=core, corpus=corpus, progress=progress
    )
    setting = EvaluationSetting.open(store, snapshot, core, sorted(corpus, key=lambda ref: ref.name))
    tasks, plan = setting.prepare(Index.open(store, snapshot), params)
    names = named_elements(plan)
    posed = PosedTasks(tasks, plan, {name: setting.texts[name] for name in names})
    with scratch(work_dir) as folder:
        selection = Store.create(f"file:{(folder / 'store').absolute()}")
        elements = list(_selected(store, snapshot, core, names, evaluation))
        elements.append(_posed_element(params, posed, evaluation))
        refs = selection.publish(elements, message=f"Evidence of {evaluation.summary_ref.name}")
        pinned = selection.pin(refs, message=f"Package of snapshot {snapshot.id[:12]}")
        return export_snapshot(selection, pinned, path)


def _selected(
    store: Store, snapshot: Snapshot, core: Ref, names: Sequence[str], evaluation: PublishedEvaluation
) -> Iterator[Element]:
    """What is taken from the store, with what it requires, each as the element it was."""
    support = [snapshot.one("tokenizer"), snapshot.one("codec")]
    rows = [*support, *(snapshot.get(name) for name in names)]
    yield from (_element(row, payload) for row, payload in snapshot.stream(rows))
    for ref in (core, evaluation.samples_ref, evaluation.summary_ref):
        row = store.catalog().get(ref.version)
        assert row is not None, f"{ref} was read a moment ago"
        yield _element(row, store.read(row))


def _element(row: Row, payload: bytes) -> Element:
    return Element(
        row.kind,
        row.name.partition("/")[2],
        payload,
        media=row.media,
        requires=row.requires,
        provenance=row.provenance,
        facts=row.facts,
    )


def _posed_element(params: EvaluationParams, posed: PosedTasks, evaluation: PublishedEvaluation) -> Element:
    return Element(
        "evaluation",
        f"{params.name}/{POSED}",
        posed.to_bytes(),
        requires=(evaluation.summary_ref.version,),
        provenance={"evaluation": str(evaluation.summary_ref)},
        facts={"tasks": len(posed.tasks), "elements": len(posed.documents)},
    )


def run_package(path: str, progress: Progress = silent) -> Reproduction:
    """Check every byte of a package, score its tasks again and compare every sample with its own.

    `progress` counts task-conditions. Raises `InputError` where there is no export, `IntegrityError` and
    `BadPayload` for anything damaged, forged or incomplete.
    """
    store, export = check_archive(path)
    snapshot = store.snapshot(export.snapshot)
    summary_row, samples_row, posed_row = _evaluation_rows(snapshot)
    summary = _summary(snapshot.read(summary_row))
    params = _params(summary.get("settings"))
    expected, posed = load_samples(snapshot.read(samples_row)), load_posed(snapshot.read(posed_row))
    setting = _setting(snapshot, posed)
    began = time.perf_counter()
    evaluator = Evaluator(
        setting.core,
        setting.reader(posed.plan, params),
        lambda ids: setting.tokenizer.decode(ids),
        params.batch_tasks,
    )
    samples, _ = evaluator.run(posed.tasks, posed.plan, progress)
    losses = compare(expected, samples)
    if losses is None:
        raise BadPayload(
            f"{samples_row.name} is about other tasks than {posed_row.name}; make the package again"
        )
    return Reproduction(
        snapshot=snapshot.id,
        source=str(summary.get("snapshot", "")),
        core=str(snapshot.one("core").ref),
        tasks=len(posed.tasks),
        elements=len(posed.documents),
        conditions=losses,
        identical=not any(loss.differing for loss in losses.values()),
        seconds=time.perf_counter() - began,
    )


def is_package(snapshot: Snapshot) -> bool:
    """Whether a snapshot holds an evaluation's tasks as they were posed, as packages alone do."""
    return any(row.name.endswith(f"/{POSED}") for row in snapshot.rows("evaluation"))


def _evaluation_rows(snapshot: Snapshot) -> tuple[Row, Row, Row]:
    """Summary, samples and posed tasks of a package."""
    rows = {row.name: row for row in snapshot.rows("evaluation")}
    names = sorted(rows, key=len)[:1]
    wanted = [part for name in names for part in (name, f"{name}/samples", f"{name}/{POSED}")]
    if set(wanted) != set(rows) or len(snapshot.rows("core")) != 1:
        raise BadPayload(
            f"snapshot {snapshot.id[:12]} is no package of an evaluation; make one with `cellar eval package`"
        )
    summary, samples, posed = (rows[name] for name in wanted)
    return summary, samples, posed


def _setting(snapshot: Snapshot, posed: PosedTasks) -> EvaluationSetting:
    """The packaged core, codec, tokenizer and documents, if they go together."""
    core_row, codec_row = snapshot.one("core"), snapshot.one("codec")
    core, codec = load_core(snapshot.read(core_row)), load_codec(snapshot.read(codec_row))
    tokenizer = Tokenizer.from_bytes(snapshot.read(snapshot.one("tokenizer")))
    if core.vocab_size != codec.vocab_size or codec_row.version not in core_row.requires:
        raise BadPayload(f"{core_row.name} and {codec_row.name} do not go together; make the package again")
    check_vocabulary(posed, core.vocab_size)
    missing = sorted(set(posed.documents) - {row.name for row in snapshot.rows("memory")})
    if missing:
        raise BadPayload(f"the package lacks {missing[0]}; make it again")
    return EvaluationSetting(snapshot, core, codec, tokenizer, dict(posed.documents))


def _summary(payload: bytes) -> dict[str, Any]:
    try:
        summary = json.loads(payload)
        if not isinstance(summary, dict):
            raise ValueError("it is no object")
    except (ValueError, RecursionError) as error:
        raise BadPayload("the evaluation's summary is no JSON object; make the package again") from error
    return summary


def _params(settings: object) -> EvaluationParams:
    try:
        params = EvaluationParams.model_validate(settings)
    except ValidationError as error:
        raise BadPayload("the evaluation has no settings of cellar; make the package again") from error
    if params.batch_tasks > _MOST_BATCH:
        raise BadPayload(
            f"the evaluation scores {params.batch_tasks:,} tasks at once, at most {_MOST_BATCH:,} fit"
        )
    return params
