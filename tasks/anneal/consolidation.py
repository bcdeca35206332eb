"""One search of alpha from start to end: resumable, within its budget, and guarded by text it never saw."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.anneal.objective import Scored, joined
from tasks.anneal.params import AnnealParams, SearchName
from tasks.anneal.searches import search
from tasks.checkpoint import Checkpoints, load_checkpoint, save_checkpoint
from tasks.errors import UnfitHost
from tasks.progress import Progress, silent

Floats = NDArray[np.float64]
_COLUMNS = ("gain", "rise", "drift", "score")


@dataclass(frozen=True)
class Found:
    """What a search found: the best alphas (L), where among `tried` they are, and all that it tried."""

    alphas_L: Floats
    place: int
    tried: Scored

    def course(self) -> list[list[float]]:
        """The best score so far, wherever it rose and at the end: evaluations and score of each place."""
        best_K = np.maximum.accumulate(self.tried.score_P)
        rose_K = np.flatnonzero(np.diff(best_K, prepend=-np.inf) > 0)
        places = sorted({*rose_K.tolist(), len(best_K) - 1})
        return [[place + 1, float(best_K[place])] for place in places]


def run_search(
    name: SearchName,
    params: AnnealParams,
    layers: tuple[int, ...],
    objective: Callable[[Floats], Scored],
    *,
    progress: Progress = silent,
    checkpoints: Checkpoints | None = None,
) -> Found:
    """Run a search over the layers' alphas and return its best; the clamped layer stays at 1.

    With `checkpoints` an interrupted search continues, bit for bit, after the last generation that was kept,
    as the last one always is: it is told the kept scores again and takes the same course. `progress` counts
    evaluations, first those that were kept.

    Raises `UnfitHost` when the clamped layer has no shadow.
    """
    free = searched_layers(params, layers)
    course = search(name, params, int(free.sum()))
    kept = _kept(checkpoints, len(layers))
    budget = evaluations_of(name, params)
    seconds = 0.0 if checkpoints is None else checkpoints.seconds
    parts: list[Scored] = []
    done, evaluated, kept_at = 0, False, time.monotonic()
    points = next(course)
    while True:
        alphas_PL = np.ones((len(points), len(layers)))
        alphas_PL[:, free] = points
        told = _told(kept, alphas_PL, done)
        if told is None and not evaluated:
            evaluated = True
            progress(done, budget)
        scored = objective(alphas_PL) if told is None else told
        parts.append(scored)
        done += len(points)
        due = done >= budget or time.monotonic() - kept_at >= seconds
        if checkpoints is not None and told is None and due:
            _keep(checkpoints, joined(parts))
            kept_at = time.monotonic()
        if evaluated or done >= budget:
            progress(done, budget, best=float(max(part.score_P.max() for part in parts)))
        try:
            points = course.send(scored.score_P)
        except StopIteration:
            break
    tried = joined(parts)
    place = int(np.argmax(tried.score_P))
    return Found(tried.alphas_PL[place], place, tried)


def evaluations_of(name: SearchName, params: AnnealParams) -> int:
    """How many alphas a search evaluates, exactly."""
    return 1 if name == "naive" else params.evaluations


def alphas_kept(checkpoints: Checkpoints) -> int:
    """How many alphas an interrupted search has evaluated."""
    found = load_checkpoint(checkpoints.folder, checkpoints.fingerprint)
    return 0 if found is None else len(found[0].get("alphas", ()))


def searched_layers(params: AnnealParams, layers: tuple[int, ...]) -> NDArray[np.bool_]:
    """Whether each layer's alpha is searched; raises `UnfitHost` for a clamped one missing or alone."""
    free = np.array([layer != params.clamp for layer in layers])
    if params.clamp is not None and (free.all() or len(layers) == 1):
        raise UnfitHost(
            f"anneal.clamp is {params.clamp}, the shadow has layers {list(layers)}; clamp one of several"
        )
    return free


def _keep(checkpoints: Checkpoints, tried: Scored) -> None:
    tensors = {"alphas": torch.from_numpy(tried.alphas_PL)}
    tensors |= {name: torch.from_numpy(getattr(tried, f"{name}_P")) for name in _COLUMNS}
    save_checkpoint(checkpoints.folder, checkpoints.fingerprint, tensors, {"search": 1})


def _kept(checkpoints: Checkpoints | None, layers: int) -> Scored | None:
    """What was tried before; None where there is nothing, or what is there has another shape."""
    found = None if checkpoints is None else load_checkpoint(checkpoints.folder, checkpoints.fingerprint)
    if found is None:
        return None
    alphas = found[0].get("alphas")
    columns = [found[0].get(name) for name in _COLUMNS]
    if alphas is None or alphas.dim() != 2 or alphas.shape[1] != layers:
        return None
    kept = []
    for column in columns:
        if column is None or column.shape != alphas.shape[:1] or column.dtype != torch.float64:
            return None
        kept.append(column.numpy())
    return Scored(alphas.double().numpy(), *kept)


def _told(kept: Scored | None, alphas_PL: Floats, done: int) -> Scored | None:
    """The kept scores of these alphas, which come after `done` others; None from where they are new."""
    if kept is None:
        return None
    part = slice(done, done + len(alphas_PL))
    if not np.array_equal(kept.alphas_PL[part], alphas_PL):
        return None
    return Scored(
        kept.alphas_PL[part], kept.gain_P[part], kept.rise_P[part], kept.drift_P[part], kept.score_P[part]
    )
