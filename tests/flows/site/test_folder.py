"""A site's folder changes as a whole or not at all, and files of others are never lost."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from flows.errors import SiteBusy, UsageError
from flows.site.folder import MARKER, SiteFolder


def write(out: Path, **files: str) -> None:
    with SiteFolder(out) as folder:
        for name, content in files.items():
            folder.write(f"{name}.html", content)


def contents(out: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in out.iterdir() if path.name != MARKER}


def test_a_new_site_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "site"
    write(out, a="1", b="2")
    write(out, a="1", c="3")
    assert contents(out) == {"a.html": "1", "c.html": "3"}
    assert sorted(out.parent.iterdir()) == [out]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_goes_wrong_leaves_the_old_site_whole(tmp_path: Path, error: type[BaseException]) -> None:
    out = tmp_path / "site"
    write(out, a="1", b="2")

    def fail() -> None:
        with SiteFolder(out) as folder:
            folder.write("a.html", "new")
            raise error

    with pytest.raises(error):
        fail()
    assert contents(out) == {"a.html": "1", "b.html": "2"}
    assert sorted(tmp_path.iterdir()) == [out]


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds other files"), SiteFolder(tmp_path):
        pass
    assert (tmp_path / "precious.txt").read_text() == "mine"


def test_a_file_that_somebody_put_into_a_site_is_not_lost(tmp_path: Path) -> None:
    out = tmp_path / "site"
    write(out, a="1")
    (out / "CNAME").write_text("mine")
    with pytest.raises(UsageError, match="CNAME does not belong"), SiteFolder(out):
        pass
    (out / "CNAME").unlink()

    def put_one_in_meanwhile() -> None:
        with SiteFolder(out) as folder:
            folder.write("a.html", "2")
            (out / "late").write_text("mine")

    with pytest.raises(UsageError, match="late does not belong"):
        put_one_in_meanwhile()
    assert (out / "late").read_text() == "mine"
    assert (out / "a.html").read_text() == "1"


@pytest.mark.parametrize("make", ["file", "link"])
def test_a_file_or_a_link_is_refused(tmp_path: Path, make: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    out = tmp_path / "site"
    if make == "file":
        out.write_text("mine")
    else:
        out.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="no folder of its own"), SiteFolder(out):
        pass


def test_two_builds_at_once_do_not_mix(tmp_path: Path) -> None:
    out = tmp_path / "site"
    with SiteFolder(out) as first:
        first.write("a.html", "first")
        with pytest.raises(SiteBusy, match="another `cellar site build`"), SiteFolder(out):
            pass
    assert contents(out) == {"a.html": "first"}


KILLED = """
import os, signal, sys
from pathlib import Path
from flows.site import folder
from flows.site.folder import SiteFolder

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

with SiteFolder(Path(sys.argv[1])) as site:
    site.write("a.html", "half")
    if sys.argv[2] == "while writing":
        die()
    elif sys.argv[2] == "between the renames":
        old, Path.rename = Path.rename, lambda self, to: die() if self.name == "new" else old(self, to)
    else:
        folder.remove = die
"""


@pytest.mark.parametrize(
    ("killed", "left"),
    [("while writing", "1"), ("between the renames", "1"), ("while clearing up", "half")],
)
def test_a_build_that_was_killed_is_cleared_up_by_the_next(tmp_path: Path, killed: str, left: str) -> None:
    out = tmp_path / "site"
    write(out, a="1")
    command = [sys.executable, "-c", KILLED, str(out), killed]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    with SiteFolder(out) as folder:
        assert (out / "a.html").read_text() == left
        folder.write("a.html", "2")
    assert contents(out) == {"a.html": "2"}
    assert sorted(tmp_path.iterdir()) == [out]


def test_nothing_beside_a_site_is_touched_that_no_build_made(tmp_path: Path) -> None:
    theirs = {tmp_path / beside / "deep" / "file" for beside in (".site.new", ".site.former", ".site.build")}
    for file in theirs:
        file.parent.mkdir(parents=True)
        file.write_text("mine")
    with pytest.raises(UsageError, match="no site build made it"):
        write(tmp_path / "site", a="1")
    assert {file.read_text() for file in theirs} == {"mine"}
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("inside", [".site.build", ".site.build/new", ".site.build/former"])
def test_no_link_is_followed_to_where_others_keep_files(tmp_path: Path, inside: str) -> None:
    out, victim = tmp_path / "site", tmp_path / "victim"
    victim.mkdir()
    (victim / "cellar-site-build").touch()
    (victim / "file").write_text("mine")
    link = tmp_path / inside
    if link.parent != tmp_path:
        link.parent.mkdir()
        (link.parent / "cellar-site-build").touch()
    link.symlink_to(victim)
    with suppress(UsageError):
        write(out, a="1")
    assert sorted(path.name for path in victim.iterdir()) == ["cellar-site-build", "file"]
    assert not out.is_symlink()


def test_what_somebody_put_beside_a_site_meanwhile_stays(tmp_path: Path) -> None:
    out = tmp_path / "site"
    with SiteFolder(out) as folder:
        folder.write("a.html", "1")
        (tmp_path / ".site.build" / "precious").write_text("mine")
    assert (tmp_path / ".site.build" / "precious").read_text() == "mine"
    write(out, a="2")
    assert (tmp_path / ".site.build" / "precious").read_text() == "mine"


def test_a_link_that_somebody_put_into_a_site_is_not_lost(tmp_path: Path) -> None:
    out = tmp_path / "site"
    write(out, a="1")
    (out / "data").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="data does not belong"):
        write(out, a="2")


def test_a_swap_that_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    out = tmp_path / "site"
    write(out, a="1")

    def put_one_in_meanwhile() -> None:
        with SiteFolder(out):
            (out / "late").write_text("mine")

    with pytest.raises(UsageError, match="late does not belong"):
        put_one_in_meanwhile()
    assert sorted(tmp_path.iterdir()) == [out]


def test_files_that_did_not_change_keep_their_time(tmp_path: Path) -> None:
    out = tmp_path / "site"
    write(out, a="1", b="1")
    os.utime(out / "a.html", (1, 1))
    os.utime(out / "b.html", (1, 1))
    write(out, a="1", b="2")
    assert (out / "a.html").stat().st_mtime == 1
    assert (out / "b.html").stat().st_mtime > 1
