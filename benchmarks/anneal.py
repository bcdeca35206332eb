"""Alphas a second: rows of one batch that share their products, against setting alphas and reading the host.

The plain loop merges W + alpha D into the host's weights, reads each probe by the whole forward pass, and
takes the loss of the scored tokens from the full logits. Contenders take turns, and processor time is
counted; others on the machine change it, since they share its caches.

    python -m benchmarks.anneal --host build/hosts/smollm2
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.figures import Section
from benchmarks.one_section import Found, add_output_options, report_section
from store import Ref
from tasks.anneal import Population
from tasks.hosts import Host, HostDtype, load_host, read_manifest
from tasks.processor import keep_freed_memory, product_dtype
from tasks.shadows import Shadow, chosen_layers, down_projections, new_shadow

LEAST_GAIN = 5.0
MOST_APART = 1e-4
"""Nats between the losses of a probe, in float32."""
EVALUATIONS, MOST_SECONDS = 200, 600.0
SIZE = 0.3
"""Frobenius norm of each D, about what sixty chunks write."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bench:
    """A host in one number format, a shadow of it, and N probes."""

    host: Host
    shadow: Shadow
    probes_NT: Tensor
    scored: int

    def population(self) -> Population:
        """What is computed once for a search, however many alphas it evaluates."""
        return Population(self.host, self.shadow, self.probes_NT, scored=self.scored)

    def plain(self, alphas_PL: Floats) -> Floats:
        """Set alphas, read the host, for one alpha and one probe after the other: losses (P, N)."""
        modules = list(down_projections(self.host, self.shadow.layers).values())
        kept = [module.weight.clone() for module in modules]
        found = np.empty((len(alphas_PL), len(self.probes_NT)))
        try:
            for row, alphas in enumerate(alphas_PL):
                for module, weight, delta, alpha in zip(
                    modules, kept, self.shadow.deltas, alphas, strict=True
                ):
                    module.weight.data = torch.add(weight.float(), delta, alpha=float(alpha)).to(weight.dtype)
                for place, ids_T in enumerate(self.probes_NT):
                    found[row, place] = self._loss(ids_T)
        finally:
            for module, weight in zip(modules, kept, strict=True):
                module.weight.data = weight
        return found

    @torch.no_grad()
    def _loss(self, ids_T: Tensor) -> float:
        logits_TV = self.host.model(input_ids=ids_T[None], use_cache=False).logits[0]
        return float(F.cross_entropy(logits_TV[-1 - self.scored : -1].float(), ids_T[-self.scored :]))


def bench(options: argparse.Namespace, dtype: torch.dtype) -> Bench:
    """The host in this dtype, six layers or as many as it has of shadow, and probes of random tokens."""
    manifest = read_manifest(options.host)
    ref = Ref("host/benchmark", sha256(manifest.to_bytes()).hexdigest())
    name: HostDtype = "float32" if dtype == torch.float32 else "bfloat16"
    host = load_host(ref, manifest, options.host, device=torch.device("cpu"), dtype=name)
    draws = torch.Generator().manual_seed(5)
    zero = new_shadow(host, chosen_layers(host, None), document="0" * 64, seeds={})
    drawn = [torch.randn(delta.shape, generator=draws) for delta in zero.deltas]
    shadow = replace(zero, deltas=tuple(SIZE * delta / delta.norm() for delta in drawn))
    probes_NT = torch.randint(0, host.vocab_size, (options.probes, options.tokens), generator=draws)
    return Bench(host, shadow, probes_NT, options.scored)


def run(options: argparse.Namespace) -> tuple[Section, Found]:
    """Measure both loops in float32 and in the processor's own format, in turns, and compare their losses."""
    native = product_dtype(torch.device("cpu"))
    benches = {torch.float32: bench(options, torch.float32)}
    if native != torch.float32:
        benches[native] = bench(options, native)
    layers = len(benches[torch.float32].shadow.layers)
    alphas_PL = np.random.default_rng(7).uniform(0, 1.2, (options.population, layers))
    section = Section(
        f"alphas of {layers} layers on {options.probes} probes of {options.tokens} tokens, "
        f"{options.scored} scored"
    )
    contenders: dict[str, Callable[[], Floats]] = {}
    for dtype, one in benches.items():
        label = str(dtype).removeprefix("torch.")
        seconds, made = timed(one.population)
        section.figure(f"population, {label}: built once", "s").add(seconds)
        contenders[f"population, {label}"] = lambda made=made: made.losses(alphas_PL)
        contenders[f"plain loop, {label}"] = lambda one=one: one.plain(alphas_PL[: options.plain])
    losses: dict[str, Floats] = {}
    for turn in range(options.runs):
        for name, work in contenders.items() if turn % 2 == 0 else reversed(contenders.items()):
            seconds, losses[name] = timed(work)
            section.figure(name, "alphas/s").add(len(losses[name]) / seconds)
    speed = {name: section.figure(name, "alphas/s").median for name in contenders}
    label = str(native).removeprefix("torch.")
    ours = speed[f"population, {label}"]
    section.require(
        f"population, {label} / plain loop, float32", ours / speed["plain loop, float32"], least=LEAST_GAIN
    )
    for dtype in benches:
        name = str(dtype).removeprefix("torch.")
        ratio = speed[f"population, {name}"] / speed[f"plain loop, {name}"]
        section.require(f"population / plain loop, both {name}", ratio)
    for dtype in benches:
        name = str(dtype).removeprefix("torch.")
        plain = losses[f"plain loop, {name}"]
        apart = float(np.abs(losses[f"population, {name}"][: len(plain)] - plain).max())
        most = MOST_APART if dtype == torch.float32 else None
        section.require(f"losses of a probe apart, {name}", apart, "nats per token", most=most)
    whole = section.figure(f"population, {label}: built once", "s").median + EVALUATIONS / ours
    section.require(f"{EVALUATIONS} alphas, {label}", whole, "s", most=MOST_SECONDS)
    section.notes.append(f"{torch.get_num_threads()} thread(s); processor time divided by threads.")
    return section, {"host": str(options.host), "layers": layers}


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """Seconds of processor time for each thread, and what was computed."""
    began = time.process_time()
    made = work()
    return (time.process_time() - began) / torch.get_num_threads(), made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 if all requirements are met."""
    parser = argparse.ArgumentParser(description="How fast alphas are evaluated, against the plain loop.")
    parser.add_argument("--host", type=Path, default=Path("build/hosts/smollm2"), help="a model's directory")
    parser.add_argument("--probes", type=int, default=8, help="probes of an evaluation (8)")
    parser.add_argument("--tokens", type=int, default=128, help="tokens of a probe (128)")
    parser.add_argument("--scored", type=int, default=64, help="tokens of it that are scored (64)")
    parser.add_argument("--population", type=int, default=9, help="alphas evaluated together (9)")
    parser.add_argument("--plain", type=int, default=2, help="alphas of the plain loop in a turn (2)")
    parser.add_argument("--runs", type=int, default=3, help="turns of which the median counts (3)")
    parser.add_argument("--threads", type=int, default=1, help="threads (1)")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    if min(options.probes, options.runs, options.threads, options.population, options.plain) < 1:
        parser.error("at least one of everything is needed")
    if not 0 < options.scored < options.tokens:
        parser.error("fewer tokens are scored than a probe has")
    if not (options.host / "config.json").is_file():
        parser.error(f"{options.host} holds no model; `cellar host fetch smollm2` makes one")
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    return report_section("anneal", options, lambda _: run(options))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
