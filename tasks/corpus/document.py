"""What a reader yields, documents and reasons why some were left out; the rules for names and texts."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

MAX_NAME_BYTES = 200
"""Longest document name in UTF-8 bytes; leaves room for the kind and for suffixes within an element name."""

_DASHES = re.compile(r"-{2,}")


@dataclass(frozen=True, slots=True)
class Document:
    """One text with a stable name; `source` tells people where it was read (a file, a package, a line).

    The source is no part of the document's identity: a text that moves to another line stays what it is.
    """

    name: str
    text: str
    source: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of the text as UTF-8, in hex: the document's identity by content."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()

    def below(self, prefix: str) -> "Document":
        """The same text under a name that begins with `prefix`."""
        return Document(prefix + self.name, self.text, self.source) if prefix else self


@dataclass(frozen=True, slots=True)
class Skipped:
    """A document that was not taken, with the reason in a few words."""

    name: str
    reason: str

    def below(self, prefix: str) -> "Skipped":
        """The same reason under a name that begins with `prefix`."""
        return Skipped(prefix + self.name, self.reason) if prefix else self


Item = Document | Skipped


def clean_name(raw: str) -> str:
    """Turn any identifier into a valid element name; "" when nothing usable is left.

    Letters, marks and digits of every script stay (NFC), and so do `. _ - /`; a run of anything else becomes
    one dash. Path parts made of dots only are dropped, so a name can never climb out of its kind. Longer
    names are cut and end in eight hex digits of the full name's digest.
    """
    normal = unicodedata.normalize("NFC", raw)
    mapped = "".join(c if c in "._-/" or unicodedata.category(c)[0] in "LMN" else "-" for c in normal)
    parts = (_DASHES.sub("-", part).strip("-") for part in mapped.split("/"))
    name = "/".join(part for part in parts if part.strip("."))
    encoded = name.encode("utf-8")
    if len(encoded) <= MAX_NAME_BYTES:
        return name
    suffix = hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return encoded[: MAX_NAME_BYTES - 9].decode("utf-8", "ignore").rstrip("-/") + "-" + suffix


def clean_text(text: str) -> str:
    """Normalise line ends to LF and drop a byte-order mark and outer whitespace; nothing else is touched."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").strip()


def fault_of(text: str, *, shortest: int, longest: int) -> str | None:
    """Why a cleaned text cannot become a document, or None when it can; lengths are in characters."""
    if not text:
        return "empty"
    if len(text) < shortest:
        return f"shorter than {shortest} characters"
    if len(text) > longest:
        return f"longer than {longest} characters"
    if "\0" in text:
        return "contains NUL characters"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "not valid Unicode (a lone surrogate)"
    return None


def _as_utf8(source: str) -> str:
    """Where a document comes from, with the bytes of a file name that are not UTF-8 written out."""
    return source.encode("utf-8", "backslashreplace").decode()


def screen(items: Iterable[Item], *, shortest: int, longest: int) -> Iterable[Item]:
    """Clean every document's name and text, and replace the unusable ones by their reason; order is kept."""
    for item in items:
        name = clean_name(item.name)
        if isinstance(item, Skipped):
            yield Skipped(name or "unnamed", item.reason)
            continue
        text = clean_text(item.text)
        fault = fault_of(text, shortest=shortest, longest=longest)
        if fault is None and not name:
            fault = "its name has no usable character"
        yield Skipped(name or "unnamed", fault) if fault else Document(name, text, _as_utf8(item.source))
