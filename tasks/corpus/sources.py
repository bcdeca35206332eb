"""A corpus source: its files, its identity, and its documents, for whichever reader the parameters choose."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from store.paths import usable_path
from tasks.corpus.document import Item, Skipped, screen
from tasks.corpus.files import SourceFile, content_identity, list_files
from tasks.corpus.installed import list_sources, read_installed
from tasks.corpus.params import CorpusParams
from tasks.corpus.readers import (
    JSONL_PATTERNS,
    PARQUET_PATTERNS,
    read_folder,
    read_jsonl,
    read_parquet,
    read_text,
)
from tasks.errors import BadCorpus


@dataclass(frozen=True, slots=True)
class Source:
    """The files that a corpus is read from, in reading order, and what was already found missing."""

    params: CorpusParams
    packages: Mapping[str, Sequence[SourceFile]]
    """The files by package for the installed reader; one entry "" for all others."""
    missing: tuple[Skipped, ...] = ()

    @property
    def files(self) -> list[SourceFile]:
        return [file for files in self.packages.values() for file in files]

    def identity(self) -> str:
        """SHA-256 of the content of every file; see `content_identity`."""
        return content_identity(self.files)

    def stamps(self) -> list[tuple[int, int]]:
        """Sizes and times of all files: equal before and after reading means nobody wrote meanwhile."""
        return [file.stamp() for file in self.files]

    def items(self) -> Iterator[Item]:
        """Screened documents and skipped ones in a stable order; duplicates are still among them."""
        yield from self.missing
        named = (item.below(self.params.prefix) for item in self._read())
        yield from screen(named, shortest=self.params.shortest, longest=self.params.max_characters)

    def _read(self) -> Iterator[Item]:
        params, files, longest = self.params, self.files, self.params.max_characters
        match params.reader:
            case "installed":
                return read_installed(self.packages, exclude=params.exclude, shortest=params.shortest)
            case "folder":
                return read_folder(files, longest=longest)
            case "jsonl":
                return read_jsonl(
                    files, id_field=params.id_field, text_field=params.text_field, longest=longest
                )
            case "parquet":
                return read_parquet(files, id_field=params.id_field, text_field=params.text_field)
            case "text":
                return read_text(files, split_on=params.split_on, kind=params.split_kind, longest=longest)


def open_source(params: CorpusParams) -> Source:
    """List the files that the parameters point to; raises BadCorpus where there are none."""
    if params.reader == "installed":
        packages, missing = list_sources(params.packages)
        if not packages:
            raise BadCorpus(
                f"none of the packages {', '.join(params.packages)} is installed; set corpus.packages"
            )
        return Source(params, packages, tuple(missing))
    assert params.location is not None, "CorpusParams demands a path for this reader"
    if params.in_partitions and params.partition is None:
        raise BadCorpus(f"{params.path} has a place for a partition; say which with corpus.partition")
    path = usable_path(params.location, BadCorpus, "corpus.path")
    if params.reader == "text" and path.is_dir():
        raise BadCorpus(f"{path} is a folder; give one text file, or choose the folder reader")
    if params.reader == "folder" and path.is_file():
        raise BadCorpus(f"{path} is a file; give its folder, or choose the text reader")
    patterns = {"folder": (params.pattern,), "jsonl": JSONL_PATTERNS, "parquet": PARQUET_PATTERNS}
    files = list_files(path, patterns.get(params.reader, ()))
    if not files:
        raise BadCorpus(
            f"no file below {path} matches {' or '.join(patterns[params.reader])}; "
            "nothing to read, give another folder or pattern"
        )
    return Source(params, {"": files})
