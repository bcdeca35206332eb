"""Parameters of the replay: files, split, memory, prompts, learning, experts and the controller."""

from collections.abc import Mapping
from typing import Literal, Self, get_args

from pydantic import Field, model_validator

from tasks.evaluation import MOST_RESAMPLES
from tasks.parameters import Parameters
from tasks.replay.jobs import GITHUB_CONCLUSIONS, Label

PathName = Literal[
    "reset",
    "reset_memory",
    "keep",
    "keep_memory",
    "permuted",
    "original",
    "calibrated",
    "carry_tenth",
    "latest_full",
    "latest_tenth",
    "controller",
    "hedge4",
    "hedge5",
]
"""Ways to predict (LARC 5): P0M0, P0M1, P1M0, P1M1 (which is CARRY with the full increment), labels permuted,
the policy before its task fit, the same with biases, the rest of the CARRY/LATEST grid, and ours."""

ALL_PATHS: tuple[PathName, ...] = get_args(PathName)


class ColumnParams(Parameters):
    """Columns of a CSV file of jobs; an empty name stands for a field that the file lacks."""

    id: str = Field(default="job_id", min_length=1, description="Stable id of the job.")
    repository: str = Field(default="repository", min_length=1, description="owner/name.")
    workflow_id: str = Field(default="", description="Number of the workflow.")
    workflow: str = Field(default="", description="Path or name of the workflow.")
    event: str = Field(default="", description="What triggered the run.")
    name: str = Field(default="job_name", min_length=1, description="Name of the job.")
    commit: str = Field(default="head_sha", min_length=1, description="Commit that was built.")
    started: str = Field(default="started_at", min_length=1, description="Start, ISO 8601, UTC by default.")
    completed: str = Field(default="completed_at", min_length=1, description="Completion, ISO 8601.")
    conclusion: str = Field(default="status", min_length=1, description="How it ended; see labels.")


class CaseParams(Parameters):
    """The memory of completed cases, and the prompts that show some of them."""

    cases: int = Field(default=16, ge=1, le=256, description="Completed cases that a session remembers.")
    case_bytes: int = Field(default=16 * 1024, ge=4096, le=1 << 20, description="Bytes of all of them.")
    shown: int = Field(default=2, ge=0, le=8, description="Cases in a prompt at most.")
    field_characters: int = Field(
        default=60, ge=8, le=300, description="Characters of a job's field that a prompt shows (ours)."
    )


class FitParams(Parameters):
    """The task fit: one epoch over the training prefix with AdamW (LARC 5)."""

    seed: int = Field(
        default=2026092811, ge=0, lt=2**63, description="Order of the jobs, and untrained factors."
    )
    jobs: int = Field(default=4, ge=1, le=256, description="Jobs of an update, each in both memory views.")
    epochs: int = Field(default=1, ge=0, le=100, description="Passes over the training prefix.")
    rate: float = Field(default=1e-3, gt=0, le=1, description="Learning rate of the task fit.")
    clip: float = Field(default=1.0, gt=0, le=1e6, description="Largest norm of a gradient.")


class ExpertParams(Parameters):
    """HEDGE4's experts and the calibrated control."""

    most_keys: int = Field(
        default=4096,
        ge=1,
        le=1 << 16,
        description="Keys of a map; the least recently learned one goes first (ours).",
    )
    last_job: float = Field(
        default=0.7, gt=0.25, lt=1, description="Chance of the last label of workflow and job."
    )
    last_commit: float = Field(
        default=0.97, gt=0.25, lt=1, description="Chance of the last label of commit, workflow and job."
    )
    buckets: int = Field(default=1024, ge=2, le=1 << 16, description="Hashed features of the regression.")
    rate: float = Field(default=0.1, gt=0, le=10, description="Learning rate of the regression.")
    decay: float = Field(default=1e-4, ge=0, lt=1, description="Weight decay of the regression.")
    bias_l2: float = Field(
        default=1e-4, gt=0, le=1e6, description="L2 penalty on the calibrated control's biases."
    )


class ControllerParams(Parameters):
    """The controller (ours): which updates it keeps, and how far it trusts the kept state."""

    rate: float = Field(default=0.1, gt=0, le=10, description="SGD step that is proposed for a batch.")
    step_norm: float = Field(
        default=0.003,
        gt=0,
        le=1e6,
        description="Largest norm of an update, as a share of the slow state's norm.",
    )
    radius: float = Field(
        default=0.1, gt=0, le=1e6, description="Largest distance from the slow state, as a share of its norm."
    )
    halvings: int = Field(
        default=3, ge=0, le=10, description="Smaller steps tried where one raises the batch's own loss."
    )
    prior: float = Field(default=0.05, gt=0, lt=1, description="Trust in the kept state before any label.")
    trust_rate: float = Field(
        default=0.1,
        gt=0,
        le=100,
        description="Log-odds of trust for one unit of half-Brier between the reads.",
    )
    forget: float = Field(
        default=0.005,
        ge=0,
        lt=1,
        description="Share of the log-odds' distance to the prior forgotten by a label.",
    )
    drop_below: float = Field(
        default=0.01,
        ge=0,
        lt=0.5,
        description="Trust below which the kept state is dropped for the slow one.",
    )

    @model_validator(mode="after")
    def _starts_trusted_enough(self) -> Self:
        if self.drop_below >= self.prior:
            raise ValueError(
                f"drop_below {self.drop_below} is not below the prior {self.prior}; no state would be kept"
            )
        return self


class ReplayParams(Parameters):
    """Everything that decides what a replay of delayed CI feedback computes."""

    name: str = Field(
        default="ci",
        pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$",
        description="Names corpus/<name>.jobs, residual/<name>.task and evaluation/<name>.",
    )
    columns: ColumnParams = ColumnParams()
    labels: Mapping[str, Label] = Field(
        default={**GITHUB_CONCLUSIONS, "COMPLETED": "success", "FAILED": "failure", "ABORTED": "cancelled"},
        description="What a CSV file's conclusion means; GitHub's JSON always means the same.",
    )
    training_jobs: int = Field(
        default=1000,
        ge=1,
        le=1_000_000,
        description="First jobs of each repository, at most half of its jobs.",
    )
    audit_jobs: int = Field(
        default=1500, ge=1, le=1_000_000, description="Jobs after them that are replayed, of each repository."
    )
    paths: tuple[PathName, ...] = Field(default=ALL_PATHS, min_length=1, description="What is compared.")
    rate: float = Field(default=0.1, gt=0, le=10, description="SGD step of online updates (LARC 5).")
    tenth: float = Field(default=0.1, gt=0, le=1, description="Share of the step in the smaller increment.")
    measure: bool = Field(
        default=True, description="Read each batch again after its update, for the loss of the same batch."
    )
    permutation_seed: int = Field(
        default=7, ge=0, lt=2**63, description="Private stream of the permuted labels."
    )
    resamples: int = Field(
        default=10_000, ge=100, le=MOST_RESAMPLES, description="Bootstrap resamples of commits."
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Of the intervals.")
    cases: CaseParams = CaseParams()
    fit: FitParams = FitParams()
    experts: ExpertParams = ExpertParams()
    controller: ControllerParams = ControllerParams()

    @model_validator(mode="after")
    def _paths_stand_alone(self) -> Self:
        if len(set(self.paths)) < len(self.paths):
            raise ValueError("a path is named twice in paths")
        for path, needed in (("hedge5", "controller"), ("calibrated", "original")):
            if path in self.paths and needed not in self.paths:
                raise ValueError(f"the path {path} needs {needed} beside it; add it to paths")
        return self
