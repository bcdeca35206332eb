"""How fast workers are and how few steps they take, against loops over single documents.

    python -m benchmarks.workers                            a vocabulary of 4,096 tokens learned here
    python -m benchmarks.workers --tokenizer FILE           and that of a tokenizer.json beside it
    python -m benchmarks.workers --documents 30             a quick look
    python -m benchmarks.workers --only small,narrow        some sections again; the others stay as they were

Documents are installed documentation, or `--source`, JSON lines with a field `text`: even shards train a
codec, a sample of the odd ones is worked on. The loops take every document by itself, all its blocks at once,
with the full softmax: one for a fixed number of steps, as the source text says, one until all blocks of the
document pass. They work on a few documents of the sample, evenly spread. Codecs are kept below `--work`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch

from benchmarks.figures import Section
from benchmarks.kept_sections import report_sections
from benchmarks.report_file import say
from store import Ref, Store
from tasks.codec import (
    CellAdam,
    Codec,
    CodecArchitecture,
    CodecParams,
    group_documents,
    open_codec,
    read_with_gradient,
    train_codec,
)
from tasks.corpus import CorpusParams, TokenizerParams, ingest, load_shard, load_tokenizer, train_tokenizer
from tasks.memory import Figures, MemoryCells, MemoryParams, measure, pool, work_documents

FIXED_STEPS = 1024
LEAST_SAVING, LEAST_PUBLISHED, LEAST_GAIN = 8, 0.95, 10
RECALL, LOSS = 0.70, 2.60


class Bench:
    """A corpus in a store, and the codecs and documents of its vocabularies."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        place = options.work / "store"
        self.store = Store.open(f"file:{place}") if place.is_dir() else Store.create(f"file:{place}")
        jsonl = {"reader": "jsonl", "path": options.source} if options.source else {}
        self.corpus = ingest(self.store, CorpusParams(**jsonl))

    def subject(self, file: Path | None = None, width: int = 768) -> tuple[Codec, list[np.ndarray]]:
        """The codec of a vocabulary and the sample of worker documents in its tokens."""
        tokenizer = train_tokenizer(
            self.store,
            TokenizerParams(name="given" if file else "bpe", file=file),
            corpus=self.corpus.shards,
        )
        params = CodecParams(
            name=f"{tokenizer.name.partition('/')[2]}-{width}",
            architecture=CodecArchitecture(cell_width=width),
            steps=self.options.codec_steps,
        )
        say(f"  codec {params.name} ...")
        codec = train_codec(
            self.store, params, corpus=self.corpus.shards, tokenizer=tokenizer, work_dir=self.options.work
        )
        return open_codec(self.store, codec), self._sample(tokenizer)

    def _sample(self, tokenizer: Ref) -> list[np.ndarray]:
        texts = [
            document.text
            for shard in self.corpus.worker_shards
            for document in load_shard(self.store.read(shard))
        ]
        count = min(self.options.documents, len(texts))
        chosen = [texts[round(n * len(texts) / count)] for n in range(count)]
        return [ids.astype(np.int64) for ids in load_tokenizer(self.store, tokenizer).encode_many(chosen)]


def small(bench: Bench) -> Section:
    """The learned vocabulary of 4,096 tokens."""
    return compare(bench, *bench.subject())


def narrow(bench: Bench) -> Section:
    """The same with cells of a third, which few blocks pass without adaptation."""
    return compare(bench, *bench.subject(width=256))


def large(bench: Bench) -> Section:
    """The vocabulary of the given tokenizer.json."""
    return compare(bench, *bench.subject(bench.options.tokenizer))


def compare(bench: Bench, codec: Codec, documents: Sequence[np.ndarray]) -> Section:
    """Workers on the sample, and the loops on some of its documents."""
    options, params = bench.options, MemoryParams()
    section = Section(
        f"{codec.vocab_size:,} tokens, cells of {codec.architecture.cell_width}: {len(documents)} documents, "
        f"{options.loop_documents} of them in loops"
    )
    count = min(options.loop_documents, len(documents))
    spread = [round((n + 0.5) * len(documents) / count - 0.5) for n in range(count)]
    some = [documents[number] for number in spread]
    seconds, each = _timed(lambda: worked(codec, documents, params))
    total = pool(each)
    _add(section, "workers, the whole sample", total, seconds)
    _note(section, "workers, of these the documents in loops", pool(each[number] for number in spread))
    published = sum(one.token_recall >= RECALL and one.loss <= LOSS for one in each) / len(each)
    for turn in range(options.runs):
        contenders: list[tuple[str, Callable[[], list[Figures]]]] = [
            ("loop, until a document passes", lambda: looped(codec, some, params, None)),
            (f"loop, {options.fixed_steps} steps", lambda: looped(codec, some, params, options.fixed_steps)),
        ]
        for name, work in contenders if turn % 2 == 0 else contenders[::-1]:
            taken, figures = _timed(work)
            _add(section, name, pool(figures), taken)
    speed = {figure.name.removesuffix(": blocks"): figure.median for figure in section.figures}
    ours = speed["workers, the whole sample"]
    saving = FIXED_STEPS / max(total.steps / total.blocks, 1e-9)
    section.require("published at .70 / 2.60", published, least=LEAST_PUBLISHED)
    section.require("block-steps of a fixed 1,024 / workers", min(saving, 1e6), least=LEAST_SAVING)
    fixed = ours / speed[f"loop, {options.fixed_steps} steps"] * FIXED_STEPS / options.fixed_steps
    section.require("blocks per second, workers / loop of 1,024 steps", fixed, least=LEAST_GAIN)
    section.notes.append(
        "What adaptation costs depends on the document where it ends early: compare the steps a block before "
        "the speeds of the workers and of the loop that ends."
    )
    if options.fixed_steps < FIXED_STEPS:
        section.notes.append(f"The loop took {options.fixed_steps} steps; its time for 1,024 is reckoned.")
    return section


