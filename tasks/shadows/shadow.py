"""A shadow: additive matrices D of some blocks' `down_proj`, and how much of each is used."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from store.format import is_digest
from tasks.errors import BadPayload
from tasks.payload import pack_tensors, unpack_tensors
from tasks.shadows.blocks import chosen_layers, down_projections
from tasks.shadows.params import MOST_ALPHA, MOST_CHUNKS

if TYPE_CHECKING:
    from tasks.hosts import Host

FORMAT = 1
_WHAT = "shadow"
_RECORD_BYTES = 8 * 1024**2


@dataclass(frozen=True)
class Shadow:
    """y = W x + alpha_l D_l x in each shadowed layer l (ANNEAL).

    Args:
        host: version of the host that it belongs to.
        layers: decoder layers, ascending from 0.
        names: their modules, e.g. model.layers.4.mlp.down_proj.
        deltas: D of each layer, float32, of the shape of its W: (d, inner).
        alphas: scale of each layer, from 0 to 1.2.
        document: SHA-256 of the text that was learned.
        seeds: of everything random on the way, by what they were for.
        losses: mean loss of each chunk before it was learned, nats per token.
        stopped: why writing ended early, "" where it did not.
    """

    host: str
    layers: tuple[int, ...]
    names: tuple[str, ...]
    deltas: tuple[Tensor, ...] = field(repr=False)
    alphas: tuple[float, ...]
    document: str
    seeds: dict[str, int]
    losses: tuple[float, ...] = field(default=(), repr=False)
    stopped: str = ""

    @property
    def is_zero(self) -> bool:
        """Whether it changes nothing at all."""
        return not any(self.active)

    @property
    def active(self) -> tuple[bool, ...]:
        """For each layer, whether alpha and D are different from zero."""
        return tuple(
            alpha != 0 and bool(delta.any()) for alpha, delta in zip(self.alphas, self.deltas, strict=True)
        )

    def scaled(self, alphas: Sequence[float]) -> "Shadow":
        """The same matrices with other scales."""
        if len(alphas) != len(self.layers):
            raise ValueError(f"{len(alphas)} alphas for {len(self.layers)} layers")
        return replace(self, alphas=tuple(float(alpha) for alpha in alphas))

    def norms(self) -> tuple[float, ...]:
        """The Frobenius norm of each D."""
        return tuple(float(delta.double().norm()) for delta in self.deltas)

    def to_bytes(self) -> bytes:
        """The payload of its element; equal shadows give equal bytes."""
        record = {
            "format": FORMAT,
            "host": self.host,
            "layers": list(self.layers),
            "names": list(self.names),
            "alphas": list(self.alphas),
            "document": self.document,
            "seeds": dict(sorted(self.seeds.items())),
            "losses": list(self.losses),
            "stopped": self.stopped,
        }
        tensors = {f"delta.{layer}": delta for layer, delta in zip(self.layers, self.deltas, strict=True)}
        return pack_tensors(tensors, what=_WHAT, record=record)


def new_shadow(
    host: "Host", layers: tuple[int, ...] | None, *, document: str, seeds: dict[str, int]
) -> Shadow:
    """A shadow of zeros at full scale, on the host's device; see `chosen_layers`."""
    chosen = chosen_layers(host, layers)
    modules = down_projections(host, chosen)
    deltas = tuple(
        torch.zeros(module.weight.shape, dtype=torch.float32, device=host.device)
        for module in modules.values()
    )
    return Shadow(host.ref.version, chosen, tuple(modules), deltas, (1.0,) * len(chosen), document, seeds)


def most_bytes(host: "Host") -> int:
    """What the payload of a shadow of this host has at most: a D in every layer, and its record."""
    text = host.config.get_text_config()
    return host.layers * host.width * int(text.intermediate_size) * 4 + _RECORD_BYTES


def load_shadow(payload: bytes, host: "Host") -> Shadow:
    """The shadow behind a payload, for this host, on its device.

    Raises `BadPayload` when it is none, when another host's, or when matrices, names or scales do not fit.
    """
    if len(payload) > most_bytes(host):
        raise BadPayload(
            f"the payload has {len(payload):,} bytes, a shadow of {host.ref.name} {most_bytes(host):,} at "
            "most; check the reference"
        )
    tensors, record = unpack_tensors(payload, what=_WHAT)
    _ = host.model  # what is wrong with the host is not said of the shadow
    try:
        return _read(tensors, record, host)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BadPayload(
            f"the shadow does not fit {host.ref.name} or its own description ({reason}); write it again"
        ) from error


def _read(tensors: dict[str, Tensor], record: dict[str, Any], host: "Host") -> Shadow:
    if record["format"] != FORMAT:
        raise ValueError(f"its format is {record['format']!r}, not {FORMAT}")
    if record["host"] != host.ref.version:
        raise ValueError(f"it belongs to host version {str(record['host'])[:12]}")
    layers = tuple(_integers(record["layers"], host.layers))
    if not layers or list(layers) != sorted(set(layers)) or layers[0] < 0 or layers[-1] >= host.layers:
        raise ValueError("its layers are not ascending numbers of layers")
    modules = down_projections(host, layers)
    if record["names"] != list(modules):
        raise ValueError("its names are not those of the layers")
    alphas = tuple(_numbers(record["alphas"], host.layers))
    if len(alphas) != len(layers) or any(not 0 <= alpha <= MOST_ALPHA for alpha in alphas):
        raise ValueError(f"its alphas are not one for each layer, from 0 to {MOST_ALPHA}")
    if sorted(tensors) != sorted(f"delta.{layer}" for layer in layers):
        raise ValueError("its matrices are not those of the layers")
    deltas = []
    for layer, module in zip(layers, modules.values(), strict=True):
        delta = tensors[f"delta.{layer}"]
        if delta.dtype != torch.float32 or delta.shape != module.weight.shape:
            raise ValueError(f"the matrix of layer {layer} is {delta.dtype} {tuple(delta.shape)}")
        if not bool(torch.isfinite(delta).all()):
            raise ValueError(f"the matrix of layer {layer} is not finite")
        deltas.append(delta.to(host.device))
    losses = tuple(_numbers(record["losses"], MOST_CHUNKS))
    document, stopped, seeds = record["document"], record["stopped"], record["seeds"]
    if not is_digest(document) or not isinstance(stopped, str) or len(stopped) > 200:
        raise ValueError("its document or its end is none")
    if not isinstance(seeds, dict) or len(seeds) > 16:
        raise ValueError("its seeds are none")
    kept = {str(name): _integers([seed], 1)[0] for name, seed in seeds.items()}
    return Shadow(
        host.ref.version, layers, tuple(modules), tuple(deltas), alphas, document, kept, losses, stopped
    )


def _integers(values: Any, most: int) -> list[int]:
    if not isinstance(values, list) or len(values) > most or any(type(value) is not int for value in values):
        raise ValueError("what should be integers is not")
    return values


def _numbers(values: Any, most: int) -> list[float]:
    if not isinstance(values, list) or len(values) > most or any(type(v) not in (int, float) for v in values):
        raise ValueError("what should be numbers is not")
    if not all(math.isfinite(value) for value in values):
        raise ValueError("a number is not finite")
    return [float(value) for value in values]
