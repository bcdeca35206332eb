"""How many tokens a host reads at once: what is longer is refused before any work."""

from typing import TYPE_CHECKING

from tasks.errors import UnfitHost

if TYPE_CHECKING:
    from tasks.hosts import Host


def check_length(host: "Host", what: str, tokens: int, remedy: str = "lower it") -> None:
    """Raise `UnfitHost` where `what` takes more tokens than the host has positions for.

    Rotary positions go on beyond those that a model was trained with, and what it then says means nothing. A
    host whose configuration names no limit takes any length.
    """
    most = getattr(host.config.get_text_config(), "max_position_embeddings", None)
    if type(most) is int and 0 < most < tokens:
        raise UnfitHost(
            f"{what} takes {tokens:,} tokens, more than the {most:,} that {host.ref.name} reads at once; "
            f"{remedy}"
        )
