"""Parameters come from a file and overrides, and every mistake is named with its place and a way out."""

from pathlib import Path

import pytest

from flows.errors import ParamsError
from flows.params import Params, load_params, parameter_names
from tasks.evaluation import MOST_RESAMPLES, MOST_TASKS


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_a_file_everything_has_its_default() -> None:
    assert load_params() == Params()


def test_overrides_win_over_the_file_and_nested_names_reach_down() -> None:
    Path("params.yaml").write_text("corpus: {shards: 8, name: a}\ncodec:\n  rate: 1e-3\n")

    params = load_params(None, ["corpus.shards=4", "codec.architecture.cell_width=128"])

    assert (params.corpus.shards, params.corpus.name) == (4, "a")
    assert params.codec.rate == 1e-3
    assert params.codec.architecture.cell_width == 128


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ('corpus.packages=["numpy"]', ("numpy",)),
        ("corpus.limit=null", None),
        ("corpus.name=plain", "plain"),
        ('corpus.name="quoted"', "quoted"),
    ],
)
def test_values_are_json_or_text(override: str, expected: object) -> None:
    name = override.partition("=")[0].partition(".")[2]
    assert getattr(load_params(None, [override]).corpus, name) == expected


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("corpus.shard=2", "there is no parameter corpus.shard; did you mean corpus.shards?"),
        ("shards=2", "did you mean corpus.shards?"),
        ("codec.architecture.cell_widht=2", "did you mean codec.architecture.cell_width"),
        ("nonsense.x=1", "sections are corpus, tokenizer"),
        ("corpus.shards", "not of the form name=value"),
        ("corpus=4", "--set corpus=4: corpus is a section; set one parameter of it by its full name"),
        ("corpus.shards=0", "--set corpus.shards=0: input should be greater than or equal to 2"),
        ("replay.controller.step_norm=Infinity", "step_norm=Infinity: input should be a finite number"),
        ("replay.fit.clip=1e999", "clip=1e999: input should be a finite number"),
        ("replay.experts.bias_l2=nan", "bias_l2=nan: input should be a finite number"),
        ("corpus.split_on=x", "parameters: corpus: the 'installed' reader takes no split_on"),
        ("corpus.name=" + "[" * 200_000, "--set corpus.name=[[["),
    ],
)
def test_a_wrong_override_is_named_with_a_way_out(override: str, message: str) -> None:
    with pytest.raises(ParamsError) as error:
        load_params(None, [override])

    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("corpus: {shard: 2}", "there is no parameter corpus.shard; did you mean corpus.shards?"),
        ("corpus: {shards: 5}", "params.yaml: corpus.shards is '5': input should be a multiple of 2"),
        ("corpus: [", "not valid YAML"),
        ("- a", "holds no sections"),
        (
            "replay: {controller: {radius: .inf}}",
            "replay.controller.radius is 'inf': input should be",
        ),
        ("a: !!python/object/apply:os.getcwd []", "not valid YAML"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(text: str, message: str) -> None:
    Path("params.yaml").write_text(text)

    with pytest.raises(ParamsError) as error:
        load_params()

    assert message in str(error.value)


def test_tasks_of_which_none_is_left_are_refused() -> None:
    none = ["evaluation.prefix_tasks=0", "evaluation.quote_tasks=0"]

    with pytest.raises(
        ParamsError, match="parameters: evaluation: prefix_tasks and quote_tasks are both 0, so"
    ):
        load_params(None, none)

    assert load_params(None, none[1:]).evaluation.prefix_tasks == 200


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("evaluation.prefix_tasks", MOST_TASKS),
        ("evaluation.quote_tasks", MOST_TASKS),
        ("evaluation.addressing_queries", MOST_TASKS),
        ("evaluation.dense_queries", MOST_TASKS),
        ("evaluation.per_document", 1_000),
        ("evaluation.resamples", MOST_RESAMPLES),
        ("addressing.tasks", MOST_TASKS),
        ("addressing.timed_queries", MOST_TASKS),
        ("addressing.resamples", MOST_RESAMPLES),
        ("questions.scrambled", MOST_TASKS),
        ("questions.resamples", MOST_RESAMPLES),
        ("skills.evaluation.tasks", MOST_TASKS),
        ("skills.evaluation.resamples", MOST_RESAMPLES),
        ("replay.controller.step_norm", 10**6),
        ("replay.controller.radius", 10**6),
        ("replay.experts.bias_l2", 10**6),
        ("replay.fit.clip", 10**6),
    ],
)
def test_counts_that_no_time_suffices_for_are_refused(name: str, most: int) -> None:
    load_params(None, [f"{name}={most}"])

    with pytest.raises(ParamsError, match=f"--set {name}={most + 1}: input should be less than or equal to"):
        load_params(None, [f"{name}={most + 1}"])


def test_an_empty_file_changes_nothing() -> None:
    Path("params.yaml").write_text("# nothing yet\n")

    assert load_params() == Params()


def test_every_parameter_can_be_set_by_its_name() -> None:
    names = set(parameter_names())

    assert {"corpus", "corpus.shards", "tokenizer.vocab_size", "codec.architecture.cell_width"} <= names


def test_the_parameter_file_of_the_repository_spells_out_the_defaults() -> None:
    assert load_params(Path(__file__).parents[2] / "params.yaml") == Params()
