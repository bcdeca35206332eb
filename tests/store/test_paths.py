"""Paths as people write them: what is there in place of a file is said, and nothing is waited for."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from store.errors import InputError
from store.paths import existing_file


def test_regular_files_and_links_to_them_are_taken(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"x")
    link.symlink_to(file)
    assert existing_file(file, InputError, remedy="give a file") == file
    assert existing_file(link, InputError, remedy="give a file") == link
    assert existing_file(tmp_path, InputError, remedy="give a file", or_folder=True) == tmp_path


def test_what_is_there_in_place_of_a_file_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    (tmp_path / "file").write_bytes(b"")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for name, what in {
            "": "is a folder",
            "pipe": "is a pipe",
            "socket": "is a socket",
            "/dev/null": "is a device",
            "absent": "does not exist",
            "file/below": "does not exist",
            "gone": "is a link to what is gone",
            "round": "cannot be read (Too many levels of symbolic links)",
        }.items():
            with pytest.raises(InputError) as refused:
                existing_file(tmp_path / name, InputError, remedy="give a file")
            assert str(refused.value) == f"{tmp_path / name} {what}; give a file"


def test_a_path_that_no_system_takes_is_not_repeated_whole(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^.{120}\.\.\. is too long for a path; give a file$"):
        existing_file(tmp_path / ("x" * 300), InputError, remedy="give a file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look into every folder")
def test_a_folder_that_may_not_be_looked_into_is_said(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(InputError, match=r"cannot be read \(Permission denied\); give a file"):
        existing_file(tmp_path / "closed" / "file", InputError, remedy="give a file")
