"""The study room's door to the store: slow states, sealed predictions, the evaluation that scores them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from store import Element, Ref, Row, Store
from store.errors import ElementNotFound
from tasks.checkpoint import CHECKPOINT_S, Checkpoints, find_trained, publish_trained
from tasks.evaluation import PublishedEvaluation, SubjectName, Table, find_evaluation, publish_evaluation
from tasks.hosts import Host
from tasks.larc import SlowState, open_residual, residual_element
from tasks.programs import Episode, Group, Split, episodes, groups
from tasks.progress import Progress, silent
from tasks.study.bench import Bench
from tasks.study.inner import start
from tasks.study.judgement import judge
from tasks.study.outer import OuterTrainer, Trained, train_slow
from tasks.study.params import Objective
from tasks.study.predictions import encode_predictions, load_predictions, predict
from tasks.study.recipes import Plan
from tasks.study.scores import SelectionSample, score, score_rule
from tasks.tables import encode_records, load_records

SUBJECT: SubjectName = "selection"
SAMPLES_RECIPE = "evaluation.selection.samples/1"
TABLE_MEDIA = "application/vnd.apache.parquet"
Arm = tuple[str, int]


def train_slow_states(
    store: Store,
    plan: Plan,
    bench: Bench,
    *,
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> dict[Arm, Ref]:
    """Publish `residual/<name>/<objective>-<seed>` for every objective and seed, or find them published.

    With `work_dir` an interrupted training continues, bit for bit, from what it kept every `checkpoint_s`
    seconds. `progress` counts outer updates of all of them.
    """
    made: dict[Arm, Ref] = {}
    updates = plan.study.outer.updates
    wanted = plan.trainings
    for number, (objective, seed) in enumerate(wanted):
        recipe = plan.training(objective, seed)
        checkpoints = None if work_dir is None else Checkpoints(work_dir, recipe.fingerprint, checkpoint_s)
        if (found := find_trained(store, recipe.fingerprint, checkpoints)) is not None:
            made[objective, seed] = found
            continue
        trainer = OuterTrainer(
            bench.learner, bench.questioner, objective, seed, plan.programs, plan.larc, plan.study
        )
        onward = _onward(progress, number * updates, len(wanted) * updates)
        trained = train_slow(trainer, progress=onward, checkpoints=checkpoints)
        element = residual_element(
            f"{plan.study.name}/{objective}-{seed}",
            trained.slow,
            host=plan.host,
            provenance={"recipe": recipe.fingerprint, "params": recipe.params},
            facts=_training_facts(trained, bench.host),
        )
        message = f"Publish residual {plan.study.name}/{objective}-{seed}, {updates} outer updates"
        made[objective, seed] = publish_trained(store, element, checkpoints, message=message)
    return made


def predict_development(
    store: Store, plan: Plan, bench: Bench, trained: Mapping[Arm, Ref], *, progress: Progress = silent
) -> dict[Arm, Ref]:
    """Seal what every slow state, and every untrained start, says about the development episodes.

    Publishes `evaluation/<name>/predictions/<arm>-<seed>` (Parquet) for each, or finds them published. No
    query is scored here: what is published is policy probabilities alone. `progress` counts episodes.
    """
    found = development(plan)
    sealed: dict[Arm, Ref] = {}
    for number, (arm, seed) in enumerate(plan.arms):
        residual = trained.get((arm, seed))
        recipe = plan.predictions(arm, seed, residual)
        if (row := store.catalog().find(recipe.fingerprint)) is not None:
            sealed[arm, seed] = row.ref
            continue
        predictions = predict(
            bench.learner,
            bench.questioner,
            _slow(store, plan, bench, residual, seed),
            found,
            plan.programs,
            plan.larc,
            plan.study,
            seed=seed,
            progress=_onward(progress, number * len(found), len(plan.arms) * len(found)),
        )
        element = Element(
            "evaluation",
            f"{plan.study.name}/predictions/{arm}-{seed}",
            encode_predictions(predictions),
            media=TABLE_MEDIA,
            requires=tuple(recipe.inputs),
            provenance={"recipe": recipe.fingerprint, "params": recipe.params, "host": str(plan.host)},
            facts={"rows": len(predictions)},
        )
        [sealed[arm, seed]] = store.publish([element], message=f"Seal predictions of {element.name}")
    return sealed


def evaluate_selection(store: Store, plan: Plan, sealed: Mapping[Arm, Ref]) -> PublishedEvaluation:
    """Score sealed predictions and judge them; queries are computed here for the first time.

    Publishes `evaluation/<name>` (the summary as JSON) and `evaluation/<name>/samples` (Parquet, a row per
    arm, seed, episode and cell), which require the predictions; or returns what is published for the same.

    Raises `ElementNotFound` when predictions are missing, `BadPayload` when they are not those of the plan.
    """
    recipe = plan.evaluation(sealed).fingerprint
    if (known := find_evaluation(store, recipe)) is not None:
        return known
    rows = _sealed_rows(store, plan, sealed)
    found = development(plan)
    samples: list[SelectionSample] = []
    for (arm, seed), row in rows.items():
        predictions = load_predictions(store.read(row), found, plan.programs)
        samples += score(arm, seed, found, predictions, plan.programs)
    samples += score_rule(found, plan.programs)
    study = plan.study
    costs = {objective: host_passes(objective, plan) for objective in study.objectives}
    summary = {
        "protocol": "episodic program selection, development groups, predictions sealed before scoring",
        "episodes": len(found),
        "groups": len({episode.group for episode in found}),
        **judge(samples, study.objectives, study.seeds, costs, study.judge),
        "training": _training_figures(store, plan),
        "settings": {
            "host": plan.host_params.model_dump(mode="json"),
            "programs": plan.programs.model_dump(mode="json"),
            "larc": plan.larc.model_dump(mode="json"),
            "study": study.model_dump(mode="json"),
        },
        "host": str(plan.host),
        "predictions": {f"{arm}-{seed}": str(ref) for (arm, seed), ref in sealed.items()},
    }
    return publish_evaluation(
        store,
        study.name,
        summary,
        {"samples": Table(encode_records(SelectionSample, samples), len(samples), SAMPLES_RECIPE)},
        recipe=recipe,
        requires=[plan.host.version, *(ref.version for ref in sealed.values())],
        provenance={"subject": SUBJECT, "host": str(plan.host)},
        costs={},
        message=f"Evaluate {study.name}: {len(plan.arms)} slow states on {len(found)} episodes",
    )


def development(plan: Plan) -> list[Episode]:
    """The episodes that are evaluated: all recipes of the development groups."""
    found: Sequence[Group] = groups(plan.programs, Split.DEVELOPMENT)
    return episodes(found)


def host_passes(objective: Objective, plan: Plan) -> int:
    """Passes through the host, forward and backward, that an episode of a training and one read take.

    Counted rather than timed (ours), so that the choice of an objective is the same on every machine. The
    static objective reads its query in the pass of the first support step.
    """
    steps = plan.study.inner_steps
    forward, backward = (steps, steps + 1) if objective == "static" else (steps + 1, steps + 1)
    adaptation = 2 * steps + 1
    return forward + backward + adaptation


def load_selection_samples(payload: bytes) -> list[SelectionSample]:
    """The samples of an evaluation; raises `BadPayload` when the bytes hold none."""
    return load_records(payload, SelectionSample, what="a table of samples of program selection")


def _slow(store: Store, plan: Plan, bench: Bench, residual: Ref | None, seed: int) -> SlowState:
    if residual is not None:
        return open_residual(store, residual, host=plan.host, width=bench.learner.inputs)[1]
    return start(bench.learner, plan.larc, seed)


def _sealed_rows(store: Store, plan: Plan, sealed: Mapping[Arm, Ref]) -> dict[Arm, Row]:
    """The rows of predictions that are in the store already, one for every arm."""
    missing = [f"{arm}-{seed}" for arm, seed in plan.arms if (arm, seed) not in sealed]
    rows = store.catalog().get_all([ref.version for ref in sealed.values()])
    missing += [str(ref) for ref in sealed.values() if ref.version not in rows]
    if missing:
        raise ElementNotFound(
            f"{store.url} has no sealed predictions {missing[0]}, and nothing else is scored; run "
            "`cellar larc eval`"
        )
    return {arm: rows[sealed[arm].version] for arm in plan.arms}


def _training_facts(trained: Trained, host: Host) -> dict[str, Any]:
    """What a training looked like: beside the identity, since other machines round otherwise."""
    return {
        "dtype": str(host.dtype).removeprefix("torch."),
        "device": host.device.type,
        "curve": [asdict(point) for point in trained.curve],
        "log": [asdict(row) for row in trained.log],
    }


def _training_figures(store: Store, plan: Plan) -> dict[str, Any]:
    """The learning curves and logs of the slow states, from their facts."""
    found = {}
    for objective, seed in plan.trainings:
        row = store.catalog().find(plan.training(objective, seed).fingerprint)
        if row is not None:
            found[f"{objective}-{seed}"] = {name: row.facts.get(name) for name in ("curve", "log")}
    return found


def _onward(progress: Progress, start: int, whole: int) -> Progress:
    """Report a part's progress as that of the whole, of which `start` was done before."""

    def advance(done: int, total: int, **figures: float) -> None:
        progress(start + done, whole, **figures)

    return advance
