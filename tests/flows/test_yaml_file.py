"""Whatever a user's YAML file holds, it is a tree or one sentence with its place."""

from pathlib import Path

import pytest

from flows.errors import ParamsError
from flows.yaml_file import read_yaml


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2026-13-45", "not valid YAML at line 2"),
        ("a: !!int abc", "not valid YAML at line 1"),
        ("a: !!float abc", "not valid YAML at line 1"),
        ("a: !!bool abc", "not valid YAML at line 1"),
        ("a: !!timestamp abc", "not valid YAML at line 1"),
        ("a: [1]\nb:\n- " + "9" * 5000, "not valid YAML at line 3"),
        ("a: 0x" + "f" * 5000, "not valid YAML at line 1"),
        ("a: [", "not valid YAML at line 1"),
        ("[" * 3000, "too deeply"),
        ("{a: " * 3000, "too deeply"),
    ],
)
def test_what_is_no_yaml_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(ParamsError, match=said):
        read_yaml(path, ParamsError, remedy="")


def test_dates_numbers_and_shared_parts_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text("a: &x {b: 2026-12-01, c: 1e-3, d: 12}\ne: *x")
    found = read_yaml(path, ParamsError, remedy="")
    assert found["e"] == found["a"]
    assert found["a"]["d"] == 12
