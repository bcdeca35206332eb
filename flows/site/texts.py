"""Decoded texts of memories: what a snapshot's readout says, with the decoder's confidence in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from flows.formatting import confidence_level
from flows.site.survey import Survey
from store import Row, Snapshot, Store
from store.errors import CellarError

if TYPE_CHECKING:
    from tasks.codec import Codec
    from tasks.corpus import Tokenizer
    from tasks.retrieval import Readout

MOST_TOKENS = 4000
"""Tokens that are shown of one memory."""
MOST_READOUTS = 4
"""Readouts that are held at one time: that of each head's snapshot, and of the newest ones."""
_READOUT = "/readout"


@dataclass(frozen=True)
class Text:
    """The text of one memory in runs of one confidence (sure, fair, doubtful); `shown` of `total` tokens."""

    runs: Sequence[tuple[str, str]]
    shown: int
    total: int
    confidence: float
    lowest: float

    @property
    def size(self) -> int:
        """Bytes of the text."""
        return sum(len(text.encode()) for text, _ in self.runs)


@dataclass(frozen=True)
class _Source:
    """A readout with what is needed to read it."""

    snapshot: Snapshot
    readout: "Readout"
    tokenizer: "Tokenizer"
    codec: "Codec"


class Texts:
    """The texts of memories that one of the site's snapshots has a readout of, up to a number of bytes."""

    def __init__(
        self, store: Store, sources: Sequence[_Source], most_bytes: int, *, wanted: bool = True
    ) -> None:
        self._wanted = wanted
        self._store = store
        self._sources = sources
        self._left = most_bytes
        self.read = 0
        self.left_out = 0

    @classmethod
    def open(cls, survey: Survey, most_bytes: int, warn: Callable[[object], None]) -> "Texts":
        """Open the readouts of the heads' snapshots and of the newest ones; none where there is no text."""
        if not most_bytes:
            return cls(survey.store, [], 0, wanted=False)
        named = set(survey.heads.values())
        order = sorted(survey.pinned, key=lambda pinned: pinned.id not in named)
        sources: list[_Source] = []
        seen: set[str] = set()
        for pinned in order:
            rows = [row for row in pinned.snapshot.rows("index") if row.name.endswith(_READOUT)]
            for row in rows:
                if row.version not in seen and len(sources) < MOST_READOUTS:
                    seen.add(row.version)
                    try:
                        sources.append(_open(pinned.snapshot, row))
                    except CellarError as error:
                        warn(f"no text is read from {row.name} of snapshot {pinned.id[:12]}: {error}")
        return cls(survey.store, sources, most_bytes)

    def of(self, row: Row) -> Text | str:
        """The text of a memory, or a sentence that says why there is none."""
        for source in self._sources:
            place = source.readout.row_of.get(row.name)
            if place is not None and source.readout.versions[place] == row.version:
                if self._left <= 0:
                    self.left_out += 1
                    return "Left out: the texts on this site have reached the size that they may have in all."
                try:
                    text = _text(source, self._store.read(row), place)
                except CellarError as error:
                    self.left_out += 1
                    return f"It cannot be read: {error}."
                self._left -= text.size
                self.read += 1
                return text
        self.left_out += 1
        if not self._wanted:
            return "This site was built without texts."
        return "No snapshot that was read for texts has decoded this version."


def _open(snapshot: Snapshot, row: Row) -> _Source:
    from tasks.codec import load_codec
    from tasks.corpus import Tokenizer
    from tasks.retrieval import Readout

    return _Source(
        snapshot,
        Readout.from_bytes(snapshot.read(row)),
        Tokenizer.from_bytes(snapshot.read(snapshot.one("tokenizer"))),
        load_codec(snapshot.read(snapshot.one("codec"))),
    )


def _text(source: _Source, payload: bytes, place: int) -> Text:
    from tasks.retrieval import confidences

    ids = source.readout.tokens(place)
    shown = min(len(ids), MOST_TOKENS)
    sure = confidences(source.codec, payload, ids, 0, shown)
    tokens = zip(source.tokenizer.pieces(ids[:shown]), map(confidence_level, sure), strict=True)
    runs = [
        ("".join(text for text, _ in run), level) for level, run in groupby(tokens, key=lambda pair: pair[1])
    ]
    return Text(runs, shown, len(ids), sum(sure) / len(sure) if sure else 0.0, min(sure, default=0.0))
