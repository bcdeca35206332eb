"""Parameters of the corpus and its tokenizer: what is read, how it is cut, how tokens are learned."""

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from tasks.parameters import Parameters

MAX_VOCABULARY = 65_536
"""Binary16 tells this many token ids apart."""

PLACE = "{partition}"
"""Where in a path the name of a partition belongs."""

Reader = Literal["installed", "folder", "jsonl", "parquet", "text"]

_FIELDS_OF: Mapping[str, frozenset[str]] = {
    "installed": frozenset({"packages", "exclude"}),
    "folder": frozenset({"path", "pattern"}),
    "jsonl": frozenset({"path", "id_field", "text_field"}),
    "parquet": frozenset({"path", "id_field", "text_field"}),
    "text": frozenset({"path", "split_on", "split_kind"}),
}
_READER_FIELDS = frozenset().union(*_FIELDS_OF.values())


def glob_below(pattern: str) -> str:
    """A glob as it is given; raises `ValueError` for one that leaves its folder or Pythons read apart."""
    parts = PurePosixPath(pattern).parts
    if not pattern.strip() or not parts or pattern.startswith("/") or ".." in parts:
        raise ValueError(f"pattern {pattern!r} is no glob below the folder; write e.g. **/*.txt")
    if any("**" in part and part != "**" for part in parts):
        raise ValueError(f"pattern {pattern!r} has ** beside other characters; write e.g. **/*.txt")
    return pattern


class CorpusParams(Parameters):
    """One corpus: where its documents come from and how they are spread over shards."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    name: str = Field(default="docs", pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
    """Names the elements: corpus/<name>/shard-NN."""
    reader: Reader = "installed"
    """installed documentation, a folder of text files, JSONL, Parquet, or one long text."""
    path: Path | None = None
    """File or folder to read (all readers but `installed`): a location, while the content is the identity."""
    partition: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    """Which part of a source that comes in parts, e.g. a date: it stands in `path` for `{partition}`. A part
    is a corpus of its own, <name>.<partition>, whose documents are named below <partition>/."""
    packages: tuple[str, ...] = (
        "python.topics",
        "stdlib",
        "numpy",
        "torch._torch_docs",
        "torch.functional",
        "torch.linalg",
        "torch.nn",
        "torch.optim",
        "pyarrow",
        "matplotlib",
    )
    """installed: `python.topics` (the texts of `help()`), `stdlib`, packages and parts of packages."""
    exclude: tuple[str, ...] = (
        "python.topics.compound",
        "python.topics.specialnames",
        "numpy.polynomial.hermite",
        "numpy.polynomial.hermite_e",
        "numpy.polynomial.laguerre",
        "numpy.polynomial.legendre",
    )
    """installed: leave out these names and everything below them. The default drops two chapters that repeat
    other topics word for word, and four polynomial families whose pages differ from a fifth only by name."""
    pattern: str = "**/*.txt"
    """folder: which files, as a glob relative to `path`."""
    id_field: str = "id"
    """jsonl, parquet: the field that names a document."""
    text_field: str = "text"
    """jsonl, parquet: the field that holds its text."""
    split_on: str | None = None
    """text: a line that matches starts a new document, e.g. `^Chapter \\d+`; None keeps the text whole."""
    split_kind: Literal["regex", "literal"] = "regex"
    """text: `regex` is searched in each line; `literal` must stand at the line's start."""
    min_characters: int | None = Field(default=None, ge=1)
    """Shorter documents are left out; None means 800 for installed documentation, 1 for everything else."""
    max_characters: int = Field(default=100_000, ge=1)
    """Longer documents are reported and left out: a memory worker holds one document at a time."""
    limit: int | None = Field(default=None, ge=1)
    """Stop after this many accepted documents; None reads everything."""
    shards: int = Field(default=16, ge=2, le=256, multiple_of=2)
    """Odd shards feed memory workers, even ones tokenizer, codec and core; large corpora want more shards."""

    @field_validator("split_on")
    @classmethod
    def _split_pattern_is_one_line(cls, value: str | None) -> str | None:
        if value is not None and (not value or "\n" in value):
            raise ValueError("split_on is matched line by line: it must be non-empty and hold no line end")
        return value

    @field_validator("pattern")
    @classmethod
    def _pattern_stays_below_the_folder(cls, value: str) -> str:
        return glob_below(value)

    @model_validator(mode="after")
    def _fields_fit_the_reader(self) -> Self:
        stray = sorted((self.model_fields_set & _READER_FIELDS) - _FIELDS_OF[self.reader])
        default = type(self).model_fields
        stray = [field for field in stray if getattr(self, field) != default[field].default]
        if stray:
            raise ValueError(f"the {self.reader!r} reader takes no {', '.join(stray)}")
        if self.reader != "installed" and self.path is None:
            raise ValueError(f"the {self.reader!r} reader needs a path")
        if self.partition is not None and not self.in_partitions:
            raise ValueError(f"path has no place for the partition; write {PLACE} where its name belongs")
        if self.split_on is not None and self.split_kind == "regex":
            try:
                re.compile(self.split_on)
            except re.error as error:
                raise ValueError(f"split_on {self.split_on!r} is no regular expression: {error}") from error
        return self

    @property
    def in_partitions(self) -> bool:
        """Whether the source comes in parts."""
        return self.path is not None and PLACE in str(self.path)

    @property
    def corpus(self) -> str:
        """The name of the corpus in the store: that of the parameters, with the partition if there is one."""
        return self.name if self.partition is None else f"{self.name}.{self.partition}"

    @property
    def prefix(self) -> str:
        """What the names of all documents begin with."""
        return "" if self.partition is None else f"{self.partition}/"

    @property
    def location(self) -> Path | None:
        """The file or folder of this partition, or of the whole source."""
        if self.path is None or self.partition is None:
            return self.path
        return Path(str(self.path).replace(PLACE, self.partition))

    @property
    def shortest(self) -> int:
        """The minimum length in characters that applies to this reader."""
        if self.min_characters is not None:
            return self.min_characters
        return 800 if self.reader == "installed" else 1

    def identity(self) -> dict[str, Any]:
        """What enters fingerprints: the reader's own fields and the cuts, without the location."""
        fields = (_FIELDS_OF[self.reader] - {"path"}) | {
            "name",
            "reader",
            "max_characters",
            "limit",
            "shards",
        }
        if self.partition is not None:  # so that a corpus without partitions is what it always was
            fields |= {"partition"}
        return {**self.model_dump(mode="json", include=set(fields)), "min_characters": self.shortest}


class TokenizerParams(Parameters):
    """A byte-level BPE tokenizer, trained on the even shards or taken from a given file."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    name: str = Field(default="bpe", pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
    """Names the element: tokenizer/<name>."""
    vocab_size: int = Field(default=4096, ge=258)
    """Ids in all, with <pad> = 0, <eos> = 1 and the 256 bytes; at most 65,536, the codes of sixteen bits."""
    min_frequency: int = Field(default=2, ge=1)
    """A pair must occur this often to become a token."""
    file: Path | None = None
    """Take this tokenizer.json (byte-level BPE) instead of training one; vocab_size is then the file's."""

    @field_validator("vocab_size")
    @classmethod
    def _ids_fit_sixteen_bits(cls, value: int) -> int:
        if value > MAX_VOCABULARY:
            raise ValueError(
                f"vocab_size {value} is above {MAX_VOCABULARY}, the number of codes of sixteen bits"
            )
        return value
