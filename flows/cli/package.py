"""Packages of evaluations from the command line: write one, score one again and compare."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.evidence import exact_core, indexed_snapshot
from flows.cli.launch import Injected, ParamsFile, Set, orchestration
from flows.cli.published import Figures, write_figures
from flows.formatting import columns, size

if TYPE_CHECKING:
    from flows.cli.session import Session


def package(
    destination: Path,
    /,
    *,
    snapshot: str | None = None,
    core: str | None = None,
    params: ParamsFile = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Write an evaluation as one portable export: its tasks, the memories that they are shown, the core.

    The evaluation is made first if the store has none. `cellar eval run --package` scores it again on any
    machine, without the store; `cellar snapshot import` takes it into one.

    Parameters
    ----------
    destination
        The new folder, or a tar file if it ends in .tar.
    snapshot
        Which snapshot: its id, a tag or a head; otherwise the one that was pinned last.
    core
        With this core of the store; otherwise the newest one of the same parameters that reads the snapshot's
        codec, or a new one.
    """
    from flows.held import held
    from flows.params import load_params
    from store.transfer import check_destination

    chosen = load_params(params, set_ or ())
    store = session.open_store()
    check_destination(destination)  # before the evaluation is made
    opened = indexed_snapshot(session, snapshot)
    exact = exact_core(session, opened, core)
    with orchestration(session, session.settings) as settings:
        from flows.evaluate_snapshot import evaluate_snapshot
        from flows.provenance.inputs import shards_of
        from store import Ref
        from tasks.package import write_package

        made = evaluate_snapshot(chosen, settings, opened.id, exact)
    with held(store, opened.id, purpose="package"):
        report = write_package(
            store,
            chosen.evaluation,
            snapshot=opened,
            core=Ref.parse(made["core"]),
            corpus=shards_of(store, [Ref.parse(text) for text in made["corpus"]]),
            path=destination,
            work_dir=session.settings.work_dir / "package",
        )
    result = {
        "path": str(destination),
        "package": report.snapshot,
        "snapshot": opened.id,
        "core": made["core"],
        "evaluation": made["evaluation"],
        "elements": report.elements,
        "bytes": report.bytes,
        "digest": report.digest,
        "nll": made["figures"]["nll"],
    }
    session.emit(
        result,
        [
            f"wrote {destination}: {report.elements:,} elements, {size(report.bytes)}",
            *columns([("snapshot", opened.id), ("core", made["core"]), ("evaluation", made["evaluation"])]),
            f"score it again with `cellar eval run --package {destination}`",
        ],
    )


def reproduce(path: Path, out: Path, session: "Session") -> None:
    """Score a package again, compare, and write reproduction.json."""
    from flows.place import prepare_threads
    from flows.settings import make_folder
    from tasks.package import TOLERANCE, run_package

    make_folder(out, "--out")
    prepare_threads(session.settings)
    try:
        with session.progress("score package", "task-conditions") as progress:
            found = run_package(str(path), progress)
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt("scoring a package begins anew, since nothing of it is kept") from interrupt
    result = asdict(found) | {"package": str(path), "largest": found.largest, "tolerance": TOLERANCE}
    write_figures(session, result, out, REPRODUCTION)
    if not found.largest <= TOLERANCE:
        from store.errors import ThresholdNotMet

        raise ThresholdNotMet(
            f"{path} does not reproduce: a task's loss differs by {found.largest:.2g} nats per token, more "
            f"than the {TOLERANCE:g} that processors differ by; do not rely on it"
        )


def reproduction_lines(result: dict[str, Any]) -> list[str]:
    """What came out when a package was scored again, beside what it says, for people."""
    rows = [("condition", "packaged", "found", "largest difference", "tasks that differ")]
    rows += [
        (
            name,
            f"{loss['expected']:.6f}",
            f"{loss['found']:.6f}",
            f"{loss['largest']:.2g}",
            f"{loss['differing']:,}",
        )
        for name, loss in result["conditions"].items()
    ]
    verdict = (
        "every loss is the packaged one, bit for bit"
        if result["identical"]
        else f"not bit for bit: losses of tasks differ by up to {result['largest']:.2g} nats per token, as "
        "they may with another processor, version of torch or number of threads (CELLAR_THREADS)"
    )
    about = [
        ("snapshot", result["source"]),
        ("core", result["core"]),
        ("tasks", f"{result['tasks']:,}, {result['elements']:,} memories, {result['seconds']:.1f} s"),
    ]
    return [*columns(about), *columns(rows), verdict]


REPRODUCTION = Figures("reproduction.json", "identical", reproduction_lines)
