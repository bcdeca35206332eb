"""The shadows room's door to the store: a domain written into `shadow/<name>.written`, opened, merged."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from store import Element, Recipe, Ref, Store
from tasks.checkpoint import CHECKPOINT_S, Checkpoints, find_trained, publish_trained
from tasks.corpus import Document
from tasks.progress import Progress, silent
from tasks.shadows.context import check_length
from tasks.shadows.documents import digest_of, read_documents
from tasks.shadows.merging import merge
from tasks.shadows.named import KIND, stack_refs
from tasks.shadows.opening import open_shadow
from tasks.shadows.params import WRITTEN, ShadowParams
from tasks.shadows.shadow import Shadow, new_shadow
from tasks.shadows.stack import standing_on
from tasks.shadows.text import Domain, part
from tasks.shadows.writing import write_shadow

if TYPE_CHECKING:
    from tasks.hosts import Host, HostIdentity


def read_domain(store: Store, host: "Host", params: ShadowParams) -> Domain:
    """The domain of the parameters in its four parts, in the host's tokens."""
    return _parted(read_documents(store, params.domain), host, params)


def _parted(documents: Sequence[Document], host: "Host", params: ShadowParams) -> Domain:
    return part(
        documents,
        host.encode,
        host.end,
        params.held,
        train_tokens=params.chunks * params.chunk_tokens,
        seed=params.seed,
    )


def writing_recipe(
    host: "HostIdentity", params: ShadowParams, digest: str, onto: Sequence[Ref] = ()
) -> Recipe:
    """How a domain of this digest is written into shadows of a host that others are on already."""
    options = {**params.identity(), "dtype": str(host.dtype).removeprefix("torch.")}
    return Recipe("shadows.write/1", options, (host.ref.version, digest, *(ref.version for ref in onto)))


def find_written(store: Store, host: "HostIdentity", params: ShadowParams) -> Ref | None:
    """The shadow that `write_domain` would find, None where it would write."""
    digest = digest_of(read_documents(store, params.domain))
    recipe = writing_recipe(host, params, digest, stack_refs(store, params.onto))
    return find_trained(store, recipe.fingerprint, None, name=f"{KIND}{params.name}{WRITTEN}")


def write_domain(
    store: Store,
    host: "Host",
    params: ShadowParams,
    *,
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> Ref:
    """Publish `shadow/<name>.written`, the domain at full strength, or find it.

    Held-out text is parted first. With `work_dir` an interrupted stream continues, bit for bit, from what it
    kept every `checkpoint_s` seconds. Raises `UnfitHost` for chunks longer than the host reads.
    """
    documents = read_documents(store, params.domain)
    onto = stack_refs(store, params.onto)
    recipe = writing_recipe(host, params, digest_of(documents), onto)
    name = f"{params.name}{WRITTEN}"
    checkpoints = None if work_dir is None else Checkpoints(work_dir, recipe.fingerprint, checkpoint_s)
    if (there := find_trained(store, recipe.fingerprint, checkpoints, name=f"{KIND}{name}")) is not None:
        return there
    check_length(host, "shadow.chunk_tokens", params.chunk_tokens)
    domain = _parted(documents, host, params)
    zero = new_shadow(host, params.layers, document=domain.digest, seeds={"documents": params.seed})
    with standing_on(store, host, onto):
        written = write_shadow(host, zero, domain.train_T, params, progress=progress, checkpoints=checkpoints)
    element = shadow_element(
        name,
        written,
        host=host.ref,
        requires=tuple(ref.version for ref in onto),
        provenance={
            "recipe": recipe.fingerprint,
            "params": recipe.params,
            "held_out_by": domain.by,
            "onto": [str(ref) for ref in onto],
        },
        facts={"chunks": len(written.losses), "stopped": written.stopped},
    )
    message = f"Write {len(written.losses)} chunks into shadow {params.name}"
    return publish_trained(store, element, checkpoints, message=message)


def shadow_element(
    name: str,
    shadow: Shadow,
    *,
    host: Ref,
    requires: tuple[str, ...] = (),
    provenance: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Element:
    """The element `shadow/<name>`; `provenance` belongs to the version, `facts` stand beside it."""
    return Element(
        "shadow",
        name.removeprefix(KIND),
        shadow.to_bytes(),
        requires=(host.version, *requires),
        provenance={"host": str(host), "document": shadow.document, **(provenance or {})},
        facts={
            "layers": list(shadow.layers),
            "alphas": list(shadow.alphas),
            "norms": list(shadow.norms()),
            **(facts or {}),
        },
    )


def merge_shadows(
    store: Store,
    host: "Host",
    folder: Path,
    refs: Sequence[Ref],
    out: Path,
    *,
    progress: Progress = silent,
) -> int:
    """Write the host of `folder` with all of these shadows in its weights into `out`; see `merge`."""
    opened = [open_shadow(store, ref, host) for ref in refs]
    return merge(folder, host.ref, opened, out, progress=progress)
