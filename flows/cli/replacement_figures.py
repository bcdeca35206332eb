"""The figures of a replacement for people."""

from typing import Any

from flows.formatting import columns


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