def worked(codec: Codec, documents: Sequence[np.ndarray], params: MemoryParams) -> list[Figures]:
    """What workers make of documents, read back from what would be stored."""
    items = work_documents(codec, documents, params)
    steps = [int(item.steps_N.sum()) for item in items]
    return measure(codec, documents, [item.memory for item in items], steps, params)


def looped(
    codec: Codec, documents: Sequence[np.ndarray], params: MemoryParams, steps: int | None
) -> list[Figures]:
    """The same of a loop over single documents, for so many steps or until all blocks of a document pass."""
    figures = []
    for ids in documents:
        groups = group_documents([ids], codec.architecture)
        tokens_NT, mask_NT = groups.select(torch.arange(len(groups)))
        with torch.no_grad():
            cells_NC = codec.encode(tokens_NT)
        optimizer, taken = CellAdam(cells_NC, params.rate), 0
        while taken < (params.max_steps if steps is None else steps):
            reading, gradient_NC = read_with_gradient(codec, cells_NC, tokens_NT, mask_NT, params.dtype)
            if steps is None and bool((reading.margin_NT >= params.margin).all()):
                break
            cells_NC = optimizer.step(cells_NC, gradient_NC)
            taken += 1
        count = -(-len(ids) // codec.architecture.block_tokens)
        memory = MemoryCells.from_float(cells_NC[:count], len(ids), params.dtype)
        figures += measure(codec, [ids], [memory], [taken * count], params)
    return figures


def _add(section: Section, name: str, total: Figures, seconds: float) -> None:
    section.figure(f"{name}: blocks", "blocks/s").add(total.blocks / seconds)
    _note(section, name, total, seconds)


def _note(section: Section, name: str, total: Figures, seconds: float | None = None) -> None:
    spent = "" if seconds is None else f", {seconds:.1f} s of processor time"
    note = (
        f"{name}: {total.blocks:,} blocks ({total.tokens / total.blocks:.1f} tokens each), "
        f"{total.steps / total.blocks:.2f} steps a block, token recall {total.token_recall:.5f}, spans "
        f"{total.span8_exact:.4f}, {total.loss:.4f} nats{spent}."
    )
    if note.partition(":")[0] not in {known.partition(":")[0] for known in section.notes}:
        section.notes.append(note)
    say(f"  {note}")


def _timed(work: Callable[[], list[Figures]]) -> tuple[float, list[Figures]]:
    """Seconds of processor time, which others on the machine change little, and what was made."""
    began = time.process_time()
    made = work()
    return time.process_time() - began, made


SECTIONS: dict[str, Callable[[Bench], Section]] = {"small": small, "narrow": narrow, "large": large}


def main() -> int:
    """Run the sections that the command line asks for; 0 if all thresholds of all sections are met."""
    options = _options()
    torch.set_num_threads(1)
    options.work.mkdir(parents=True, exist_ok=True)
    sections = {name: run for name, run in SECTIONS.items() if name != "large" or options.tokenizer}
    return report_sections(
        f"workers-{options.documents}",
        options,
        sections,
        lambda: nullcontext(Bench(options)),
        about=f"up to {options.documents:,} documents, one thread, processor time",
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How fast workers are, and how few steps they take.")
    parser.add_argument("--documents", type=int, default=100, help="worker documents in the sample (100)")
    parser.add_argument("--loop-documents", type=int, default=3, help="of these, in loops as well (3)")
    parser.add_argument("--fixed-steps", type=int, default=FIXED_STEPS, help="steps of the fixed loop")
    parser.add_argument("--codec-steps", type=int, default=300, help="updates of the codecs (300)")
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer.json with a large vocabulary")
    parser.add_argument("--source", type=Path, help="JSON lines with a field `text` (default: documentation)")
    parser.add_argument("--runs", type=int, default=1, help="runs of which the median counts (1)")
    parser.add_argument("--only", type=lambda text: text.split(","), help=f"of: {', '.join(SECTIONS)}")
    parser.add_argument("--work", type=Path, default=Path("build/benchmarks/workers"), help="store of codecs")
    parser.add_argument("--out", type=Path, help="the JSON file (default: build/benchmarks/...)")
    parser.add_argument("--json", action="store_true", help="print the JSON, not the Markdown")
    options = parser.parse_args()
    unknown = set(options.only or ()) - set(SECTIONS)
    if unknown:
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    if "large" in (options.only or ()) and options.tokenizer is None:
        parser.error("the large vocabulary is that of a file; give --tokenizer")
    if not 1 <= options.loop_documents <= options.documents or options.runs < 1 or options.fixed_steps < 1:
        parser.error("at least one run, one step and one document in the loops are needed")
    return options


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
