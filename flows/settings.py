"""Settings: where and on what a run happens, from `CELLAR_*` variables. They never enter a fingerprint."""

import errno
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from flows.brief_schema import BriefSchema
from flows.errors import SettingsError
from store.paths import usable_path

if TYPE_CHECKING:
    from store.cache import ReadCache

DEFAULT_STORE = "file:build/store"


class Settings(BriefSchema, BaseSettings):
    """Each field is read from the variable `CELLAR_` + its name in capitals; options of a command win."""

    model_config = SettingsConfigDict(env_prefix="CELLAR_", frozen=True, extra="forbid")

    store: str = Field(default=DEFAULT_STORE, min_length=1)
    """A folder, `file:/path` or `s3://bucket/prefix`; credentials come from the usual AWS places."""
    device: str = "cpu"
    """Where codec and memory workers compute: `cpu`, `cuda`, `cuda:1`, or `auto` for a GPU if there is one.
    Indexes, core and evaluation, small as they are, stay on the CPU."""
    threads: int = Field(default=0, ge=0)
    """Threads of one computation; 0 leaves the choice to the numeric libraries."""
    runner: Literal["threads", "processes", "dask"] = "threads"
    """What spreads the shards of a build: threads or processes of this machine, or Dask."""
    workers: int = Field(default=1, ge=1)
    """Shards built at the same time on this machine; a cluster has as many as it has workers."""
    dask_address: str | None = None
    """The scheduler of a Dask cluster, `tcp://host:port` or `tls://host:port`; otherwise Dask runs here."""
    gpus: int | None = Field(default=None, ge=1)
    """Computations on GPUs at the same time, on all machines; otherwise as many as this machine has GPUs."""
    work_dir: Path = Path("build/work")
    """Scratch space: training checkpoints and the embedded Prefect server's database."""
    checkpoint_s: float = Field(default=15.0, ge=0)
    """Seconds between checkpoints of a training or an evaluation: what a killed one loses at most."""
    pins: Path = Path("pins")
    """Where commands leave what they published, for the next command and for DVC."""
    hosts: Path = Path("build/hosts")
    """Where frozen language models lie, one folder each; see `cellar host`."""
    cache_dir: Path | None = None
    """A folder that keeps what was read from a bucket, so that it is read once; none by default."""
    cache_bytes: int = Field(default=16 * 1024**3, ge=0)
    """What that folder may hold; the least recently used goes first."""
    serve_port: int = Field(default=4200, ge=0, le=65535)
    """Where `cellar serve` answers, on loopback only; 0 takes any free port."""
    quiet: bool = False
    """No progress at all."""

    @field_validator("device")
    @classmethod
    def _known_device(cls, value: str) -> str:
        kind, _, number = value.partition(":")
        if kind not in ("cpu", "cuda", "mps", "auto") or (number and not number.isdecimal()):
            raise ValueError("use cpu, cuda, cuda:<number>, mps or auto")
        return value

    @field_validator("dask_address")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        found = re.fullmatch(r"(?:tcp|tls)://(?:[^/:@\s]+|\[[0-9a-fA-F:]+\]):(\d{1,5})", value or "")
        if value and not (found and 0 < int(found[1]) < 2**16):
            raise ValueError("use tcp://host:port or tls://host:port")
        return value or None

    @property
    def builders_here(self) -> int:
        """Computations of a build that share the cores of a machine; workers of a cluster have their own."""
        return 1 if self.runner == "dask" and self.dask_address else self.workers

    def read_cache(self) -> "ReadCache | None":
        """The cache that is set up, if any."""
        if self.cache_dir is None:
            return None
        from store.cache import ReadCache

        folder = usable_path(self.cache_dir, SettingsError, "CELLAR_CACHE_DIR")
        return ReadCache(folder.absolute(), self.cache_bytes)

    def store_cache(self) -> "ReadCache | None":
        """The cache for reads from the store; a store on this machine needs none."""
        return self.read_cache() if self.store.startswith("s3:") else None


def load_settings(**options: Any) -> Settings:
    """Settings from the environment; options that are not None win.

    Raises:
        SettingsError: a variable or option has a value that cannot be used.
    """
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        what = first["msg"].removeprefix("Value error, ")
        place = f"--{name.replace('_', '-')}" if name in given else f"CELLAR_{name.upper()}"
        raise SettingsError(
            f"{place} is {str(first['input'])[:60]!r}: {what[:1].lower()}{what[1:]}"
        ) from error


def make_folder(folder: Path, setting: str) -> Path:
    """Make the folder that a setting or option names, with its parents, and return it.

    Raises:
        SettingsError: there is a file, or no folder can be made there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        taken = isinstance(error, FileExistsError | NotADirectoryError)
        why = "a file is in the way" if taken else error.strerror
        raise SettingsError(
            f"{setting} is {str(folder)!r}, where no folder can be made ({why}); choose another place"
        ) from error
    return folder
