"""What every command needs: the chosen store, how to print a result, and where progress goes."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from flows.formatting import printable
from flows.origin import code, origin

if TYPE_CHECKING:
    from flows.settings import Settings
    from store import Store
    from tasks.progress import Progress


@dataclass(frozen=True)
class Session:
    """One run of the command line, with the options that every command takes."""

    store_url: str | None = None
    as_json: bool = False
    quiet: bool = False
    debug: bool = False

    @cached_property
    def settings(self) -> "Settings":
        """Settings from the environment with this run's options on top."""
        from flows.settings import load_settings

        return load_settings(store=self.store_url, quiet=self.quiet or None)

    def open_store(self, *, by: str = "") -> "Store":
        """The existing store; an error says how to make one.

        `by` names the command that commits; commits record it with the user and the machine.
        """
        from store import Store
        from store.errors import NotAStore

        try:
            return Store.open(
                self.settings.store, run=self.record(by) if by else {}, cache=self.settings.store_cache()
            )
        except NotAStore as error:
            raise NotAStore(f"{error}, or give another with --store") from error

    def record(self, command: str) -> dict[str, str]:
        """What a commit by that command records of where and by whom it was given."""
        return {"command": command, **origin(), **code()}

    def open_or_create_store(self, *, by: str) -> "Store":
        """The store, made where there is none: for commands that fill it; `by` as in `open_store`."""
        from store import Store

        return Store.open_or_create(self.settings.store, run=self.record(by), made=self.made_store)

    def made_store(self, url: str) -> None:
        """Say that a store was made, so that a mistyped address is seen."""
        if not self.settings.quiet:
            self.warn(f"made a new store at {url}, where there was none")

    @property
    def owner(self) -> str:
        """Who gave the command, for what is kept in somebody's name."""
        return "{user}@{host}".format_map(origin())

    def emit(self, result: object, lines: Iterable[str]) -> None:
        """Print a result: as JSON for machines, or as the given lines for people."""
        if self.as_json:
            text = json.dumps(result, indent=1, ensure_ascii=False)
            # Bytes of file names that are no UTF-8 stay escapes of JSON, which any terminal or pipe takes.
            print(text.encode("utf-8", "backslashreplace").decode())
        else:
            for line in lines:
                print(line if line.isprintable() else printable(line))

    def warn(self, sentence: object) -> None:
        """Say on stderr what is wrong and yet does not end the command."""
        print(f"cellar: {printable(str(sentence))}", file=sys.stderr)

    @contextmanager
    def progress(self, title: str, unit: str) -> Iterator["Progress"]:
        """A progress callback that draws on stderr from the third second on; see `flows.cli.bars`."""
        from flows.cli.bars import Bar

        if self.settings.quiet:
            from tasks.progress import silent

            yield silent
            return
        with Bar(title, unit, sys.stderr) as bar:
            yield bar
