"""Elements, their versions and references: what a published thing is and how it is named."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from store.errors import InvalidName, InvalidPayload, InvalidRecord
from store.format import canonical_json, encode_json, is_digest, plain, sha256

KINDS = frozenset(
    {
        "memory",
        "skill",
        "residual",
        "shadow",
        "tokenizer",
        "codec",
        "core",
        "reranker",
        "index",
        "corpus",
        "evaluation",
        "host",
        "stack",
    }
)
"""What an element can be: `memory` and `skill` attach to a core, `residual` and `shadow` to a `host`, and a
`stack` is a host with shadows attached in order; the others support these. docs/formats.md has all of them.
"""

_SIMPLE_NAME = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/)*[A-Za-z0-9_-][A-Za-z0-9._-]*")
SAFETENSORS = "application/safetensors"
MAX_NAME_BYTES = 512
MAX_PAYLOAD_BYTES = 4 * 1024**3
"""A pack is uploaded in one request, and S3 takes 5 GiB at most in one."""

MAX_RECORD_BYTES = 16 * 1024**2
"""JSON text of provenance, facts and requirements of one element: decoded, it takes thirty times its size."""
_REQUIREMENT_BYTES = 67
"""A version as JSON text, with its comma."""


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """An exact reference: full name and version. `str(ref)` is `kind/name@<64 hex digits>`."""

    name: str
    version: str

    def __post_init__(self) -> None:
        check_full_name(self.name)
        if not is_digest(self.version):
            raise InvalidName(f"{self.version!r} is not a version; a version is 64 lower-case hex digits")

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def kind(self) -> str:
        """The part of the name before the first slash."""
        return self.name.partition("/")[0]

    @classmethod
    def parse(cls, text: str) -> Ref:
        """Read `kind/name@version`; the name itself may hold an `@`."""
        name, at, version = text.rpartition("@")
        if not at:
            raise InvalidName(f"{text!r} is not a reference; write kind/name@version")
        return cls(name=name, version=version)


def check_full_name(full_name: str) -> str:
    """Return `kind/name` if it follows the rules, otherwise raise `InvalidName` that says which it breaks."""
    kind, slash, name = full_name.partition("/")
    if not slash or kind not in KINDS:
        raise InvalidName(
            f"{full_name!r} does not start with a known kind ({', '.join(sorted(KINDS))}) and '/'"
        )
    problem = _name_problem(name)
    if problem:
        raise InvalidName(f"element name {name[:80]!r} {problem}; rename it")
    return full_name


def _name_problem(name: str) -> str | None:
    if len(name) <= MAX_NAME_BYTES and _SIMPLE_NAME.fullmatch(name):
        return None  # as most are; the rest takes ten times as long
    if not name:
        return "is empty"
    if any(unicodedata.category(letter)[0] == "C" or letter in "\u2028\u2029\\" for letter in name):
        return "holds a control, unassigned or invisible character or a backslash"
    if len(name.encode("utf-8")) > MAX_NAME_BYTES:
        return f"is longer than {MAX_NAME_BYTES} bytes"
    if any(part in ("", ".", "..") for part in name.split("/")):
        return "has an empty, '.' or '..' part between slashes"
    if name != name.strip():
        return "starts or ends with white space"
    if not unicodedata.is_normalized("NFC", name):
        return "is not in Unicode NFC form, so that two equal-looking names would differ"
    return None


@dataclass(frozen=True)
class Element:
    """One publishable thing: a payload with the identity that makes its version.

    `provenance` is what reproduces the payload and belongs to the identity; its key `recipe` holds the
    fingerprint of the step that made it. `facts` are figures measured on the way (recall, loss, steps): they
    are stored beside the identity and never change the version. `requires` are the exact versions that the
    payload is useless without; order and repetition do not matter.
    """

    kind: str
    name: str
    payload: bytes = field(repr=False)
    media: str = SAFETENSORS
    requires: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    provenance_json: bytes = field(init=False, repr=False, compare=False)
    """The provenance as canonical JSON."""
    facts_json: bytes = field(init=False, repr=False, compare=False)
    """The facts as canonical JSON."""

    def __post_init__(self) -> None:
        check_full_name(self.full_name)
        if not self.media or not self.media.isascii() or not self.media.isprintable():
            raise InvalidRecord(f"{self.full_name}: {self.media!r} is not a media type")
        for version in self.requires:
            if not is_digest(version):
                raise InvalidRecord(
                    f"{self.full_name}: requirement {version!r} is not a version (64 hex digits)"
                )
        if not isinstance(self.provenance.get("recipe", ""), str):
            raise InvalidRecord(f"{self.full_name}: provenance 'recipe' must be a fingerprint in hex")
        if len(self.payload) > MAX_PAYLOAD_BYTES:
            raise InvalidPayload(
                f"{self.full_name}: payload is larger than {MAX_PAYLOAD_BYTES} bytes; split it"
            )
        object.__setattr__(self, "requires", tuple(sorted(set(self.requires))))
        object.__setattr__(self, "provenance", plain(self.provenance))
        object.__setattr__(self, "facts", plain(self.facts))
        object.__setattr__(self, "provenance_json", canonical_json(self.provenance))
        object.__setattr__(self, "facts_json", canonical_json(self.facts))
        size = len(self.provenance_json) + len(self.facts_json) + _REQUIREMENT_BYTES * len(self.requires)
        if size > MAX_RECORD_BYTES:
            raise InvalidRecord(
                f"{self.full_name}: provenance, facts and requirements take {size:,} bytes as JSON, more "
                f"than {MAX_RECORD_BYTES:,}; put what is large into the payload"
            )

    @property
    def full_name(self) -> str:
        """`kind/name`."""
        return f"{self.kind}/{self.name}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the payload."""
        return sha256(self.payload)

    @cached_property
    def version(self) -> str:
        """Digest of the identity; see `record_of`."""
        return sha256(self.record_json)

    @cached_property
    def record_json(self) -> bytes:
        """The record as canonical JSON."""
        return encode_record(
            self.full_name,
            self.media,
            self.digest,
            len(self.payload),
            self.requires,
            self.provenance_json.decode(),
        )

    @property
    def record(self) -> dict[str, Any]:
        """The canonical record whose digest is the version."""
        return record_of(
            self.full_name, self.media, self.digest, len(self.payload), self.requires, self.provenance
        )

    @property
    def ref(self) -> Ref:
        """Reference to exactly this version."""
        return Ref(name=self.full_name, version=self.version)


