"""Evaluating a replacement from the command line, and its figures for people."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.evidence import snapshot_and_core
from flows.cli.launch import orchestration
from flows.cli.published import Figures, show_published
from flows.cli.session import Session
from flows.formatting import columns

if TYPE_CHECKING:
    from flows.params import Params


def evaluate_replacement(
    params: "Params", session: Session, *, snapshot: str | None, core: str | None, out: Path
) -> None:
    """Swap a memory's version in a snapshot, evaluate before and after, and write replacement.json."""
    from flows.settings import make_folder
    from tasks.replacement import find_versions

    opened, exact = snapshot_and_core(params, session, snapshot, core)
    if params.replacement.element is not None:
        find_versions(session.open_store(), opened, params.replacement.element)
    make_folder(out, "--out")
    with orchestration(session, session.settings) as settings:
        from flows.evaluate_replacement import evaluate_replacement as flow

        made = flow(params, settings, opened.id, exact)
    show_published(session, made, out, REPLACEMENT)


def replacement_lines(result: dict[str, Any]) -> list[str]:
    """What a replacement changed, for people."""
    versions, blocks, elsewhere = result["versions"], result["blocks"], result["elsewhere"]
    seconds = result["costs"].get("seconds", {})
    rows = [
        ("element", result["replaced"]),
        ("version", f"{versions['before'][:12]} -> {versions['after'][:12]}"),
        ("snapshot", f"{result['snapshots']['before'][:12]} -> {result['snapshots']['after'][:12]}"),
        ("blocks", f"{blocks['different']} of {blocks['all']} hold other cells"),
        ("results", f"{result['results']:,}: {result['tasks']:,} tasks under every condition"),
        ("shown the element", f"{result['reading_the_element']:,}"),
        ("had to change", f"{result['expected_to_change']:,}"),
        ("changed", f"{result['changed']:,}"),
        ("exactly those", "yes" if result["exact"] else "no"),
        ("elsewhere", f"{elsewhere['changed']} of {elsewhere['results']:,} results differ in any bit"),
    ]
    if "dependents_after" in seconds:
        rows.append(
            (
                "seconds",
                f"{result['costs']['index_seconds']:.1f} index, {seconds['dependents_after']:.1f} the "
                f"{result['re_evaluated_tasks']} tasks that it concerns, {seconds['elsewhere_after']:.1f} "
                "all others",
            )
        )
    table: list[tuple[str, ...]] = [("evidence", "had to change", "changed", "nats before", "nats after")]
    for name, found in result["by_condition"].items():
        nll = found["nll"]
        table.append(
            (
                name.replace("_", " "),
                f"{found['expected']:,}",
                f"{found['changed']:,}",
                f"{nll['before']:.4f}",
                f"{nll['after']:.4f}",
            )
        )
    followed = [
        (
            name.replace("_", " "),
            f"of {found['tasks']} edited answers {found['old_before']} were written as of old before, "
            f"{found['new_after']} as of new after, {found['old_after']} still as of old",
        )
        for name, found in (result["follows"] or {}).items()
    ]
    return [*columns(rows), "", *columns(table), "", *columns(followed)]


REPLACEMENT = Figures("replacement.json", "replaced", replacement_lines)
