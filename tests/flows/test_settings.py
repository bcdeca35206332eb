"""Settings come from CELLAR_* variables; options win; a bad value names its origin."""

from pathlib import Path

import pytest

from flows.errors import SettingsError
from flows.settings import load_settings, make_folder


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STORE", "DEVICE", "THREADS", "RUNNER", "WORKERS", "WORK_DIR", "PINS", "QUIET"):
        monkeypatch.delenv(f"CELLAR_{name}", raising=False)


def test_variables_are_read_and_options_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELLAR_STORE", "s3://bucket/prefix")
    monkeypatch.setenv("CELLAR_THREADS", "3")
    monkeypatch.setenv("CELLAR_QUIET", "true")

    settings = load_settings(threads=2, store=None)

    assert (settings.store, settings.threads, settings.quiet) == ("s3://bucket/prefix", 2, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("DEVICE", "tpu"), ("DEVICE", "cuda:x"), ("THREADS", "many"), ("RUNNER", "slurm"), ("STORE", "")],
)
def test_a_bad_variable_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"CELLAR_{name}", value)

    with pytest.raises(SettingsError, match=f"CELLAR_{name} is {value!r}"):
        load_settings()


def test_a_bad_option_is_named() -> None:
    with pytest.raises(SettingsError, match="--workers is '0'"):
        load_settings(workers=0)


@pytest.mark.parametrize("below", ["", "below", "far/below"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(SettingsError, match=r"CELLAR_WORK_DIR is .*file.*a file is in the way") as refused:
        make_folder(tmp_path / "file" / below, "CELLAR_WORK_DIR")

    assert refused.value.exit_code == 3
    assert make_folder(tmp_path / "far" / "below", "CELLAR_WORK_DIR").is_dir()
