"""The sections of the store's benchmark: what is measured how often, and what is required of it.

Contenders take turns run by run, so that what else the machine does meets all of them. Everything was written
shortly before it is read, so all reads are from a warm page cache, the server's or the file system's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.child import measure
from benchmarks.dvc_commands import DvcProject
from benchmarks.figures import Section
from benchmarks.places import Place

REFERENCE = 52_809
"""Elements that the source text reports; single reads are always measured in a snapshot of this size."""
MEMORY_MIB = 512
NO_ICECHUNK = "Icechunk is not installed and was left out: pip install -e '.[bench]' adds it"


@dataclass(frozen=True)
class Bench:
    """One run of the benchmark: where, on which kind of storage, how many elements, how often."""

    place: Place
    backend: str
    work: Path
    count: int
    runs: int
    full: bool
    say: Callable[[str], None]

    def run(self, task: str, **arguments: Any) -> dict[str, Any]:
        """Measure one task in a child process, after what others wrote has reached the disk."""
        os.sync()
        result = measure(task, environment=self.place.environment, **arguments)
        took = f"{result['seconds']:.2f} s" if "seconds" in result else "done"
        self.say(f"  {task.partition(':')[2]}: {took}")
        return result

    @property
    def on_s3(self) -> bool:
        return self.backend == "s3"

    @property
    def loose_name(self) -> str:
        return "conditional PUTs, 16 boto3 threads" if self.on_s3 else "plain files with fsync, 16 threads"


def publish(bench: Bench) -> Section:
    """Publish elements; against loose objects or files, DVC and Icechunk."""
    section = Section(f"publish: {bench.count:,} elements of 64 KB, {bench.backend}")
    ours = section.figure("cellar: open, write, commit", "elements/s")
    whole = section.figure("cellar, with the start of its process", "elements/s")
    loose = section.figure(bench.loose_name, "elements/s")
    dvc = section.figure("dvc add + dvc push, local remote", "elements/s")
    for turn in range(bench.runs):
        url = bench.place.fresh()
        result = bench.run("benchmarks.contenders:publish", url=url, count=bench.count)
        ours.add(bench.count / result["seconds"], result["rss"])
        whole.add(bench.count / (result["process_s"] - result["prepared_s"]))
        bench.place.drop(url)
        url = bench.place.fresh()
        task = "put_loose" if bench.on_s3 else "write_files"
        loose.add(bench.count / bench.run(f"benchmarks.peers:{task}", url=url, count=bench.count)["seconds"])
        bench.place.drop(url)
        project = _dvc(bench, f"publish-{turn}")
        dvc.add(bench.count / _said(bench, "dvc add + push", project.add_and_push()))
        if find_spec("icechunk"):
            url = bench.place.fresh()
            result = bench.run("benchmarks.peers:icechunk_write", url=url, count=bench.count)
            icechunk = section.figure("Icechunk: write, commit", "elements/s")
            icechunk.add(bench.count / result["seconds"], result["rss"])
            bench.place.drop(url)
    section.require("cellar / loose writes", ours.median / loose.median, least=4 if bench.on_s3 else None)
    section.require("cellar / dvc add + push, both whole processes", whole.median / dvc.median, least=2.5)
    section.require("peak memory of publish", max(ours.peaks), "MiB", most=MEMORY_MIB)
    _compare_icechunk(section, ours.median)
    return section


def read(bench: Bench) -> Section:
    """Read a whole snapshot; against the bytes of its packs unlooked at, DVC and Icechunk."""
    section = Section(f"read everything: {bench.count:,} elements of 64 KB, {bench.backend}")
    ours = section.figure("cellar: stream a snapshot, every payload checked", "elements/s")
    whole = section.figure("cellar, with the start of its process", "elements/s")
    raw = section.figure("its packs whole and unchecked, 8 threads", "elements/s")
    hashed = section.figure("its packs whole, SHA-256 of each, 8 threads", "elements/s")
    dvc = section.figure("dvc pull, local remote", "elements/s")
    url = bench.place.fresh()
    bench.run("benchmarks.contenders:publish", url=url, count=bench.count)
    pinned = bench.run("benchmarks.contenders:pin", url=url)
    keys = [f"packs/{digest[:2]}/{digest}" for digest in pinned["packs"]]
    project = _dvc(bench, "read")
    project.add_and_push()
    other = bench.place.fresh()
    if find_spec("icechunk"):
        bench.run("benchmarks.peers:icechunk_write", url=other, count=bench.count)
    bench.run("benchmarks.contenders:stream", url=url, snapshot=pinned["snapshot"])  # warms, is not counted
    for _ in range(bench.runs):
        result = bench.run("benchmarks.contenders:stream", url=url, snapshot=pinned["snapshot"])
        assert result["count"] == bench.count
        ours.add(bench.count / result["seconds"], result["rss"])
        whole.add(bench.count / result["process_s"])
        task = "get_objects" if bench.on_s3 else "read_files"
        for figure in (raw, hashed):
            result = bench.run(f"benchmarks.peers:{task}", url=url, keys=keys, hashed=figure is hashed)
            figure.add(bench.count / result["seconds"])
        dvc.add(bench.count / _said(bench, "dvc pull", project.pull()))
        if find_spec("icechunk"):
            result = bench.run("benchmarks.peers:icechunk_read", url=other, count=bench.count)
            icechunk = section.figure("Icechunk: read the array, unchecked", "elements/s")
            icechunk.add(bench.count / result["seconds"], result["rss"])
    bench.place.drop(url)
    bench.place.drop(other)
    section.require("cellar / dvc pull, both whole processes", whole.median / dvc.median, least=10)
    section.require("cellar / raw packs", ours.median / raw.median, least=0.8 if bench.on_s3 else None)
    section.require("cellar / raw packs, SHA-256 of each", ours.median / hashed.median)
    section.require("peak memory of the stream", max(ours.peaks), "MiB", most=MEMORY_MIB)
    _compare_icechunk(section, ours.median)
    section.notes.append("Everything is read from a warm page cache: it was written, and read once, before.")
    section.notes.append("One SHA-256 of every byte is the least that a reader who checks them has to do.")
    return section


def commit(bench: Bench) -> Section:
    """Commit 100 elements into stores of any size; the store is opened anew each time."""
    sizes = [0, *((1_000, 10_000, REFERENCE) if bench.full else ()), 1_000_000]
    section = Section(f"commit of 100 elements of 64 KB, store opened anew, {bench.backend}")
    urls = {size: bench.place.fresh() for size in sizes if size}
    for size, url in urls.items():
        made = bench.run("benchmarks.contenders:fill", url=url, rows=size)
        section.notes.append(f"The store of {size:,} rows was made in {made['seconds']:.0f} s.")
    figures = {size: section.figure(f"into {size:,} elements", "s") for size in sizes}
    for turn in range(-1, max(11, bench.runs)):
        for size, figure in figures.items():
            url = bench.place.fresh() if size == 0 else urls[size]
            if size == 0:
                bench.run("benchmarks.contenders:create", url=url)
            first = 100 * (turn + 2)
            result = bench.run("benchmarks.contenders:commit", url=url, count=100, first=first)
            if turn >= 0:  # the first turn warms
                figure.add(result["seconds"], result["rss"])
            if size == 0:
                bench.place.drop(url)
    for url in urls.values():
        bench.place.drop(url)
    ratio = figures[1_000_000].median / figures[0].median
    section.require("into 1,000,000 / into an empty store", ratio, most=1.3)
    section.notes.append("Index rows are synthetic: their payloads do not exist. The 100 elements do.")
    return section


def lookup(bench: Bench) -> Section:
    """Open a store and a snapshot of 52,809 elements, and read one of them."""
    section = Section(f"open and read one element of {REFERENCE:,}, {bench.backend}")
    url = bench.place.fresh()
    made = bench.run("benchmarks.contenders:put_large_snapshot", url=url, count=REFERENCE)
    arguments = {"url": url, "snapshot": made["snapshot"], "name": made["name"]}
    results = [
        bench.run("benchmarks.contenders:read_one", **arguments) for _ in range(max(5, bench.runs) + 1)
    ]
    bench.place.drop(url)
    for result in results[1:]:  # the first warms
        section.figure("open and read", "ms").add(1000 * result["seconds"], result["rss"])
        section.figure("requests", "").add(result["requests"])
        section.figure("bytes answered", "").add(result["bytes"])
    requests = max(section.figure("requests", "").values)
    section.require("requests", requests, most=4)
    section.notes.append(f"The head has {made['head']:,} bytes, the rows {made['rows']:,}.")
    return section


def scaling(bench: Bench) -> Section:
    """Publish and read at several sizes: what an element costs, and memory, against their number."""
    sizes = (1_000, 10_000, REFERENCE) if bench.full else (bench.count // 10, bench.count // 2, bench.count)
    section = Section(f"cost against the number of elements, {bench.backend}")
    for size in sizes:
        url = bench.place.fresh()
        written = bench.run("benchmarks.contenders:publish", url=url, count=size)
        pinned = bench.run("benchmarks.contenders:pin", url=url)
        arguments = {"url": url, "snapshot": pinned["snapshot"]}
        bench.run("benchmarks.contenders:stream", **arguments)
        streamed = bench.run("benchmarks.contenders:stream", **arguments)
        bench.place.drop(url)
        section.figure(f"publish {size:,}", "ms an element").add(
            1000 * written["seconds"] / size, written["rss"]
        )
        section.figure(f"pin {size:,}", "ms an element").add(1000 * pinned["seconds"] / size, pinned["rss"])
        section.figure(f"stream {size:,}", "ms an element").add(
            1000 * streamed["seconds"] / size, streamed["rss"]
        )
    for verb in ("publish", "stream"):
        peak = max(max(f.peaks) for f in section.figures if f.name.startswith(verb))
        section.require(f"peak memory of {verb} at any size", peak, "MiB", most=MEMORY_MIB)
    return section


SECTIONS: dict[str, Callable[[Bench], Section]] = {
    "publish": publish,
    "read": read,
    "commit": commit,
    "lookup": lookup,
    "scaling": scaling,
}


def _dvc(bench: Bench, name: str) -> DvcProject:
    project = DvcProject(bench.work / f"dvc-{name}")
    project.prepare(bench.count)
    os.sync()
    return project


def _said(bench: Bench, what: str, seconds: float) -> float:
    bench.say(f"  {what}: {seconds:.2f} s")
    return seconds


def _compare_icechunk(section: Section, ours: float) -> None:
    for figure in section.figures:
        if figure.name.startswith("Icechunk"):
            section.require("cellar / Icechunk", ours / figure.median)
            return
    section.notes.append(NO_ICECHUNK)
