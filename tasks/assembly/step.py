"""The assembly room's door to the store: train a core, or what reads for it, on a snapshot, or find them."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from store import Element, Ref, Snapshot, Store
from tasks.assembly.accounts import core_accounts
from tasks.assembly.batches import AttachmentRows, LanguageStream
from tasks.assembly.inputs import (
    LEAST_ELEMENTS,
    check_train_split,
    language_documents,
    open_tables,
    worker_documents,
)
from tasks.assembly.model import ResidualCore, load_core
from tasks.assembly.params import AssemblyParams, ReadingParams
from tasks.assembly.reading import CrossReading, load_reading
from tasks.assembly.reading_training import ReadingRows, train_cross_reading
from tasks.assembly.recipes import core_recipe, reading_recipe
from tasks.assembly.selection import select_elements
from tasks.assembly.train import TrainingData, new_core, train
from tasks.checkpoint import CHECKPOINT_S, Checkpoints, find_trained, publish_trained
from tasks.codec import Codec, load_codec
from tasks.corpus import (
    EOS,
    load_tokenizer,
)
from tasks.processor import product_dtype
from tasks.progress import Progress, silent


def train_core(
    store: Store,
    params: AssemblyParams,
    *,
    snapshot: Snapshot,
    corpus: Sequence[Ref],
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> Ref:
    """Publish the core trained on a snapshot's train-split memories and the even shards of `corpus`, or
    find it.

    Memories of the test split are never read. Validation-split memories only make the learning curve in the
    facts. The snapshot must hold one codec and one tokenizer; `corpus` are the shards that its memories
    were built from, in any order, and the language stream. With `work_dir` an interrupted training
    continues, bit for bit, from what it kept every `checkpoint_s` seconds.

    Raises `TooLittleText` when there are too few memories or too little text to train on.
    """
    codec_row, tokenizer_row = snapshot.one("codec"), snapshot.one("tokenizer")
    shards = sorted(corpus, key=lambda ref: ref.name)
    check_train_split(snapshot)
    chosen = select_elements(snapshot.rows("memory"), params.max_elements)
    recipe = core_recipe(params, codec_row.ref, tokenizer_row.ref, shards, chosen).fingerprint
    checkpoints = None if work_dir is None else Checkpoints(work_dir, recipe, checkpoint_s)
    if (found := find_trained(store, recipe, checkpoints)) is not None:
        return found
    codec = load_codec(snapshot.read(codec_row))
    tokenizer = load_tokenizer(store, tokenizer_row.ref)
    language = LanguageStream(language_documents(store, shards, tokenizer), end=EOS, params=params)
    rows_chosen = [row for rows in chosen.values() for row in rows]
    texts = worker_documents(store, shards, tokenizer, rows_chosen)
    core = new_core(params, codec, language)
    tables = {
        split: open_tables(snapshot, codec, rows, texts)
        for split, rows in chosen.items()
        if len(rows) >= LEAST_ELEMENTS
    }
    rows = {split: AttachmentRows(*pair, core.identity, params) for split, pair in tables.items()}
    data = TrainingData(language, rows["train"], rows.get("validation"))
    curve = train(core, params, data, progress=progress, checkpoints=checkpoints)
    element = Element(
        "core",
        params.name,
        core.to_bytes(),
        requires=(codec_row.version,),
        provenance={
            "recipe": recipe,
            "params": params.model_dump(mode="json"),
            "codec": str(codec_row.ref),
            "tokenizer": str(tokenizer_row.ref),
            "corpus": [str(ref) for ref in shards],
        },
        facts={
            **asdict(core_accounts(core)),
            "product_dtype": str(product_dtype(torch.device("cpu"))).removeprefix("torch."),
            "language_tokens": len(language.ids_M),
            "train_elements": len(chosen["train"]),
            "curve": [asdict(point) for point in curve],
        },
    )
    message = (
        f"Publish core {params.name}, {params.steps} updates, {len(chosen['train'])} train-split memories"
    )
    return publish_trained(store, element, checkpoints, message=message)


def train_reading(
    store: Store,
    params: ReadingParams,
    *,
    core: Ref,
    snapshot: Snapshot,
    corpus: Sequence[Ref],
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> Ref:
    """Publish the cross-reading of a core, trained on a snapshot's train-split memories, or find it.

    It is `core/<name of the core>/<name>`, an element of its own that requires the core, which stays as it
    is. Memories of the test split are never read; those of the validation split only make the figures in the
    facts. `corpus` as in `train_core`. An interrupted training continues from `work_dir`.

    Raises `TooLittleText` when there are too few memories to train on.
    """
    codec_row, tokenizer_row = snapshot.one("codec"), snapshot.one("tokenizer")
    shards = sorted(corpus, key=lambda ref: ref.name)
    check_train_split(snapshot)
    chosen = select_elements(snapshot.rows("memory"), params.max_elements)
    recipe = reading_recipe(params, core, codec_row.ref, shards, chosen).fingerprint
    checkpoints = None if work_dir is None else Checkpoints(work_dir, recipe, checkpoint_s)
    if (found := find_trained(store, recipe, checkpoints)) is not None:
        return found
    codec = load_codec(snapshot.read(codec_row))
    texts = worker_documents(
        store,
        shards,
        load_tokenizer(store, tokenizer_row.ref),
        [row for rows in chosen.values() for row in rows],
    )
    reading = CrossReading(params.architecture, codec.head.weight.detach())
    rows = {
        split: ReadingRows(*open_tables(snapshot, codec, rows, texts), reading, params)
        for split, rows in chosen.items()
        if len(rows) >= LEAST_ELEMENTS
    }
    figures = train_cross_reading(
        reading,
        open_core(store, core),
        params,
        rows["train"],
        rows.get("validation"),
        progress=progress,
        checkpoints=checkpoints,
    )
    element = Element(
        "core",
        f"{core.name.partition('/')[2]}/{params.name}",
        reading.to_bytes(),
        requires=(core.version, codec_row.version),
        provenance={
            "recipe": recipe,
            "params": params.identity(),
            "core": str(core),
            "codec": str(codec_row.ref),
            "corpus": [str(ref) for ref in shards],
        },
        facts={
            "trainable_parameters": sum(p.numel() for p in reading.parameters()),
            "train_elements": len(chosen["train"]),
            "figures": [asdict(point) for point in figures],
        },
    )
    message = f"Publish cross-reading {params.name} of {core.name}, {params.steps} updates"
    return publish_trained(store, element, checkpoints, message=message)


def open_reading(store: Store, ref: Ref, codec: Codec) -> CrossReading:
    """The frozen cross-reading behind a reference, by the vocabulary head of its codec."""
    return load_reading(store.read(ref), codec.head.weight.detach())


def open_core(store: Store, ref: Ref) -> ResidualCore:
    """The frozen core behind a reference."""
    return load_core(store.read(ref))
