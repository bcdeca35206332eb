"""Programs in a store: published as elements `skill/<name>`, and opened again."""

from store import Element, Ref, Store
from store.errors import ElementNotFound
from tasks.skills.compiler import OPERATIONS, Operation, compile_operation
from tasks.skills.params import SkillsParams
from tasks.skills.program import MEDIA, Program, load_program
from tasks.skills.recipes import program_recipe


def publish_programs(store: Store, params: SkillsParams) -> dict[Operation, Ref]:
    """Publish the five skills `skill/<operation>`, or find them published."""
    recipes = {operation: program_recipe(params, operation).fingerprint for operation in OPERATIONS}
    catalog = store.catalog()
    found = {operation: catalog.find(recipe) for operation, recipe in recipes.items()}
    missing = [
        Element(
            "skill",
            operation.value,
            compile_operation(operation, params.division).to_bytes(),
            media=MEDIA,
            provenance={"recipe": recipes[operation], "division": params.division.value},
        )
        for operation, row in found.items()
        if row is None
    ]
    if missing:
        store.publish(missing, message=f"Publish {len(missing)} arithmetic skills, {params.division.value}")
    made = {element.full_name: element.ref for element in missing}
    return {
        operation: row.ref if row is not None else made[f"skill/{operation.value}"]
        for operation, row in found.items()
    }


def publish_program(store: Store, name: str, program: Program) -> Ref:
    """Publish a program as `skill/<name>`; the same program under the same name is the same version."""
    element = Element("skill", name, program.to_bytes(), media=MEDIA)
    return store.publish([element], message=f"Publish skill {name}")[0]


def open_program(store: Store, name: str) -> tuple[Ref, Program]:
    """The newest program `skill/<name>` of a store; raises `ElementNotFound` when there is none."""
    row = store.catalog().latest(f"skill/{name.removeprefix('skill/')}")
    if row is None:
        raise ElementNotFound(
            f"{store.url} has no skill {name}; `cellar skill show` lists those it has, and `cellar skill "
            "build` makes the arithmetic ones"
        )
    return row.ref, load_program(store.read(row))
