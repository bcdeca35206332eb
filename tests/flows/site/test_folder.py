"""A site's folder changes as a whole or not at all, and files of others are never lost."""

import os
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


@pytest.mark.parametrize("killed", ["before the first rename", "between the renames", "while clearing up"])
def test_a_build_that_was_killed_is_cleared_up_by_the_next(tmp_path: Path, killed: str) -> None:
    out, former, new = tmp_path / "site", tmp_path / ".site.former", tmp_path / ".site.new"
    write(out, a="1")
    if killed == "between the renames":
        out.rename(former)
        new.mkdir()
        (new / "a.html").write_text("half")
    elif killed == "while clearing up":
        former.mkdir()
        (former / "old.html").write_text("old")
    else:
        new.mkdir()
        (new / "a.html").write_text("half")
    with SiteFolder(out) as folder:
        assert (out / "a.html").read_text() == "1"
        folder.write("a.html", "1")
    assert contents(out) == {"a.html": "1"}
    assert sorted(tmp_path.iterdir()) == [out]


def test_files_that_did_not_change_keep_their_time(tmp_path: Path) -> None:
    out = tmp_path / "site"
    write(out, a="1", b="1")
    os.utime(out / "a.html", (1, 1))
    os.utime(out / "b.html", (1, 1))
    write(out, a="1", b="2")
    assert (out / "a.html").stat().st_mtime == 1
    assert (out / "b.html").stat().st_mtime > 1
