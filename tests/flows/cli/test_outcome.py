"""How commands end: exit codes, one sentence, no traceback; interrupts and closed pipes."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.cli.outcome import run
from store import Store

Cellar = Callable[..., tuple[int, str, str]]
PROGRAM = [sys.executable, "-c", "import sys; from flows.cli import main; sys.exit(main())"]

PART = ["--set", "corpus.reader=jsonl", "--partition", "yesterday"]


def process(workplace: Path, *arguments: str, **options: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=workplace,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["corpsu"], 2, 'Unknown command "corpsu". Did you mean "corpus"?'),
        (["log", "--limt", "3"], 2, "see `cellar log --help`"),
        (["log", "--limit", "x"], 2, "see `cellar log --help`"),
        (["log"], 3, "store; create one with `cellar init`, or give another with --store"),
        (["log", "--limit", "-1"], 2, "Must be >= 0; see `cellar log --help`"),
        (["init", "--store", "file.txt"], 3, "file.txt is a file, a store needs a folder"),
        (["init", "--store", "file.txt/below"], 3, "file.txt is a file, a store needs a folder"),
        (["init", "--store", "/proc/store"], 6, "no folder can be made at /proc/store"),
        (["corpus", "build", "--params", "."], 2, ". is a folder; give the path of a parameter file"),
        (["eval", "show", "file.txt"], 2, "file.txt is no summary of an evaluation"),
        (["eval", "show", "other.json"], 2, "other.json is no summary of an evaluation"),
        (["ask", "words", "--top", "0"], 2, "Must be >= 1; see `cellar ask --help`"),
        (["ask", "words", "--context", "-1"], 2, "Must be >= 0; see `cellar ask --help`"),
        (["init", "--store", "ftp://x"], 3, "is not a store URL"),
        (["corpus", "build", "--folder", "absent"], 2, "absent does not exist"),
        (["corpus", "build", "--folder", ".", "--set", "corpus.pattern=**x"], 2, "write e.g. **/*.txt"),
        (["corpus", "build", "--folder", "a", "--text", "b"], 2, "give one source, not --folder and --text"),
        (["corpus", "build", "--set", "corpus.shard=2"], 2, "did you mean corpus.shards?"),
        (["corpus", "build", "--set", "corpus.shards=3"], 2, "should be a multiple of 2"),
        (
            ["corpus", "build", "--set", "tokenizer.vocab_size=65537"],
            2,
            "the number of codes of sixteen bits",
        ),
        (["corpus", "build", "--params", "absent.yaml"], 2, "absent.yaml does not exist"),
        (["log", "--store", "file:%00"], 3, "holds a zero byte"),
        (["doctor", "--store", "file:x%00.tar"], 3, "holds a zero byte"),
        (["log", "--store", "tar:%00"], 3, "holds a zero byte"),
        (["log", "--store", "~nobody-of-that-name/x"], 3, "there is no home folder"),
        (["log", "--store", "x" * 300], 3, "is too long for a path"),
        (["corpus", "build", "--folder", "~nobody-of-that-name/x"], 2, "there is no home folder"),
        (["corpus", "build", "--text", "x" * 5000], 2, "is too long for a path"),
        (["corpus", "build", "--params", "x" * 300], 2, "is too long for a path"),
        (["corpus", "build", "--params", "pipe"], 2, "pipe is a pipe; give the path of a parameter file"),
        (["corpus", "build", "--text", "pipe"], 2, "pipe is a pipe; give the path of a file or folder"),
        (["eval", "show", "pipe"], 2, "pipe is a pipe; give the figures of an evaluation"),
        (
            ["eval", "run", "questions", "--data", "pipe"],
            2,
            "pipe is a pipe; give a file in the",
        ),
        (["skill", "publish", "mine", "/dev/zero"], 2, "/dev/zero is a device; give a JSON file"),
        (["serve", "--file", "pipe"], 2, "pipe is a pipe; start from the one"),
        (["host", "add", "mine", "pipe"], 2, "pipe is a pipe; give a model directory or a GGUF file"),
        (["larc", "replay", "--jobs", "pipe"], 2, "pipe is a pipe; give a file of CI jobs"),
        (["eval", "show", "x" * 300], 2, "is too long for a path"),
        (["update", "--set", "corpus.path=~nobody-of-that-name/{partition}", *PART], 2, "no home folder"),
        (
            ["update", "--set", "corpus.path={partition}", "--at", "0001-01-01T00:00:00Z", *PART],
            2,
            "no day is",
        ),
        (["update", "--shards", "9" * 5000], 2, "is no shard"),
        (["snapshot", "import", "x" * 300], 2, "is too long for a path"),
        (["snapshot", "import", "x" * 300 + ".tar"], 2, "is too long for a path"),
        (["snapshot", "import", "x/" * 2500], 2, "is too long for a path"),
        (["snapshot", "import", "file:%00"], 2, "holds a zero byte"),
        (["key", "generate", ""], 2, "PATH is empty"),
        (["key", "generate", "."], 2, "is no name for a key"),
        (["key", "generate", "/"], 2, "/ is no name for a key"),
        (["key", "generate", "x" * 300], 2, "cannot write the key"),
    ],
)
def test_an_error_is_one_sentence_and_an_exit_code(
    cellar: Cellar, workplace: Path, arguments: list[str], code: int, sentence: str
) -> None:
    (workplace / "file.txt").write_text("no JSON")
    os.mkfifo(workplace / "pipe")
    (workplace / "other.json").write_text('{"figures": []}')

    ended, out, err = cellar(*arguments)

    assert (ended, out) == (code, "")
    assert sentence in err
    assert err.startswith("cellar: ")
    assert err.count("\n") == 1


def test_an_unknown_snapshot_is_not_found(cellar: Cellar) -> None:
    cellar("init")

    assert cellar("snapshot", "show", "v9")[0] == 4


def test_a_bad_setting_names_its_variable(cellar: Cellar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELLAR_DEVICE", "tpu")

    code, _, err = cellar("log")

    assert code == 3
    assert "CELLAR_DEVICE is 'tpu'" in err


def test_debug_adds_the_traceback(cellar: Cellar) -> None:
    _, _, err = cellar("log", "--debug")

    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("cellar: ")


def test_a_bug_is_called_one(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> None:
        raise KeyError("lost")

    assert run(broken, ["log"]) == 1
    assert "unexpected KeyError: 'lost'; this is a bug" in capsys.readouterr().err


def test_a_full_disk_is_storage_that_is_unavailable(capsys: pytest.CaptureFixture[str]) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device", "/tmp/spill")

    assert run(full, ["log"]) == 6
    assert "no space is left for /tmp/spill" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (errno.EACCES, 6, "out/anneal.json may not be read or written"),
        (errno.EROFS, 6, "out/anneal.json may not be read or written"),
        (errno.EISDIR, 2, "out/anneal.json is in the way"),
        (errno.ENOTDIR, 2, "out/anneal.json is in the way"),
        (errno.EIO, 1, "this is a bug"),
    ],
)
def test_what_the_file_system_refuses_is_no_bug(
    capsys: pytest.CaptureFixture[str], number: int, code: int, said: str
) -> None:
    def refused() -> None:
        raise OSError(number, os.strerror(number), "out/anneal.json")

    assert run(refused, ["log"]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_says_how_to_go_on_and_publishes_nothing(
    workplace: Path, kill: signal.Signals
) -> None:
    command = process(workplace, "corpus", "build", "--quiet")
    _wait_for(workplace / "build" / "store" / "format.json", command)
    command.send_signal(kill)
    _, err = command.communicate(timeout=30)

    assert command.returncode == 130
    assert err == (
        "cellar: interrupted; the store is consistent, and `cellar corpus build --quiet` continues "
        "from what is published and what it kept\n"
    )
    assert list(Store.open(str(workplace / "build" / "store")).log()) == []


def _wait_for(path: Path, command: subprocess.Popen[str]) -> None:
    """Return as soon as the command has made its store and so is at work on the corpus, for seconds."""
    deadline = time.monotonic() + 60
    while not path.exists():
        assert command.poll() is None, command.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_reader_that_closes_the_pipe_early_is_no_error(workplace: Path) -> None:
    program = (
        "import sys; from flows.cli.outcome import run; "
        "sys.exit(run(lambda: [print('x' * 1000) for _ in range(10_000)], ['log']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.readline()
        command.stdout.close()
        err = command.stderr.read()

    assert command.returncode == 0
    assert err == ""
