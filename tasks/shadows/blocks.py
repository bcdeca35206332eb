"""Which matrices of a host get a shadow: the `down_proj` of the gated MLPs of some decoder layers."""

from typing import TYPE_CHECKING, Any

from torch import nn

from tasks.errors import UnfitHost

if TYPE_CHECKING:
    from tasks.hosts import Host

_EVERY = 5
_FULL = "full_attention"


def default_layers(layer_types: list[str] | None, layers: int) -> tuple[int, ...]:
    """The full-attention layers where kinds of layers differ (ANNEAL); else every fifth and the last (ours).

    `layer_types` is the host's configuration of that name: one kind for each of its `layers` layers.
    """
    if layer_types is not None and len(layer_types) == layers:
        full = tuple(number for number, kind in enumerate(layer_types) if kind == _FULL)
        if 0 < len(full) < layers:
            return full
    return tuple(sorted({*range(_EVERY - 1, layers, _EVERY), layers - 1}))


def chosen_layers(host: "Host", layers: tuple[int, ...] | None) -> tuple[int, ...]:
    """The layers asked for, or the default ones of this host; raises `UnfitHost` for layers it lacks."""
    if layers is None:
        kinds = getattr(host.config.get_text_config(), "layer_types", None)
        layers = default_layers(None if kinds is None else list(kinds), host.layers)
    if layers[-1] >= host.layers:
        raise UnfitHost(
            f"{host.ref.name} has {host.layers} decoder layers; shadow.layers asks for number {layers[-1]}"
        )
    return layers


def down_projections(host: "Host", layers: tuple[int, ...]) -> dict[str, nn.Linear]:
    """The matrices of these layers by the names of their modules, in order of the layers.

    Raises `UnfitHost` where a layer has no `mlp.down_proj`, as those of experts have not.
    """
    model: Any = host.model
    decoder = model.get_decoder()
    names = {id(module): name for name, module in host.model.named_modules()}
    found: dict[str, nn.Linear] = {}
    for number in layers:
        module = getattr(getattr(decoder.layers[number], "mlp", None), "down_proj", None)
        if not isinstance(module, nn.Linear):
            raise UnfitHost(
                f"layer {number} of {host.ref.name} ends in no gated MLP (mlp.down_proj); choose other ones "
                "with shadow.layers"
            )
        found[names[id(module)]] = module
    return found