def record_of(
    full_name: str,
    media: str,
    digest: str,
    length: int,
    requires: Sequence[str],
    provenance: Mapping[str, Any],
) -> dict[str, Any]:
    """Build the identity record of an element; equal records have equal versions in every process."""
    kind, _, name = full_name.partition("/")
    return {
        "kind": kind,
        "media": media,
        "name": name,
        "payload": {"digest": digest, "length": length},
        "provenance": provenance,
        "requires": sorted(requires),
    }


def encode_record(
    full_name: str, media: str, digest: str, length: int, requires: Sequence[str], provenance: str
) -> bytes:
    """Return the canonical JSON of `record_of` where that of the provenance is known, without decoding it."""
    kind, _, name = full_name.partition("/")
    needs = ",".join(f'"{version}"' for version in sorted(requires))
    text = (
        f'{{"kind":{encode_json(kind)},"media":{encode_json(media)},"name":{encode_json(name)},'
        f'"payload":{{"digest":"{digest}","length":{length}}},"provenance":{provenance},"requires":[{needs}]}}'
    )
    return text.encode()


def fingerprint(recipe: str, *, params: Mapping[str, Any], inputs: Sequence[str]) -> str:
    """Fingerprint a computation: the recipe with its version (`codec.train/1`), parameters, input versions.

    The order of `inputs` counts. Where and on what the computation runs must not be among the parameters.
    """
    return sha256(canonical_json({"inputs": list(inputs), "params": params, "recipe": recipe}))


def describe_tensors(media: str, payload: bytes, full_name: str) -> tuple[str, tuple[int, ...]]:
    """Return dtype and shape of the largest tensor of a safetensors payload, `("", ())` for other media.

    Reads the header only. Raises `InvalidPayload` if the header does not describe the bytes that follow.
    """
    if media != SAFETENSORS:
        return "", ()
    try:
        size = int.from_bytes(payload[:8], "little")
        if len(payload) < 8 or size > len(payload) - 8:
            raise ValueError("header length")
        header = json.loads(payload[8 : 8 + size])
        tensors = [
            (math.prod(shape), name, _dtype_of(entry), shape)
            for name, entry in header.items()
            if name != "__metadata__"
            for shape in (_shape_of(entry),)
        ]
        end = max((int(header[name]["data_offsets"][1]) for _, name, _, _ in tensors), default=0)
        if end != len(payload) - 8 - size:
            raise ValueError("data length")
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        OverflowError,
        RecursionError,
    ) as error:
        raise InvalidPayload(
            f"{full_name}: the payload is not a safetensors file; set `media` to what it is"
        ) from error
    if not tensors:
        return "", ()
    _, _, dtype, shape = max(tensors, key=lambda tensor: (tensor[0], tensor[1]))
    return dtype, shape


def _dtype_of(entry: Mapping[str, Any]) -> str:
    dtype = entry["dtype"]
    if not isinstance(dtype, str) or not dtype.isascii():
        raise ValueError("dtype")
    return dtype


def _shape_of(entry: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape in a header's entry; `ValueError` for sizes that an int64 column cannot hold."""
    shape = entry["shape"]
    if not isinstance(shape, list) or not all(type(size) is int and 0 <= size < 2**63 for size in shape):
        raise ValueError("shape")
    return tuple(shape)
