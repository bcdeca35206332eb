"""Several domains learned by one host one after another: what each gained, and what later ones took away."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from store import Recipe, Ref, Store
from tasks.anneal.params import RETENTION, AnnealParams
from tasks.anneal.sealed import chunk_losses
from tasks.anneal.sources import text_digests
from tasks.anneal.texts import check_lengths, read_texts, sealed_counts, sealed_parts
from tasks.checkpoint import CHECKPOINT_S
from tasks.errors import BadCorpus, StaleInputs
from tasks.evaluation import PublishedEvaluation, SubjectName, Table, find_evaluation, publish_evaluation
from tasks.progress import Progress, part_of, silent
from tasks.shadows import ShadowParams, attached, find_shadow, foundation, open_shadow, stack_refs
from tasks.tables import encode_records
from tasks.unfinished import Unfinished

if TYPE_CHECKING:
    from tasks.hosts import Host

SUBJECT: SubjectName = "anneal"
SAMPLES_RECIPE = "evaluation.anneal.cumulative.samples/1"


@dataclass(frozen=True)
class StageLoss:
    """The mean loss of one sealed chunk once the host has learned the first `learned` domains."""

    learned: int
    text: str
    """Name of the domain, or `retention`."""
    chunk: int
    loss: float


def stages(shadow: ShadowParams, anneal: AnnealParams) -> list[ShadowParams]:
    """One domain after another, each written on the shadows before it: shadow/<name>.<domain>.

    Raises `BadCorpus` where fewer than two are named.
    """
    if len(anneal.domains) < 2:
        raise BadCorpus(
            "cumulate learns two domains or more; set anneal.domains, e.g. "
            'anneal.domains={"a": {"path": "a.txt"}, "b": {"corpus": "docs"}}'
        )
    names = [f"{shadow.name}.{domain}" for domain in anneal.domains]
    return [
        shadow.model_copy(update={"name": name, "domain": source, "onto": (*shadow.onto, *names[:place])})
        for place, (name, source) in enumerate(zip(names, anneal.domains.values(), strict=True))
    ]


def stages_recipe(shadows: Sequence[Ref], anneal: AnnealParams, digests: Sequence[str], host: Ref) -> Recipe:
    """How `shadows`, all that are on the host in the end and in order, are evaluated on these texts."""
    options = {**anneal.identity(), "sealed": anneal.sealed.model_dump(mode="json")}
    inputs = (host.version, *(ref.version for ref in shadows), *digests)
    return Recipe("anneal.cumulate/1", options, inputs)


def stages_work(shadow: ShadowParams, anneal: AnnealParams) -> int:
    """Sealed chunks of an evaluation of stages, as its progress counts them."""
    domain, retention = sealed_counts(shadow, anneal)
    return (len(anneal.domains) + 1) * (len(anneal.domains) * domain + retention)


def evaluate_stages(
    store: Store,
    host: "Host",
    shadow: ShadowParams,
    anneal: AnnealParams,
    *,
    kept: Sequence[Ref] = (),
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> PublishedEvaluation:
    """Evaluate every domain's sealed text, and sealed probes, after each domain that the host learned.

    Publishes `evaluation/<name>.cumulative` and its `samples`, or returns what is published for the same.
    The shadows are the newest of their names, or those of `kept`. `progress` counts sealed chunks. With
    `work_dir` an interrupted evaluation continues, bit for bit, from the losses that it kept. Raises
    `ElementNotFound` when a domain is not consolidated, `StaleInputs` when one was written on others than
    those before it.
    """
    learned = stages(shadow, anneal)
    named: Sequence[Ref | str] = kept or [one.name for one in learned]
    refs = [find_shadow(store, one) for one in named]
    base = len(stack_refs(store, shadow.onto))
    for place, ref in enumerate(refs):
        if list(foundation(store, ref))[base:] != refs[:place]:
            raise StaleInputs(f"{ref} stands on other shadows; run `cellar anneal cumulate` again")
    below = foundation(store, refs[0])
    digests = [digest for one in learned for digest in text_digests(store, one, anneal)]
    how = stages_recipe((*below, *refs), anneal, digests, host.ref)
    recipe = how.fingerprint
    unfinished = Unfinished(work_dir, f"{recipe} {host.dtype}", checkpoint_s)
    if (known := find_evaluation(store, recipe)) is not None:
        unfinished.remove()
        return known
    check_lengths(host, anneal, sealed=True)
    opened = [open_shadow(store, ref, host)[1] for ref in refs]
    texts = [read_texts(store, host, one, anneal) for one in learned]
    began = time.monotonic()
    parts = {
        domain: sealed_parts(one, anneal.sealed.chunk_tokens)[0]
        for domain, one in zip(anneal.domains, texts, strict=True)
    }
    parts[RETENTION] = sealed_parts(texts[0], anneal.sealed.chunk_tokens)[1]
    samples: list[StageLoss] = []
    done, total = 0, stages_work(shadow, anneal)
    with ExitStack() as stack:
        for ref in below:
            stack.enter_context(attached(host, open_shadow(store, ref, host)[1]))
        for count in range(len(opened) + 1):
            if count:
                stack.enter_context(attached(host, opened[count - 1]))
            for text, chunks_NT in parts.items():
                losses_N = chunk_losses(
                    host,
                    chunks_NT,
                    unfinished=unfinished,
                    part=f"{count} {text}",
                    progress=part_of(progress, done, total),
                )
                samples += [StageLoss(count, text, chunk, float(loss)) for chunk, loss in enumerate(losses_N)]
                done += len(chunks_NT)
    summary = {
        "protocol": "sealed chunks of every domain after each domain that was learned, in order",
        "host": str(host.ref),
        "shadows": [str(ref) for ref in refs],
        **forgetting(samples, list(anneal.domains)),
        "settings": {"shadow": shadow.identity(), "anneal": dict(how.params)},
    }
    published = publish_evaluation(
        store,
        f"{shadow.name}.cumulative",
        summary,
        {"samples": Table(encode_records(StageLoss, samples), len(samples), SAMPLES_RECIPE)},
        recipe=recipe,
        requires=[host.ref.version, *(ref.version for ref in (*below, *refs))],
        provenance={"subject": SUBJECT, "host": str(host.ref)},
        costs={"seconds": time.monotonic() - began},
        message=f"Evaluate {len(refs)} domains learned one after another",
    )
    unfinished.remove()
    return published


def forgetting(samples: Sequence[StageLoss], domains: Sequence[str]) -> dict[str, Any]:
    """Mean losses by stage and text; what each domain gained at its own stage, at the end, and lost between.

    `gain` is against the host before anything was learned, `forgotten` how much of it later domains took.
    """
    stages_ = range(len(domains) + 1)
    table = {
        text: [
            float(np.mean([one.loss for one in samples if (one.text, one.learned) == (text, stage)]))
            for stage in stages_
        ]
        for text in (*domains, RETENTION)
    }
    rows = {}
    for place, domain in enumerate(domains):
        losses = table[domain]
        own = losses[place] - losses[place + 1]
        rows[domain] = {
            "gain_own_stage": own,
            "gain_end": losses[0] - losses[-1],
            "forgotten": losses[-1] - losses[place + 1],
            "before_own_stage": losses[0] - losses[place],
        }
    drift = [loss - table[RETENTION][0] for loss in table[RETENTION]]
    return {"order": list(domains), "losses": table, "cumulative": rows, "drift_by_stage": drift}
