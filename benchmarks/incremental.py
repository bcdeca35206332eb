"""Compare an update after changing one percent of the documents with a build of all of them.

    python -m benchmarks.incremental                            2,000 documents that are installed here
    python -m benchmarks.incremental --source FILE.jsonl        of a file with the fields id and text

A codec is trained first and frozen. Then a new store with that codec is brought up to date three times: from
nothing, after one percent of the documents changed (half of these edited, a quarter new, a quarter gone), and
without any change. Every run is a process of its own with a Prefect API of its own; start-up, until all is
loaded and that API answers, is measured apart. The change must be exactly what `snapshot diff` shows, and the
snapshot the one that a build from nothing of the changed documents gives.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.child import measure
from benchmarks.figures import Section
from benchmarks.one_section import add_output_options, report_section
from benchmarks.report_file import say
from benchmarks.updates import SHARDS, documents

MOST = 0.05
"""What an update after one percent of changes may take of a whole build."""
_SHARE = 0.01
Texts = list[dict[str, str]]


def main() -> int:
    """Run the benchmark; 0 if the update takes its share at most and changes exactly what changed."""
    options = _options()
    texts = documents(options.n, source=options.source)
    return report_section(
        f"incremental-{options.n}", options, lambda root: (run(texts, root, steps=options.steps), {})
    )


def run(texts: Texts, root: Path, *, steps: int) -> Section:
    """All runs, in order, and what they took."""
    section = Section(f"Incremental update of {len(texts):,} documents")
    source, url, work = root / "docs.jsonl", str(root / "store"), str(root / "work")
    environment = {"PREFECT_HOME": str(root / "prefect"), "PREFECT_LOGGING_LEVEL": "ERROR"}
    changed, expected = change(texts, random.Random(7))

    def update(name: str, **options: Any) -> dict[str, Any]:
        say(f"{name} ...")
        began = time.time()
        made = measure(
            "benchmarks.updates:update",
            source=str(source),
            work=work,
            steps=steps,
            environment=environment,
            **options,
        )
        section.figure(f"{name}: start-up", "s").add(made["ready"] - began)
        section.figure(f"{name}: work", "s").add(made["work_seconds"], made["rss"])
        return made

    _write(source, texts)
    trained = str(root / "trained")
    update("first update of an empty store, training included", url=trained)
    full = update("build of all memories, codec frozen", url=url, frozen_from=trained)
    _write(source, changed)
    some = update("update after 1 % changed", url=url)
    none = update("update without a change", url=url)
    scratch = update("build of all memories after the change", url=str(root / "again"), frozen_from=trained)
    found = measure(
        "benchmarks.updates:memory_changes", url=url, before=full["snapshot"], after=some["snapshot"]
    )
    whole = full["work_seconds"]
    section.require("work of the update / work of the build", some["work_seconds"] / whole, most=MOST)
    section.require("work without a change / work of the build", none["work_seconds"] / whole)
    exact = {what: sorted(found[what]) == sorted(names) for what, names in expected.items()}
    section.require("kinds of change that the diff shows exactly", sum(exact.values()), "of 3", least=3)
    same = scratch["snapshot"] == some["snapshot"] == none["snapshot"]
    section.require("same snapshot as a build from nothing", int(same), least=1)
    section.notes += [
        f"{full['added']:,} documents are remembered (odd shards); of these {len(expected['replaced'])} were "
        f"edited, {len(expected['added'])} came, {len(expected['removed'])} went; as many in even shards",
        f"documents computed: {full['worked']:,} in the build, {some['worked']} in the update, "
        f"{none['worked']} without a change",
    ]
    return section


def change(texts: Texts, draw: random.Random) -> tuple[Texts, dict[str, list[str]]]:
    """The texts after one percent of each half changed, and the names of the remembered ones by change."""
    from tasks.corpus import shard_of

    expected: dict[str, list[str]] = {"added": [], "removed": [], "replaced": []}
    result = {document["id"]: document["text"] for document in texts}
    for half in (0, 1):
        ours = sorted(name for name in result if shard_of(name, SHARDS) % 2 == half)
        count = max(4, round(_SHARE * len(ours)))
        edited, gone = count - 2 * (count // 4), count // 4
        chosen = draw.sample(ours, edited + gone)
        new = _new_names(result, half, count // 4)
        for name in chosen[:edited]:
            words = result[name].split(" ")
            words.insert(draw.randrange(len(words)), "(revised)")
            result[name] = " ".join(words)
        for number, name in enumerate(new):
            result[name] = " ".join(reversed(result[ours[number]].split(" ")))
        for name in chosen[edited:]:
            del result[name]
        if half:
            expected = {"added": new, "removed": chosen[edited:], "replaced": chosen[:edited]}
    return [{"id": name, "text": text} for name, text in result.items()], expected


def _new_names(known: dict[str, str], half: int, count: int) -> list[str]:
    from tasks.corpus import shard_of

    names = (f"new/{number:04d}" for number in range(10_000))
    return [n for n in names if n not in known and shard_of(n, SHARDS) % 2 == half][:count]


def _write(path: Path, texts: Texts) -> None:
    path.write_text("".join(json.dumps(document) + "\n" for document in texts), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare an update with a build of all documents.")
    parser.add_argument("--n", type=int, default=2_000, help="documents (default: 2,000)")
    parser.add_argument("--source", help="a JSONL file with the fields id and text")
    parser.add_argument("--steps", type=int, default=300, help="updates of the codec (default: 300)")
    add_output_options(parser)
    options = parser.parse_args()
    if options.n < 40:
        parser.error("at least 40 documents are needed")
    return options


if __name__ == "__main__":
    sys.exit(main())
