"""The codec room's door to the store: train a codec on the even shards of a corpus, or find it published."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from store import Element, Ref, Store
from tasks.checkpoint import CHECKPOINT_S, Checkpoints, find_trained, publish_trained
from tasks.codec.binary16 import check_vocabulary
from tasks.codec.groups import group_documents
from tasks.codec.model import Codec, load_codec
from tasks.codec.params import CodecParams
from tasks.codec.recipes import codec_recipe
from tasks.codec.train import train, validate
from tasks.corpus import is_worker_shard, load_shard, load_tokenizer
from tasks.progress import Progress, silent


def train_codec(
    store: Store,
    params: CodecParams,
    *,
    corpus: Sequence[Ref],
    tokenizer: Ref,
    progress: Progress = silent,
    device: str = "cpu",
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> Ref:
    """Publish the codec trained on the even shards of `corpus`, or return the one already published.

    Odd shards are neither read nor part of the fingerprint: worker documents stay unseen. With `work_dir`,
    the training state is kept there every `checkpoint_s` seconds and an interrupted training continues from
    it, bit for bit. The element's facts hold the figures on the training shards' held-out documents, before
    and after local adaptation.

    Raises `TooLittleText` for empty shards and `VocabularyTooLarge` for more than 65,536 tokens.
    """
    shards = sorted((ref for ref in corpus if not is_worker_shard(ref)), key=lambda ref: ref.name)
    recipe = codec_recipe(params, shards, tokenizer).fingerprint
    checkpoints = None if work_dir is None else Checkpoints(work_dir, recipe, checkpoint_s)
    if (found := find_trained(store, recipe, checkpoints)) is not None:
        return found
    tokens = load_tokenizer(store, tokenizer)
    check_vocabulary(tokens.vocab_size)
    training: list[np.ndarray] = []
    held_out: list[np.ndarray] = []
    for ref in shards:
        documents = load_shard(store.read(ref))
        for document, ids in zip(documents, tokens.encode_many([d.text for d in documents]), strict=True):
            (held_out if is_held_out(document.name, params.validation_share) else training).append(ids)
    codec = train(
        params, training, tokens.vocab_size, progress=progress, device=device, checkpoints=checkpoints
    )
    encoded, adapted = validate(codec, group_documents(held_out, params.architecture), params, device=device)
    element = Element(
        "codec",
        params.name,
        codec.to_bytes(),
        requires=(tokenizer.version,),
        provenance={
            "recipe": recipe,
            "params": params.model_dump(mode="json"),
            "tokenizer": str(tokenizer),
            "corpus": [str(ref) for ref in shards],
        },
        facts={
            "parameters": sum(p.numel() for p in codec.parameters()),
            "buffer_bytes": sum(b.numel() * b.element_size() for b in codec.buffers()),
            "training_documents": len(training),
            "training_tokens": sum(len(ids) for ids in training),
            "held_out_documents": len(held_out),
            "encoded": asdict(encoded),
            "adapted": {**asdict(adapted), "steps": params.validation_steps},
        },
    )
    message = f"Publish codec {params.name}, {params.steps} updates on {len(training)} documents"
    return publish_trained(store, element, checkpoints, message=message)


def open_codec(store: Store, ref: Ref) -> Codec:
    """The frozen codec behind a reference."""
    return load_codec(store.read(ref))


def is_held_out(name: str, share: float) -> bool:
    """Whether a training document is kept for the codec's own figures: a hash of its name below `share`."""
    digest = hashlib.sha256(b"codec validation\n" + name.encode("utf-8")).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64
