"""Directories: what lets a reader find a row of a large index file without reading the file.

Beside `index/<digest>.parquet` lies `index/<digest>.keys`: eight bytes of magic, the length of a sealed JSON
header, the header, and sections that the header names with length and digest. The header has the first name,
place and digest of every row group. The sections are key tables of versions and recipes with the rows that
they lead to, the Parquet footer (compressed), and the packs. All of it follows from the index file.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from store.backend import Backend
from store.errors import IntegrityError
from store.format import (
    canonical_json,
    check_digest,
    directory_key,
    is_digest,
    seal,
    sha256,
    unseal,
)
from store.keytable import encode_key_table, encode_positions, text_keys, version_keys
from store.region import Region, is_region, owned, read_regions
from store.sparse import regions_of

GROUP_ROWS = 1024
"""Rows per row group of an index file."""
MAX_INDEX_ROWS = 2**26

VERSION_KEYS = "version_keys"
VERSION_ROWS = "version_rows"
RECIPE_KEYS = "recipe_keys"
RECIPE_ROWS = "recipe_rows"
_FOOTER = "footer"
_PACKS = "packs"
_SECTIONS = (VERSION_KEYS, VERSION_ROWS, RECIPE_KEYS, RECIPE_ROWS, _FOOTER, _PACKS)

_START = struct.Struct("<8sQ")
_MAGIC = b"CELLARK1"
_FIRST_READ = 64 * 1024
_MAX_HEADER_BYTES = 2**26
_MAX_FOOTER_BYTES = 2**28
_FIELDS: dict[str, type] = {
    "footer": list,
    "groups": list,
    "index": str,
    "recipes": int,
    "rows": int,
    "sections": dict,
}


@dataclass(frozen=True, slots=True)
class Lead:
    """What a checkpoint knows of a directory: it spares a reader the request for the header.

    `header` and `version_keys` are regions of the directory file.
    """

    header: Region
    version_keys: Region


@dataclass(frozen=True, slots=True)
class Directory:
    """The decoded header of a directory.

    `rows` counts the rows of the index file, `recipes` those that have a recipe; `names` holds the first name
    of each row group, `groups` its bytes and `footer` those of the Parquet footer; `sections` are regions of
    the directory file.
    """

    index: str
    rows: int
    recipes: int
    names: list[str]
    groups: list[Region]
    footer: Region
    header: Region
    sections: dict[str, Region]

    @property
    def lead(self) -> Lead:
        """What a checkpoint keeps of it."""
        return Lead(self.header, self.sections[VERSION_KEYS])


def encode_directory(data: bytes, columns: pa.Table, packs: Mapping[str, tuple[int, int]]) -> bytes:
    """Return the directory of the index file `data`.

    `columns` are at least name, version and recipe of its rows; `packs` are the size of each pack and the
    newest commit of a row in it (0 if the rows do not say).
    """
    recipes = columns["recipe"].to_pylist()
    made = [position for position, recipe in enumerate(recipes) if recipe]
    recipe_keys, ranks = encode_key_table(text_keys(recipe for recipe in recipes if recipe))
    version_table, version_rows = encode_key_table(version_keys(columns["version"].to_pylist()))
    regions, footer = regions_of(data)
    names = columns["name"].take(pa.array(range(0, len(columns), GROUP_ROWS), pa.int64())).to_pylist()
    contents = {
        VERSION_KEYS: version_table,
        VERSION_ROWS: encode_positions(version_rows),
        RECIPE_KEYS: recipe_keys,
        RECIPE_ROWS: encode_positions([made[rank] for rank in ranks]),
        _FOOTER: zlib.compress(data[footer.offset :], 6),
        _PACKS: canonical_json({pack: list(figures) for pack, figures in packs.items()}),
    }
    sections, offset = {}, 0
    for name, content in contents.items():
        sections[name] = [offset, len(content), sha256(content)]
        offset += len(content)
    header = seal(
        {
            "footer": [footer.offset, footer.length, footer.digest],
            "groups": [
                [name, region.offset, region.length, region.digest]
                for name, region in zip(names, regions, strict=True)
            ],
            "index": sha256(data),
            "recipes": len(made),
            "rows": len(columns),
            "sections": sections,
        }
    )
    return b"".join([_START.pack(_MAGIC, len(header)), header, *contents.values()])


def read_directory(backend: Backend, index: str, lead: Lead | None = None) -> Directory:
    """Read the directory of the index file `index`; raises `IntegrityError` if it is damaged or of another.

    Raises `KeyMissing` if there is none: small files and those of earlier versions have none.
    """
    key = directory_key(index)
    if lead is not None:
        return decode_header(_read_region(backend, key, lead.header), index)
    data = backend.read(key, length=_FIRST_READ)
    if len(data) < _START.size or _START.unpack_from(data)[0] != _MAGIC:
        raise IntegrityError(f"{key} is not a directory of an index file; delete that object")
    end = _START.size + _START.unpack_from(data)[1]
    if end > _MAX_HEADER_BYTES:
        raise IntegrityError(f"{key} has a header that no store wrote; delete that object")
    if end > len(data):
        data += backend.read(key, offset=len(data), length=end - len(data))
    return decode_header(data[_START.size : end], index)


def lead_of(directory: bytes, index: str) -> Lead:
    """Return the lead of an encoded directory of `index`."""
    length = _START.unpack_from(directory)[1]
    return decode_header(directory[_START.size : _START.size + length], index).lead


def check_directory(data: bytes, index: str) -> Directory:
    """Check every byte of the directory of `index`; raises `IntegrityError` if any is not as written."""
    key = directory_key(index)
    if len(data) < _START.size or _START.unpack_from(data)[0] != _MAGIC:
        raise IntegrityError(f"{key} is not a directory of an index file; delete that object")
    end = _START.size + _START.unpack_from(data)[1]
    directory = decode_header(data[_START.size : end], index)
    for section in directory.sections.values():
        content = data[section.offset : section.offset + section.length]
        check_digest(content, section.digest, key, holds="directory of an index file")
        end = max(end, section.offset + section.length)
    if end != len(data):
        raise IntegrityError(f"{key} holds more than its header says; delete that object")
    return directory


def decode_header(header: bytes, index: str) -> Directory:
    """Decode the header of the directory of `index`; raises `IntegrityError` if no store wrote it."""
    key = directory_key(index)
    record = unseal(header, key, _FIELDS)
    rows, groups, sections = record["rows"], record["groups"], record["sections"]
    if (
        record["index"] != index
        or not 0 <= record["recipes"] <= rows <= MAX_INDEX_ROWS
        or len(groups) != -(-rows // GROUP_ROWS)
        or not all(isinstance(group, list) and group and isinstance(group[0], str) for group in groups)
        or sections.keys() != set(_SECTIONS)
        or not all(map(is_region, [record["footer"], *sections.values(), *(group[1:] for group in groups)]))
        or record["footer"][1] > _MAX_FOOTER_BYTES
        or any(length > 256 * rows + 2**20 for _, length, _ in sections.values())
    ):
        raise IntegrityError(f"{key} does not describe an index file; delete that object")
    start = _START.size + len(header)
    return Directory(
        index=index,
        rows=rows,
        recipes=record["recipes"],
        names=[group[0] for group in groups],
        groups=[Region(*group[1:]) for group in groups],
        footer=Region(*record["footer"]),
        header=Region(_START.size, len(header), sha256(header)),
        sections={
            name: Region(start + offset, length, digest)
            for name, (offset, length, digest) in sections.items()
        },
    )


def read_section(backend: Backend, index: str, section: Region) -> bytes:
    """Read a section of the directory of `index`, checked against its digest."""
    return _read_region(backend, directory_key(index), section)


def read_footer(backend: Backend, directory: Directory) -> bytes:
    """Return the footer of the index file, as its directory holds it."""
    packed = read_section(backend, directory.index, directory.sections[_FOOTER])
    try:
        footer = zlib.decompressobj().decompress(packed, directory.footer.length)
    except zlib.error:
        footer = b""
    key = directory_key(directory.index)
    return check_digest(footer, directory.footer.digest, key, holds="footer of an index file")


def read_packs(backend: Backend, directory: Directory) -> dict[str, tuple[int, int]]:
    """Return the size of each pack that the index file names, and the newest commit of a row in it."""
    data = read_section(backend, directory.index, directory.sections[_PACKS])
    try:
        record = json.loads(data)
        packs = {pack: (size, newest) for pack, (size, newest) in record.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        packs = {"": (0, 0)}
    if not all(
        is_digest(pack) and all(type(n) is int and n >= 0 for n in two) for pack, two in packs.items()
    ):
        raise IntegrityError(
            f"{directory_key(directory.index)} has packs that no store has; delete that object"
        )
    return packs


def _read_region(backend: Backend, key: str, region: Region) -> bytes:
    return owned(*read_regions(backend, key, [region], holds=lambda region: "directory of an index file"))
