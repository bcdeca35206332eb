"""Where each element stands on the site, and the names that the search goes through.

Elements share pages, in the order of their names. A page ends at a name whose digest says so, not after a
fixed number: then an element that comes or goes changes one page or two, and all others stay as they are.
"""

import hashlib
import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

import pyarrow.compute as pc

from store import Catalog

LEAST, ABOUT, MOST = 12, 32, 96
"""Elements that a page holds at the least (but for the last of a kind), more or less, and at the most."""
SHARD = 4096
"""Names that the search loads at once, more or less."""
_UNSAFE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}


@dataclass(frozen=True, slots=True)
class Page:
    """A page of elements: the first and last of its names, and how many they are."""

    first: str
    last: str
    count: int

    @property
    def path(self) -> str:
        """Where it is in the site: never anything that somebody chose."""
        return f"elements/{hashlib.sha256(self.first.encode()).hexdigest()[:16]}.html"


class Places:
    """The pages of all elements, by which an element's page is found; of their versions the number and what
    the packs that hold them take."""

    def __init__(self, pages: list[Page], versions: int = 0, stored: int = 0) -> None:
        self.pages = pages
        self.versions = versions
        self.stored = stored
        self._first = [page.first for page in pages]

    @property
    def names(self) -> int:
        """How many elements there are."""
        return sum(page.count for page in self.pages)

    def link(self, name: str) -> str:
        """Address of an element from the site's root; empty where it has no page."""
        place = bisect_right(self._first, name) - 1
        if place < 0 or self.pages[place].last < name:
            return ""
        return f"{self.pages[place].path}#{anchor(name)}"


def anchor(name: str) -> str:
    """The id of an element on its page, in letters that an address needs not escape."""
    return quote(name, safe="/")


class Names:
    """Every name that a version has which commit `tip` or one before it made visible, in order, once.

    When they were gone through, `versions` says how many there are, and `stored` the bytes of their packs.
    """

    def __init__(self, catalog: Catalog, tip: int) -> None:
        self._catalog = catalog
        self._tip = tip
        self._packs: set[str] = set()
        self.versions = 0

    def __iter__(self) -> Iterator[str]:
        last = None
        for table in self._catalog.scan(["name", "commit", "pack"]):
            table = table.filter(pc.less_equal(table["commit"], self._tip))
            self.versions += len(table)
            self._packs.update(pc.unique(table["pack"]).to_pylist())
            for name in table["name"].to_pylist():
                if name != last:
                    yield name
                    last = name

    @property
    def stored(self) -> int:
        """Bytes of the packs that the versions lie in."""
        return sum(size for pack, size in self._catalog.packs().items() if pack in self._packs)


def pages_of(names: Iterable[str]) -> Iterator[list[str]]:
    """Cut sorted names into pages, each of one kind."""
    page: list[str] = []
    for name in names:
        if page and page[0].partition("/")[0] != name.partition("/")[0]:
            yield page
            page = []
        page.append(name)
        ends = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % (ABOUT - LEAST) == 0
        if (ends and len(page) >= LEAST) or len(page) == MOST:
            yield page
            page = []
    if page:
        yield page


def shards_of(pages: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    """Collect pages into shards of names."""
    shard: list[list[str]] = []
    for page in pages:
        shard.append(page)
        if sum(map(len, shard)) >= SHARD:
            yield shard
            shard = []
    if shard:
        yield shard


def call(function: str, *values: object) -> str:
    """A script that calls a function of the page's own script with data; data never becomes code.

    JSON in ASCII is JavaScript, and without these three signs nothing in it ends or begins an element.
    """
    texts = (json.dumps(value, separators=(",", ":")).translate(_UNSAFE) for value in values)
    return f"{function}({','.join(texts)});\n"
