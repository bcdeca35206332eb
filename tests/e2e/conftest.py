"""One finished chain for the whole session; every test works on a copy of it."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from filelock import FileLock

from flows.cli import main
from tests.e2e.workplace import TINY, Ended, Workplace

CHARACTERS = 800
"""Of each text; shorter ones are left out."""


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where Prefect keeps its own files: not in the user's home."""
    return {"PREFECT_HOME": str(tmp_path_factory.mktemp("prefect-home"))}


def new_workplace(folder: Path, home: dict[str, str], prefect: Path) -> Workplace:
    """Texts and parameters, the files of a new Prefect server, and nothing built yet."""
    (folder / "texts").mkdir()
    for name, text in topics.items():
        if len(text) >= CHARACTERS:
            (folder / "texts" / f"{name}.txt").write_text(text[:CHARACTERS], encoding="utf-8")
    shutil.copy(TINY, folder / "params.yaml")
    place = Workplace(folder, home)
    shutil.copytree(prefect, place.work / "prefect")
    return place


@pytest.fixture(scope="session")
def chain(
    tmp_path_factory: pytest.TempPathFactory, home: dict[str, str], new_prefect: Path
) -> tuple[Workplace, Ended]:
    """A workplace, and how its first `cellar demo` ended; made by the first process that asks."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    original, outcome = shared / "chain", shared / "chain.json"
    with FileLock(shared / "chain.lock"):
        if not outcome.exists():
            original.mkdir()
            first = new_workplace(original, home, new_prefect).cellar("demo", "--json")
            outcome.write_text(json.dumps(asdict(first)))
    own = tmp_path_factory.mktemp("chain") / "own"
    shutil.copytree(original, own)
    return Workplace(own, home), Ended(**json.loads(outcome.read_text()))


@pytest.fixture
def first_run(chain: tuple[Workplace, Ended]) -> Ended:
    """How the first `cellar demo` ended."""
    return chain[1]


@pytest.fixture
def finished(chain: tuple[Workplace, Ended]) -> Workplace:
    """The workplace after a whole chain; tests leave it as it is."""
    assert chain[1].code == 0, chain[1].err
    return chain[0]


@pytest.fixture
def fresh(tmp_path: Path, home: dict[str, str], new_prefect: Path) -> Workplace:
    """Another workplace with the same texts and parameters, and nothing built yet."""
    return new_workplace(tmp_path, home, new_prefect)


@pytest.fixture
def copy(finished: Workplace, tmp_path: Path) -> Workplace:
    """A copy of the finished chain, with the Prefect database, which takes seconds to make."""
    folder = tmp_path / "copy"
    shutil.copytree(finished.folder, folder)
    return Workplace(folder, finished.environment)


@pytest.fixture
def inside(
    finished: Workplace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Run commands that only read the finished chain in this process, which spares them all imports."""
    for name in [name for name in os.environ if name.startswith("CELLAR_")]:
        monkeypatch.delenv(name)
    for name, value in finished.settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(finished.folder)

    def run(*arguments: str) -> Ended:
        code = main(list(arguments))
        return Ended(code, *capsys.readouterr())

    return run


@pytest.fixture
def with_server(prefect_server: str) -> dict[str, str]:
    """Variables that make commands use the session's Prefect server, which saves them from starting one."""
    return {"PREFECT_API_URL": prefect_server}
