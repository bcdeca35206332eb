"""Several texts learned by one host under several seeds: what consolidated shadows gain on sealed text.

    python -m benchmarks.anneal_domains --retention web.jsonl wiki.txt --domain novel=novel.txt
    python -m benchmarks.anneal_domains ... --seeds 3 --evaluations 400 --device cuda     minutes on a GPU

A domain is NAME=FILE (a text, a folder of *.txt, or JSONL), or NAME=PACKAGE for the documentation of an
installed package (`python.topics` for the texts of `help()`). A seed orders documents, so that other ones are
learned and sealed, and draws the search. With `--store` a run that was broken off goes on.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from benchmarks.figures import Section
from benchmarks.one_section import Found, add_output_options, report_section
from benchmarks.report_file import say
from store import Store
from tasks.anneal import AnnealParams, consolidate, evaluate_shadow
from tasks.anneal.params import SealedParams
from tasks.corpus import CorpusParams, ingest
from tasks.hosts import Host, open_host, publish_host
from tasks.processor import keep_freed_memory
from tasks.shadows import ShadowParams, TextSource, write_domain

LEAST_GAIN, MOST_DRIFT = 0.08, 0.01
"""Nats a token: mean over domains on sealed text, and the worst domain's rise on sealed retention text."""
_NAME = r"(?!retention-)[A-Za-z0-9][A-Za-z0-9_-]{0,49}"
"""Of domains: shadows and, in small letters, corpora are named after them; retention has its own names."""
PACKAGES = {"help": "python.topics", "numpy": "numpy", "torch": "torch", "matplotlib": "matplotlib"}


def source_of(store: Store, name: str, given: str) -> TextSource:
    """Text files where they lie; JSONL and installed packages as a corpus of the store."""
    path = Path(given)
    if path.suffix == ".jsonl":
        ingest(store, CorpusParams(name=name.lower(), reader="jsonl", path=path))
    elif path.exists():
        return TextSource(path=path)
    else:
        ingest(store, CorpusParams(name=name.lower(), packages=(given,)))
    return TextSource(corpus=name.lower())


def run(root: Path, options: argparse.Namespace) -> tuple[Section, Found]:
    """Write, consolidate and evaluate every domain under every seed."""
    store = Store.open_or_create(f"file:{options.store or root / 'store'}")
    work = root if options.store is None else options.store.with_name(options.store.name + ".work")
    ref = publish_host(store, options.host, options.host.name)
    host = open_host(store, options.host.parent, ref, device=options.device)
    retention = tuple(source_of(store, f"retention-{at}", one) for at, one in enumerate(options.retention))
    domains = {name: source_of(store, name, given) for name, given in options.domain.items()}
    began = time.monotonic()
    found: dict[str, list[dict[str, Any]]] = {}
    for name, source in domains.items():
        for seed in range(options.seeds):
            shadow = ShadowParams(
                name=f"{name}.{seed}",
                domain=source,
                seed=seed,
                chunks=options.chunks,
                step_size=options.step_size,
            )
            anneal = AnnealParams(
                retention=retention,
                evaluations=options.evaluations,
                seed=seed,
                sealed=SealedParams(cards=0),
            )
            summary = learned(store, host, shadow, anneal, work)
            gain, drift = summary["gain"]["consolidated"], summary["drift"]["consolidated"]
            say(f"{name}, seed {seed}: gain {gain['value']:+.4f}, drift {drift['value']:+.4f}")
            found.setdefault(name, []).append(summary)
    return summed(found, options, time.monotonic() - began), {"found": found}


def learned(
    store: Store, host: Host, shadow: ShadowParams, anneal: AnnealParams, work: Path
) -> dict[str, Any]:
    """One text written into a shadow, consolidated, and evaluated on sealed text: the summary."""
    written = write_domain(store, host, shadow, work_dir=work)
    kept = consolidate(store, host, shadow, anneal, written=written, work_dir=work)
    return evaluate_shadow(store, host, shadow, anneal, kept=kept, written=written).summary


