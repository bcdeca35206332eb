"""Episodes per second of the LARC learner: packed trees against padded rows of the same host in the same run.

An episode is two inner steps on its support feedback and the read that follows (LARC 4.1). Contenders take
turns, and processor time is counted, which others on the machine change little.

    python -m benchmarks.larc --host build/hosts/smollm2
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.figures import Section
from benchmarks.larc_padded import Rows, pad, padded_energies, padded_episodes
from benchmarks.one_section import Found, add_output_options, report_section
from store import Ref
from tasks.hosts import HostDtype, load_host, read_manifest
from tasks.larc import (
    ExpectedCost,
    Learner,
    Question,
    SlowState,
    begin,
    new_slow_state,
    plain_energies,
    read,
    update,
)
from tasks.larc.question import Tree
from tasks.larc.substrate import Substrate
from tasks.processor import product_dtype
from tasks.programs import ProgramsParams, Split, answer, episodes, groups, prompt, support

LEAST_GAIN = 2.5
"""Packed trees over padded four-row batches, in episodes per second."""
MOST_APART = 1e-4
"""Nats per token between both after two steps, in float32."""
STEPS, RATE = 2, 0.1


@dataclass(frozen=True)
class Bench:
    """What contenders work on: F episodes of one slow state."""

    host: Substrate
    learner: Learner
    slow: SlowState
    questions: list[Question]
    costs_FJ: Tensor

    def trees(self) -> Tensor:
        """All episodes together, as packed trees: energies (F, J) after their steps."""
        running = [begin(self.slow, seed=place) for place in range(len(self.questions))]
        owners = list(range(len(running)))
        for _ in range(STEPS):
            running, _ = update(
                self.learner, running, self.questions, owners, ExpectedCost(self.costs_FJ), rate=RATE
            )
        return read(self.learner, running, self.questions, owners)

    def padded(self, together: int) -> Tensor:
        """So many episodes in each physical batch of padded rows."""
        costs = self.costs_FJ.to(self.host.device)
        made = [
            padded_episodes(
                self.host, self.slow, rows, costs[start : start + together], steps=STEPS, rate=RATE
            )
            for start, rows in self._rows(together)
        ]
        return torch.cat(made)

    def forward_trees(self) -> Tensor:
        """Energies at the slow state alone."""
        running = [begin(self.slow, seed=0)]
        return read(self.learner, running, self.questions, [0] * len(self.questions))

    def forward_padded(self, together: int) -> Tensor:
        """The same from padded rows."""
        made = []
        for _, rows in self._rows(together):
            count = len(rows.lengths_R) // rows.candidates
            A_FrD, B_FDr = (one.repeat(count, 1, 1) for one in (self.slow.A_rD, self.slow.B_Dr))
            with torch.no_grad():
                made.append(padded_energies(self.host, rows, A_FrD, B_FDr))
        return torch.cat(made)

    def forward_plain(self) -> Tensor:
        """One sequence for each candidate, whole logits."""
        with torch.no_grad():
            return torch.stack(
                [plain_energies(self.host, one, self.slow.A_rD, self.slow.B_Dr) for one in self.questions]
            )

    def _rows(self, together: int) -> list[tuple[int, Rows]]:
        starts = range(0, len(self.questions), together)
        return [(start, pad(self.host, self.questions[start : start + together])) for start in starts]


def run(options: argparse.Namespace) -> tuple[Section, Found]:
    """Measure all contenders in turns, and check in float32 that they compute the same."""
    found = bench(options, options.dtype)
    places = [len(Tree.of(one)) for one in found.questions]
    prompts = [len(one.prompt_ids) for one in found.questions]
    padded = sum(rows.places for _, rows in found._rows(1))
    section = Section(f"LARC episodes of two inner steps, {len(places)} episodes, {_name(options.dtype)}")
    contenders: dict[str, Callable[[], Tensor]] = {
        "packed trees, all episodes together": found.trees,
        "padded rows, four rows a batch": lambda: found.padded(1),
        "padded rows, two episodes a batch": lambda: found.padded(2),
        "forward only: packed trees": found.forward_trees,
        "forward only: padded, four rows a batch": lambda: found.forward_padded(1),
        "forward only: one sequence a candidate": found.forward_plain,
    }
    for turn in range(-1, options.runs):
        for name, work in contenders.items() if turn % 2 == 0 else reversed(contenders.items()):
            seconds, _ = timed(work)
            if turn >= 0:  # the first turn warms
                section.figure(name, "episodes/s").add(len(places) / seconds)
    speed = {figure.name: figure.median for figure in section.figures}
    ours, four, two, forward, forward_four, plain = (speed[name] for name in contenders)
    section.require("packed trees / padded four-row batches", ours / four, least=LEAST_GAIN)
    section.require("packed trees / padded, two episodes a batch", ours / two)
    section.require("forward only: packed trees / padded four-row batches", forward / forward_four)
    section.require("forward only: packed trees / one sequence a candidate", forward / plain)
    exact = found if options.dtype == torch.float32 else bench(options, torch.float32)
    apart = float((exact.trees() - exact.padded(1)).abs().max())
    section.require("energies apart after two steps, float32", apart, "nats per token", most=MOST_APART)
    section.notes += [
        f"Prompts have {min(prompts)} to {max(prompts)} tokens, trees {min(places)} to {max(places)}: "
        f"together {sum(places):,} places against {padded:,} in padded rows.",
        f"After two steps the energies of both are {apart:.1e} nats per token apart in float32.",
        f"{options.threads} thread(s); processor time divided by threads.",
    ]
    return section, {"host": str(options.host), "prompt_tokens": prompts, "tree_tokens": places}


def bench(options: argparse.Namespace, dtype: torch.dtype) -> Bench:
    """The host in this dtype, and training episodes of both families with the errors on their support."""
    manifest = read_manifest(options.host)
    ref = Ref("host/benchmark", sha256(manifest.to_bytes()).hexdigest())
    host = load_host(ref, manifest, options.host, device=options.device, dtype=_name(dtype))
    params = ProgramsParams()
    found = episodes(groups(params, Split.TRAIN))
    chosen = [found[place * len(found) // options.episodes] for place in range(options.episodes)]
    questions = [
        Question(
            tuple(host.encode(prompt(one.group))),
            tuple((*host.encode(answer(candidate)), host.end) for candidate in one.group.candidates),
        )
        for one in chosen
    ]
    costs = torch.tensor([support(one, params).errors for one in chosen])
    slow = new_slow_state(host.width, seed=11)
    return Bench(host, Learner(host, tokens=options.tokens), slow, questions, costs)


def timed(work: Callable[[], Tensor]) -> tuple[float, Tensor]:
    """Seconds of processor time for each thread, and what was computed."""
    began = time.process_time()
    made = work()
    return (time.process_time() - began) / torch.get_num_threads(), made


def _name(dtype: torch.dtype) -> HostDtype:
    return "float32" if dtype == torch.float32 else "bfloat16"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 if all requirements are met."""
    parser = argparse.ArgumentParser(description="How fast LARC episodes are, against padded rows.")
    parser.add_argument("--host", type=Path, default=Path("build/hosts/smollm2"), help="a model's directory")
    parser.add_argument("--episodes", type=int, default=8, help="episodes, of both families (8)")
    parser.add_argument("--runs", type=int, default=3, help="turns of which the median counts (3)")
    parser.add_argument("--threads", type=int, default=1, help="threads (1)")
    parser.add_argument("--tokens", type=int, default=2_048, help="places of a physical batch (2048)")
    parser.add_argument("--dtype", choices=("auto", "float32", "bfloat16"), default="auto")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    if min(options.episodes, options.runs, options.threads) < 1:
        parser.error("at least one episode, one run and one thread are needed")
    if not (options.host / "config.json").is_file():
        parser.error(f"{options.host} holds no model; `cellar host fetch smollm2` makes one")
    options.device = torch.device("cpu")
    torch.set_num_threads(options.threads)
    options.dtype = (
        product_dtype(options.device) if options.dtype == "auto" else getattr(torch, options.dtype)
    )
    return report_section("larc", options, lambda _: run(options))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
