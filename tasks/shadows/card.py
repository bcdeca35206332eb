"""The model card of a merged host: which host and shadows are in its weights, and how that is checked."""

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from store import Ref
from tasks.shadows.shadow import Shadow

CARD = "README.md"


def merge_card(
    host: Ref, shadows: Sequence[tuple[Ref, Shadow]], weights: Mapping[str, str], changed: int
) -> str:
    """A card in Markdown, the same for the same merge: host, shadows, alphas by layer, SHA-256 of weights.

    `weights` are digests by file name, `changed` is how many matrices are other than the host's.
    """
    name = host.name.partition("/")[2]
    named = [ref.name.partition("/")[2] for ref, _ in shadows]
    lines = [
        "---",
        "library_name: transformers",
        "tags: [cellar, anneal]",
        "---",
        f"# {name} with {', '.join(named) or 'no shadow'}",
        "",
        f"Weights of a frozen host with shadows added, W + alpha D, in {changed} of its matrices; the rest",
        "is the host's. Sums are made in float32 and rounded once to the dtype of the weights.",
        "",
        "| | |",
        "|---|---|",
        f"| host | `{host}` |",
        *(f"| shadow | `{ref}` |" for ref, _ in shadows),
        "",
        "| shadow | text, SHA-256 | alpha by layer |",
        "|---|---|---|",
        *(f"| `{ref.name}` | `{one.document}` | {_alphas(one)} |" for ref, one in shadows),
        "",
        "## Check",
        "",
        "`sha256sum *.safetensors` gives",
        "",
        "```",
        *(f"{digest}  {file}" for file, digest in sorted(weights.items())),
        "```",
        *(_again(name, [ref for ref, _ in shadows]) if shadows else ()),
        "",
    ]
    return "\n".join(lines)


def _again(host: str, refs: Sequence[Ref]) -> list[str]:
    names = map(str, refs)
    command = shlex.join(
        ["cellar", "anneal", "merge", *names, "--set", f"host.name={host}", "--out", "again"]
    )
    told = "The store that they came from writes the same bytes again, and these are their sums:"
    check = "(cd again && sha256sum *.safetensors)"
    return ["", told, "", "```sh", command, check, "```"]


def digests(folder: Path, pattern: str) -> dict[str, str]:
    """The SHA-256 of the files of a folder, by name."""
    found = {}
    for path in folder.glob(pattern):
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _alphas(shadow: Shadow) -> str:
    pairs = zip(shadow.layers, shadow.alphas, strict=True)
    return ", ".join(f"{layer}: {alpha:.6g}" for layer, alpha in pairs)
