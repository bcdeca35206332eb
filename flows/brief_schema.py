"""Models that Prefect takes for a plain object."""

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class BriefSchema:
    """Mixed into a model whose JSON schema nobody reads: it tells of no field.

    Prefect asks for the schema of each argument several times when a flow is defined, for the form of its
    deployments, and that of hundreds of parameters took .2 s of every flow that a command imports. Our
    deployments take names of files and overrides instead, and what a flow is given is validated all the same.
    """

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"title": cls.__name__, "type": "object"}
