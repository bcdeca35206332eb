"""Scratch folders: gone when done, left alone while somebody works in them, swept after a kill."""

import signal
import subprocess
import sys
from pathlib import Path

from tasks.package.scratch import scratch

WORKS = """
import sys, time
from pathlib import Path
from tasks.package.scratch import scratch
with scratch(Path(sys.argv[1])) as folder:
    (folder / "file").write_text("x")
    print(folder, flush=True)
    time.sleep(600)
"""


def test_a_folder_is_gone_when_its_block_ends(tmp_path: Path) -> None:
    with scratch(tmp_path / "work") as folder:
        (folder / "file").write_text("x")
    assert list((tmp_path / "work").iterdir()) == []


def test_what_a_killed_process_left_goes_and_what_one_works_in_stays(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WORKS, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    ) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        with scratch(tmp_path):
            assert (theirs / "file").exists()
        process.send_signal(signal.SIGKILL)
    with scratch(tmp_path) as ours:
        assert list(tmp_path.iterdir()) == [ours]


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "part-link").symlink_to(tmp_path / "mine")
    with scratch(tmp_path / "work"):
        assert (tmp_path / "mine" / "file").exists()
