"""Address a large store: build charts, ask them, beside bm25s on the same token ids; add and remove texts.

    python -m benchmarks.addressing                          52,809 texts of 26.5 million tokens
    python -m benchmarks.addressing --elements 5000          as many tokens for each text

The texts are synthetic (`benchmarks.scale_text`) and stand for what memories decode to: the text's
addressing needs no cells, and no dense keys are made. Each part runs in a process of its own, the index opens
from mapped files. Cues of 32 tokens come from anywhere in test-split texts; the reranker is trained on
train-split ones. Ratios of rates are of processor time, which other programs disturb less.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks.child import measure
from benchmarks.figures import Section
from benchmarks.one_section import add_output_options, report_section
from benchmarks.report_file import say

ELEMENTS = 52_809
TOKENS_EACH = 502
BUILD_S, FASTER, P99_MS, ADD_MS = 90.0, 3.0, 5.0, 50.0
"""What is required of a build, of queries per second beside bm25s, of one query, and of adding one text."""


def main() -> int:
    """Run the benchmark; 0 if all requirements are met."""
    options = _options()
    return report_section(f"addressing-{options.elements}", options, lambda root: run(root, options))


def run(root: Path, options: argparse.Namespace) -> tuple[Section, dict[str, Any]]:
    """All parts, in order, and what they found."""
    one_thread = {"OMP_NUM_THREADS": "1"}
    folder, found = str(root), {}
    parts: dict[str, dict[str, Any]] = {
        "write_texts": {
            "elements": options.elements,
            "tokens": options.elements * TOKENS_EACH,
            "vocab_size": options.vocab_size,
            "repeated": 0.05,
        },
        "build": {"vocab_size": options.vocab_size},
        "fit": {},
        "search": {"queries": options.queries},
        "bm25": {"queries": options.queries},
        "change": {"changes": options.changes},
    }
    for name, arguments in parts.items():
        say(f"{name} ...")
        task = f"benchmarks.addressing_runs:{name}"
        found[name] = measure(task, folder=folder, environment=one_thread, **arguments)
    return summary(found), {"found": found}


def summary(found: dict[str, Any]) -> Section:
    """Figures and requirements of what the parts found."""
    texts, built, asked, lexical = (found[name] for name in ("write_texts", "build", "search", "bm25"))
    section = Section(f"Addressing {texts['elements']:,} texts of {texts['tokens']:,} tokens")
    section.figure("build of the charts", "s").add(built["seconds"], built["rss"])
    section.figure("build of the charts, processor time", "s").add(built["processor_s"])
    section.figure("build of bm25s", "s").add(lexical["build_seconds"], lexical["rss"])
    section.figure("opening from mapped files", "s").add(asked["open_seconds"], asked["rss"])
    for share, ours in asked["by_share"].items():
        theirs, of = lexical["by_share"][share], f"{float(share):.0%} changed"
        section.figure(f"charts, {of}", "queries/s").add(ours["queries_per_second"])
        section.figure(f"bm25s, {of}", "queries/s").add(theirs["queries_per_second"])
        section.figure(f"charts, {of}: one query, median", "ms").add(ours["p50_ms"])
        section.figure(f"charts, {of}: one query, 99 %", "ms").add(ours["p99_ms"])
        repeated = section.figure(f"charts, {of}: one query, 99 % of medians of five", "ms")
        repeated.add(ours["repeated_p99_ms"])
        for credit in ("candidate_recall", "recall_at_1"):
            section.figure(f"charts, {of}: {credit}", "").add(ours[credit])
            section.figure(f"bm25s, {of}: {credit}", "").add(theirs[credit])
    whole, lexical_whole = asked["by_share"]["0.0"], lexical["by_share"]["0.0"]
    rates = [one["queries_per_processor_second"] for one in (whole, lexical_whole)]
    section.require("build of the charts", built["seconds"], "s", most=BUILD_S)
    section.require("charts / bm25s, queries per second of processor", rates[0] / rates[1], least=FASTER)
    margin = whole["recall_at_1"] - lexical_whole["recall_at_1"]
    section.require("recall at 1 above that of bm25s", margin, least=0.0)
    section.require("99 % of single queries within", whole["p99_ms"], "ms", most=P99_MS)
    section.require("adding one text, median", found["change"]["add_ms"], "ms", most=ADD_MS)
    section.require("removing one text, median", found["change"]["remove_ms"], "ms", most=ADD_MS)
    section.require("added texts found at rank one", found["change"]["added_found"], least=0.99)
    section.notes += [
        f"the hundred most frequent of {texts['tokens_used']:,} tokens are {texts['top_100_share']:.0%} of "
        f"all; the chain knows {texts['source_tokens']:,} tokens of real text",
        f"charts take {built['bytes']:,} bytes, {built['bytes'] / texts['tokens']:.1f} a token",
    ]
    return section


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Build and ask the charts of a large store, beside bm25s.")
    parser.add_argument("--elements", type=int, default=ELEMENTS, help=f"texts (default: {ELEMENTS:,})")
    parser.add_argument("--vocab-size", type=int, default=16_384, help="tokens known (default: 16,384)")
    parser.add_argument("--queries", type=int, default=2_000, help="cues asked (default: 2,000)")
    parser.add_argument("--changes", type=int, default=50, help="texts added and removed (default: 50)")
    add_output_options(parser)
    options = parser.parse_args()
    if options.elements < 200 or options.queries < 10 or options.changes < 1:
        parser.error("at least 200 texts, ten cues and one change are needed")
    return options


if __name__ == "__main__":
    sys.exit(main())
