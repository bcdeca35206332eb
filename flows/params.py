"""Parameters: what is computed. One frozen model over the rooms' own, from `params.yaml` and `--set a.b=1`.

Parameters enter recipe fingerprints. Where and on what a run happens is in `flows.settings` and does not.
"""

import difflib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from flows.brief_schema import BriefSchema
from flows.errors import ParamsError
from flows.yaml_file import read_yaml
from tasks.addressing.params import AddressingParams, QuestionParams
from tasks.anneal.params import AnnealParams
from tasks.assembly.params import AssemblyParams, ReadingParams
from tasks.audit.params import AuditParams
from tasks.codec.params import CodecParams
from tasks.composition.params import CompositionParams
from tasks.corpus.params import CorpusParams, TokenizerParams
from tasks.evaluation.params import EvaluationParams
from tasks.facts.params import FactsParams
from tasks.hosts.params import HostParams
from tasks.larc.params import LarcParams
from tasks.memory.params import MemoryParams
from tasks.parameters import Parameters
from tasks.programs.params import ProgramsParams
from tasks.rates.params import RateParams
from tasks.replacement.params import ReplacementParams
from tasks.replay.params import ReplayParams
from tasks.retrieval.params import RetrievalParams
from tasks.shadows.params import ShadowParams
from tasks.skills.params import SkillsParams
from tasks.study.params import StudyParams

PARAMS_FILE = Path("params.yaml")


class Params(BriefSchema, Parameters):
    """Everything that decides what a run computes, one section per room."""

    corpus: CorpusParams = Field(default_factory=CorpusParams)
    tokenizer: TokenizerParams = Field(default_factory=TokenizerParams)
    codec: CodecParams = Field(default_factory=CodecParams)
    memory: MemoryParams = Field(default_factory=MemoryParams)
    retrieval: RetrievalParams = Field(default_factory=RetrievalParams)
    assembly: AssemblyParams = Field(default_factory=AssemblyParams)
    reading: ReadingParams = Field(default_factory=ReadingParams)
    evaluation: EvaluationParams = Field(default_factory=EvaluationParams)
    replacement: ReplacementParams = Field(default_factory=ReplacementParams)
    audit: AuditParams = Field(default_factory=AuditParams)
    skills: SkillsParams = Field(default_factory=SkillsParams)
    addressing: AddressingParams = Field(default_factory=AddressingParams)
    questions: QuestionParams = Field(default_factory=QuestionParams)
    rate: RateParams = Field(default_factory=RateParams)
    host: HostParams = Field(default_factory=HostParams)
    shadow: ShadowParams = Field(default_factory=ShadowParams)
    replay: ReplayParams = Field(default_factory=ReplayParams)
    anneal: AnnealParams = Field(default_factory=AnnealParams)
    composition: CompositionParams = Field(default_factory=CompositionParams)
    facts: FactsParams = Field(default_factory=FactsParams)
    larc: LarcParams = Field(default_factory=LarcParams)
    programs: ProgramsParams = Field(default_factory=ProgramsParams)
    study: StudyParams = Field(default_factory=StudyParams)


def with_text(overrides: Sequence[str], source: str | Path | None, name: str | None) -> list[str]:
    """Overrides, and a text to learn and a name for its shadow in place of those of the parameters."""
    given = list(overrides)
    if source is not None:
        given += [f"shadow.domain.path={json.dumps(str(source))}", "shadow.domain.corpus=null"]
    if name is not None:
        given.append(f"shadow.name={json.dumps(name)}")
    return given


def load_params(path: Path | None = None, overrides: Sequence[str] = ()) -> Params:
    """Parameters from a YAML file and overrides such as `corpus.shards=32`, which win.

    Without `path`, `params.yaml` of the working folder is read if it is there; defaults fill the rest.

    Raises:
        ParamsError: a file that is missing or no YAML mapping, an unknown name, a value that does not fit.
    """
    source = path or PARAMS_FILE
    given = path is not None or source.is_file()
    tree = _read(source) if given else {}
    names = {_assign(tree, override): override for override in overrides}
    try:
        return Params.model_validate(tree)
    except ValidationError as error:
        raise ParamsError(_explain(error, str(source) if given else "parameters", names)) from error


def parameter_names(model: type[BaseModel] = Params, prefix: str = "") -> Iterator[str]:
    """Every parameter's dotted name, sections before their members."""
    for name, field in model.model_fields.items():
        yield prefix + name
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from parameter_names(kind, f"{prefix}{name}.")


def _read(path: Path) -> dict[str, Any]:
    tree = read_yaml(path, ParamsError, remedy="give the path of a parameter file")
    if not isinstance(tree, dict | None):
        raise ParamsError(f"{path} holds no sections; write e.g. 'corpus:' with indented names below")
    return tree or {}


def _assign(tree: dict[str, Any], override: str) -> str:
    """Put one `name=value` into the tree and return the name; a value is JSON where it can be, else text."""
    name, equals, text = override.partition("=")
    name = name.strip()
    if not equals or not name:
        raise ParamsError(f"--set {override!r} is not of the form name=value, e.g. corpus.shards=32")
    known = set(parameter_names())
    if name not in known:
        raise ParamsError(f"--set {name}: {_unknown(name)}")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if not isinstance(value, dict) and any(other.startswith(f"{name}.") for other in known):
        raise ParamsError(f"--set {override}: {name} is a section; set one parameter of it by its full name")
    *sections, last = name.split(".")
    for section in sections:
        inner = tree.get(section)
        tree[section] = inner if isinstance(inner, dict) else {}
        tree = tree[section]
    tree[last] = value
    return name


def _unknown(name: str) -> str:
    """A sentence on an unknown name with the nearest known ones."""
    known = list(parameter_names())
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.75)
    if not near:
        last = name.rpartition(".")[2]
        ends = {full.rpartition(".")[2]: full for full in known}
        near = [ends[end] for end in difflib.get_close_matches(last, ends, n=2, cutoff=0.75)]
    section = name.rpartition(".")[0]
    if not near and section in known:
        near = [full for full in known if full.rpartition(".")[0] == section]
    hint = f"did you mean {' or '.join(near)}?" if near else f"sections are {', '.join(Params.model_fields)}"
    return f"there is no parameter {name}; {hint}"


def _explain(error: ValidationError, source: str, overridden: dict[str, str]) -> str:
    """The first thing that is wrong, as one sentence with its place."""
    first = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"] if not isinstance(part, int))
    if first["type"] == "extra_forbidden":
        return f"{source}: {_unknown(name)}"
    what = first["msg"].removeprefix("Value error, ")
    what = what[:1].lower() + what[1:]
    if name in overridden:
        return f"--set {overridden[name]}: {what}"
    value = first["input"]
    shown = "" if isinstance(value, dict) or repr(value) in what else f" is {str(value)[:60]!r}"
    return f"{source}: {name}{shown}: {what}"
