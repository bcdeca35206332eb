"""What changes between two sets of memories."""

from collections.abc import Mapping


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, list[str]]:
    """The documents whose memories differ between two sets, by kind of change, and those that do not."""
    found: dict[str, list[str]] = {"added": [], "replaced": [], "retired": [], "kept": []}
    for name in sorted({*before, *after}):
        if name not in before:
            what = "added"
        elif name not in after:
            what = "retired"
        else:
            what = "kept" if before[name] == after[name] else "replaced"
        found[what].append(name.partition("/")[2])
    return found
