"""A small evaluator of IAM policies, and the requests that it judges: those that real commands send to S3."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
_ACTIONS = {
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "DeleteObject": "s3:DeleteObject",
    "ListObjectsV2": "s3:ListBucket",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "GetBucketVersioning": "s3:GetBucketVersioning",
}
_CONDITION_KEYS = {"IfNoneMatch": "s3:if-none-match", "IfMatch": "s3:if-match", "Prefix": "s3:prefix"}


@dataclass(frozen=True)
class Request:
    """What IAM sees of a request."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict, hash=False)


def policies_of(bucket: str, prefix: str) -> dict[str, dict[str, Any]]:
    """Return the policies of the documentation by name, for another bucket and prefix."""
    blocks = re.findall(
        r"^(\w+)[^\n]*(?:\n[^\n]+)*:\n\n```json\n(.*?)```", _section(), re.DOTALL | re.MULTILINE
    )
    return {
        name: json.loads(block.replace("my-bucket/cellar", f"{bucket}/{prefix}").replace("my-bucket", bucket))
        for name, block in blocks
    }


def roles() -> dict[str, list[str]]:
    """Return the names of each role's policies, as the documentation's table has them."""
    rows = re.findall(r"^\| (\w+) \| .* \| ([\w, ]+) \|$", _section(), re.MULTILINE)
    return {role: names.split(", ") for role, names in rows if role != "role"}


def _section() -> str:
    text = OPERATIONS.read_text(encoding="utf-8")
    return text.partition("\n## Roles\n")[2].partition("\n## ")[0]


def as_served(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return a policy as SeaweedFS takes it: without these conditions, and one action has another name."""
    text = json.dumps(policy).replace("s3:ListBucketMultipartUploads", "s3:ListMultipartUploads")
    served: dict[str, Any] = json.loads(text)
    for statement in served["Statement"]:
        statement.pop("Condition", None)
    return served


def allows(policies: Sequence[Mapping[str, Any]], request: Request) -> bool:
    """Judge as IAM does: denied unless a statement allows it and none denies it."""
    matching = [
        statement for policy in policies for statement in policy["Statement"] if _fits(statement, request)
    ]
    return bool(matching) and all(statement["Effect"] == "Allow" for statement in matching)


def granted(policies: Sequence[Mapping[str, Any]]) -> set[tuple[str, str, str]]:
    """Return every statement's actions and resources one by one, as (statement, action, resource)."""
    return {
        (statement["Sid"], action, resource)
        for policy in policies
        for statement in policy["Statement"]
        for action in _list(statement["Action"])
        for resource in _list(statement["Resource"])
    }


def used(policies: Sequence[Mapping[str, Any]], requests: Sequence[Request]) -> set[tuple[str, str, str]]:
    """Return those grants that at least one of the requests needs."""
    return {
        (statement["Sid"], request.action, resource)
        for policy in policies
        for statement in policy["Statement"]
        for request in requests
        if _fits(statement, request)
        for resource in _list(statement["Resource"])
        if _like(request.resource, resource)
    }


def _fits(statement: Mapping[str, Any], request: Request) -> bool:
    assert statement.keys() <= {"Sid", "Effect", "Action", "Resource", "Condition"}
    return (
        request.action in _list(statement["Action"])
        and any(_like(request.resource, resource) for resource in _list(statement["Resource"]))
        and all(
            _holds(operator, key, value, request)
            for operator, tests in statement.get("Condition", {}).items()
            for key, value in tests.items()
        )
    )


def _holds(operator: str, key: str, value: str, request: Request) -> bool:
    assert operator == "Null", "the only operator of the documentation"
    return (key not in request.context) == (value == "true")


def _like(resource: str, pattern: str) -> bool:
    """Compare as IAM does: `*` and `?` stand for any characters, a bracket for itself."""
    return fnmatch.fnmatchcase(resource, pattern.replace("[", "[[]"))


def _list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


@contextmanager
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Request]]:
    """Record what all boto3 clients that are made meanwhile are asked to send, by botocore's own events."""
    requests: list[Request] = []
    original = boto3.session.Session.client

    def note(params: Mapping[str, Any], model: Any, **_: object) -> None:
        resource = f"arn:aws:s3:::{params['Bucket']}" + (f"/{params['Key']}" if "Key" in params else "")
        context = {name: str(params[given]) for given, name in _CONDITION_KEYS.items() if given in params}
        requests.append(Request(_ACTIONS[model.name], resource, context))

    def client(self: Any, service: str, *arguments: Any, **options: Any) -> Any:
        made = original(self, service, *arguments, **options)
        if service == "s3":
            made.meta.events.register("provide-client-params.s3", note)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(boto3.session.Session, "client", client)
        yield requests
