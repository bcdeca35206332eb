"""One step of a plan, and why it would run: what differs from the newest element of the same name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from flows.formatting import columns, flatten, section
from flows.lineage.commits import mentioned
from store import Recipe, Ref, Row, Store
from store.element import fingerprint

State = Literal["done", "partly done", "to run"]
_SHOWN = 5
"""Changed inputs and parameters that a reason names one by one."""


@dataclass(frozen=True)
class Step:
    """A step of a flow as a run would find it now."""

    name: str
    state: State
    refs: tuple[str, ...] = ()
    """What a done step made."""
    reasons: tuple[str, ...] = ()
    done: int | None = None
    """Documents or elements of a step with many that are done, and those to do."""
    to_do: int | None = None
    seconds: float | None = None
    bytes: int | None = None
    unit: str = ""
    """What `done` and `to_do` count, where it is none of the two: chunks, alphas, jobs."""

    @property
    def runs(self) -> bool:
        """Whether a run would compute anything here."""
        return self.state != "done"

    def to_dict(self) -> dict[str, Any]:
        """JSON values; an estimate of None means that nothing is known."""
        return asdict(self)


class Known:
    """What a store holds; where there is no store, nothing."""

    def __init__(self, store: Store | None) -> None:
        self.store = store
        self._catalog = store.catalog() if store is not None else None

    def find(self, recipe: Recipe, *, name: str | None = None) -> Row | None:
        """What the computation made, with `name` under that name."""
        return self._catalog.find(recipe.fingerprint, name=name) if self._catalog is not None else None

    def find_many(self, recipes: Iterable[str]) -> Mapping[str, Row]:
        """What computations made, by their fingerprints."""
        return self._catalog.find_many(recipes) if self._catalog is not None else {}

    def latest(self, full_name: str) -> Row | None:
        """The newest version of a name."""
        return self._catalog.latest(full_name) if self._catalog is not None else None

    def get_all(self, versions: Iterable[str]) -> Mapping[str, Row]:
        """The rows of versions."""
        return self._catalog.get_all(versions) if self._catalog is not None else {}


def step_of(
    known: Known,
    name: str,
    full_name: str,
    recipe: Recipe,
    inputs: Sequence[Ref],
    **estimate: Any,
) -> Step:
    """The step that makes one element by a recipe; `estimate` counts where it would run."""
    row = known.find(recipe)
    if row is not None:
        return Step(name, "done", refs=(str(row.ref),))
    return Step(
        name, "to run", reasons=differences(known, known.latest(full_name), recipe, inputs), **estimate
    )


def waiting(name: str, causes: Iterable[str], changed: Iterable[str] = (), **estimate: Any) -> Step:
    """A step whose input would be made by steps before it, so that nobody knows its version yet."""
    return Step(name, "to run", reasons=(f"its input will change: {', '.join(causes)}", *changed), **estimate)


def differences(known: Known, row: Row | None, recipe: Recipe, inputs: Sequence[Ref]) -> tuple[str, ...]:
    """What a recipe has otherwise than what made `row`: parameters, inputs, its own version."""
    if row is None:
        return ("never built",)
    old = section(row.provenance, "params")
    reasons = [*changed_params(old, recipe.params), *changed_inputs(known, row, inputs)]
    if not reasons and fingerprint(recipe.name, params=old, inputs=recipe.inputs) != row.recipe:
        reasons.append(f"the recipe is {recipe.name} now, another than it was made by")
    return tuple(reasons) or ("what it made was collected",)


def changed_params(old: object, new: Mapping[str, Any]) -> Iterator[str]:
    """Parameters that differ, with their values before and after; `old` are none where a record says so."""
    before, after = dict(flatten(old if isinstance(old, Mapping) else {})), dict(flatten(new))
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    for name in names[:_SHOWN]:
        yield f"{name} {before.get(name, 'unset')} -> {after.get(name, 'unset')}"
    if len(names) > _SHOWN:
        yield f"and {len(names) - _SHOWN} more parameters"


def changed_inputs(known: Known, row: Row, inputs: Sequence[Ref]) -> Iterator[str]:
    """Inputs by name whose versions changed, and those that are new or gone."""
    named = mentioned({key: value for key, value in row.provenance.items() if key != "recipe"})
    before = {source.name: source.version for source in known.get_all({*named, *row.requires}).values()}
    after = {ref.name: ref.version for ref in inputs}
    changes = [f"input {name} changed" for name in after if before.get(name, after[name]) != after[name]]
    changes += [f"input {name} is new" for name in after if name not in before]
    changes += [f"input {name} is gone" for name in before if name not in after]
    yield from changes[:_SHOWN]
    if len(changes) > _SHOWN:
        yield f"and {len(changes) - _SHOWN} more inputs"


def until(steps: Sequence[Step], name: str) -> list[Step]:
    """The steps up to one of that name."""
    names = [step.name for step in steps]
    return list(steps[: names.index(name) + 1])


def plan_lines(steps: Sequence[Step]) -> Iterator[str]:
    """A plan for people."""
    rows: list[tuple[str, ...]] = []
    for step in steps:
        counts = "" if step.to_do is None else f"{step.done or 0:,} of {(step.done or 0) + step.to_do:,}"
        counts += f" {step.unit}" if counts and step.unit else ""
        told = step.reasons if step.runs else tuple(map(_short, step.refs[:1]))
        rows.append((step.name, step.state, counts, _seconds(step), _bytes(step), told[0] if told else ""))
        rows += [("", "", "", "", "", reason) for reason in told[1:]]
    yield from columns(rows, ("step", "state", "done", "seconds", "bytes", "made, or why it would run"))
    yield ""
    yield _total(steps)


def _short(ref: str) -> str:
    """A reference with twelve digits of its version; an id of a snapshot as it is."""
    name, at, version = ref.rpartition("@")
    return f"{name}@{version[:12]}" if at else ref


def _seconds(step: Step) -> str:
    if not step.runs:
        return ""
    return "unknown" if step.seconds is None else f"about {step.seconds:,.0f}"


def _bytes(step: Step) -> str:
    if not step.runs:
        return ""
    return "unknown" if step.bytes is None else f"about {step.bytes:,}"


def _total(steps: Sequence[Step]) -> str:
    """What is known of all steps together."""
    running = [step for step in steps if step.runs]
    if not running:
        return "everything is done: a run would find it all in the store"
    seconds = [step.seconds for step in running if step.seconds is not None]
    sizes = [step.bytes for step in running if step.bytes is not None]
    parts = [f"{len(running)} of {len(steps)} steps would run"]
    unknown = len(running) - len(seconds)
    if seconds:
        parts.append(f"about {sum(seconds):,.0f} s" + (f" and {unknown} of unknown time" if unknown else ""))
    if sizes:
        parts.append(f"about {sum(sizes):,} bytes")
    return ", ".join(parts)