def summed(found: dict[str, list[dict[str, Any]]], options: argparse.Namespace, seconds: float) -> Section:
    """Gain and drift of each domain by seed, held against what is asked of them.

    Where full strength is worse than the host, what the search keeps has to be better than the host.
    """
    section = Section(
        f"{len(found)} texts, {options.seeds} seed(s), steps of {options.step_size:g}, "
        f"{options.evaluations} evaluations: nats per token of sealed text"
    )
    gains, drifts, harmed = {}, {}, {}
    for name, summaries in found.items():
        for condition in ("naive", "consolidated"):
            for what in ("gain", "drift"):
                figure = section.figure(f"{name}: {what} {condition}", "nats")
                for summary in summaries:
                    figure.add(summary[what][condition]["value"])
        gains[name] = mean(one["gain"]["consolidated"]["value"] for one in summaries)
        drifts[name] = mean(one["drift"]["consolidated"]["value"] for one in summaries)
        if mean(one["gain"]["naive"]["value"] for one in summaries) < 0:
            harmed[name] = gains[name]
    section.require("least gain of a domain", min(gains.values()), "nats", least=0.0)
    section.require("mean gain of domains", mean(gains.values()), "nats", least=LEAST_GAIN)
    section.require("largest drift of a domain", max(drifts.values()), "nats", most=MOST_DRIFT)
    for name, gain in harmed.items():
        section.require(f"{name}: gain where full strength harms", gain, "nats", least=0.0)
    section.notes.append(f"{seconds:.0f} s in all, device {options.device}, host {options.host.name}.")
    return section


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 if all requirements are met."""
    parser = argparse.ArgumentParser(description="What shadows of several texts gain, under several seeds.")
    parser.add_argument("--host", type=Path, default=Path("build/hosts/smollm2"), help="a model's directory")
    parser.add_argument(
        "--domain", action="append", default=[], metavar="NAME=SOURCE", help="a text; repeat for more"
    )
    parser.add_argument(
        "--no-packages", action="store_true", help="leave out help(), numpy, torch and matplotlib"
    )
    parser.add_argument("--retention", nargs="+", required=True, help="texts that must not get worse")
    parser.add_argument("--seeds", type=int, default=1, help="seeds from 0 (1)")
    parser.add_argument("--evaluations", type=int, default=200, help="alphas of a search (200)")
    parser.add_argument("--chunks", type=int, default=60, help="chunks that are learned (60)")
    parser.add_argument("--step-size", type=float, default=0.1, help="step of SGD (.1)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    parser.add_argument("--store", type=Path, help="a folder to keep, for a run that can be broken off")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    given = [one.partition("=")[::2] for one in options.domain]
    options.domain = ({} if options.no_packages else PACKAGES) | dict(given)
    if not options.domain or not all(source for _, source in given):
        parser.error("name at least one domain as NAME=SOURCE")
    if bad := next((name for name in options.domain if re.fullmatch(_NAME, name) is None), None):
        parser.error(f"{bad!r} cannot name a domain; use up to 50 letters, digits, dashes and underscores")
    folded = {name.lower() for name in options.domain}
    if len(dict(given)) < len(given) or len(folded) < len(options.domain):
        parser.error("two domains have one name, or names that differ in capitals alone; give others")
    if min(options.seeds, options.evaluations, options.chunks) < 1 or not options.step_size > 0:
        parser.error("seeds, evaluations, chunks and the step size are above zero")
    if not (options.host / "config.json").is_file():
        parser.error(f"{options.host} holds no model; `cellar host fetch smollm2` makes one")
    keep_freed_memory()
    if threads := int(os.environ.get("OMP_NUM_THREADS", "0")):
        torch.set_num_threads(threads)
    return report_section("anneal-domains", options, lambda root: run(root, options))


if __name__ == "__main__":
    sys.exit(main())
