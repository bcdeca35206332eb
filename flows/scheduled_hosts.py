"""The flows on frozen hosts that a schedule starts: LARC's states and replay, ANNEAL's shadows.

They are as thin as those of `flows.scheduled`. `cellar host` brings a host beforehand: a run whose host is
not there fails and says so. What is published already is found, so that a run that changes nothing takes
seconds, and one that broke off goes on where it kept its state.
"""

from pathlib import Path
from typing import Any

from flows.consolidate_shadow import consolidate_shadow
from flows.cumulate_shadows import cumulate_shadows
from flows.engine import flow
from flows.evaluate_larc import evaluate_larc
from flows.evaluate_shadow import evaluate_shadow
from flows.params import Params, with_text
from flows.replay_larc import replay_larc
from flows.scheduled import configuration
from flows.settings import Settings
from flows.train_larc import train_larc
from flows.write_shadow import write_shadow


def _larc_train(params_file: str | None = None, overrides: list[str] | None = None) -> dict[str, Any]:
    """Train the slow states of every objective and seed, as `cellar larc train` does.

    Args:
        params_file: a parameter file, by default params.yaml where there is one.
        overrides: parameters that win, such as `host.name=smollm2`.
    """
    params, settings = configuration(params_file, overrides)
    return {"trained": train_larc(params, settings)}


def _larc_eval(params_file: str | None = None, overrides: list[str] | None = None) -> dict[str, Any]:
    """Train what is missing, seal predictions and score them, as `cellar larc eval` does.

    Args:
        params_file: a parameter file, by default params.yaml where there is one.
        overrides: parameters that win, such as `study.seeds=[1,2]`.
    """
    params, settings = configuration(params_file, overrides)
    return evaluate_larc(params, settings)


def _larc_replay(
    jobs: str,
    start: str | None = None,
    params_file: str | None = None,
    overrides: list[str] | None = None,
) -> dict[str, Any]:
    """Replay the CI jobs that lie at a path now, as `cellar larc replay` does; the same jobs are found done.

    Args:
        jobs: a table of jobs, what GitHub's API prints, or a folder of such files.
        start: the slow state to start from, otherwise an untrained one.
        params_file: a parameter file, by default params.yaml where there is one.
        overrides: parameters that win, such as `replay.audit_jobs=300`.
    """
    params, settings = configuration(params_file, overrides)
    return replay_larc(params, settings, Path(jobs), start)


def _anneal_write(
    source: str | None = None,
    name: str | None = None,
    params_file: str | None = None,
    overrides: list[str] | None = None,
) -> dict[str, Any]:
    """Write a text into shadows at full strength, as `cellar anneal write` does.

    Args:
        source: a text file or a folder of them, instead of shadow.domain of the parameters.
        name: names the elements, instead of shadow.name of the parameters.
        params_file: a parameter file, by default params.yaml where there is one.
        overrides: parameters that win, such as `shadow.chunks=100`.
    """
    return {"shadow": write_shadow(*_on_text(source, name, params_file, overrides))}


def _anneal_consolidate(
    source: str | None = None,
    name: str | None = None,
    params_file: str | None = None,
    overrides: list[str] | None = None,
) -> dict[str, Any]:
    """Write a text where it is not written, and search how much is kept, as `cellar anneal consolidate` does.

    Args:
        source: a text file or a folder of them, instead of shadow.domain of the parameters.
        name: names the elements, instead of shadow.name of the parameters.
        params_file: a parameter file, by default params.yaml where there is one.
        overrides: parameters that win, such as `anneal.evaluations=100`.
    """
    return {"shadow": consolidate_shadow(*_on_text(source, name, params_file, overrides))}


def _anneal_eval(
    source: str | None = None,
    name: str | None = None,
    params_file: str | None = None,
    overrides: list[str] | None = None,
) -> dict[str, Any]:
    """Make what is missing of a shadow, and evaluate it on sealed text, as `cellar anneal eval` does.

    Args:
        source: a text file or a folder of them, instead of shadow.domain of the parameters.
        name: names the elements, instead of shadow.name of the parameters.
        params_file: a parameter file, by default params.yaml where there is one.
        overrides: parameters that win, such as `anneal.sealed.cards=0`.
    """
    return evaluate_shadow(*_on_text(source, name, params_file, overrides))


def _anneal_cumulate(params_file: str | None = None, overrides: list[str] | None = None) -> dict[str, Any]:
    """Learn the domains of anneal.domains one after another, as `cellar anneal cumulate` does.

    Args:
        params_file: a parameter file, by default params.yaml where there is one.
        overrides: parameters that win, such as `shadow.name=texts`.
    """
    params, settings = configuration(params_file, overrides)
    return cumulate_shadows(params, settings)


def _on_text(
    source: str | None, name: str | None, params_file: str | None, overrides: list[str] | None
) -> tuple[Params, Settings]:
    return configuration(params_file, with_text(overrides or (), source, name))


larc_train = flow(_larc_train, name="larc-train")
larc_eval = flow(_larc_eval, name="larc-eval")
larc_replay = flow(_larc_replay, name="larc-replay")
anneal_write = flow(_anneal_write, name="anneal-write")
anneal_consolidate = flow(_anneal_consolidate, name="anneal-consolidate")
anneal_eval = flow(_anneal_eval, name="anneal-eval")
anneal_cumulate = flow(_anneal_cumulate, name="anneal-cumulate")
