"""TLS in front of the S3 server of the tests, with a certificate of an authority that nobody else knows."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.seaweedfs import S3Server


@dataclass(frozen=True)
class TLSFront:
    """An https endpoint, and the file with the authority's certificate that a client has to trust."""

    endpoint: str
    authority: Path


@contextmanager
def tls_front(server: S3Server, folder: Path) -> Iterator[TLSFront]:
    """Pass decrypted connections on to the server while the context lasts."""
    authority, chain = _certificates(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    target = urlsplit(server.endpoint)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        accept = threading.Thread(
            target=_accept, args=(listening, context, (target.hostname, target.port)), daemon=True
        )
        accept.start()
        yield TLSFront(f"https://127.0.0.1:{port}", authority)
        listening.shutdown(socket.SHUT_RDWR)
        accept.join(timeout=5)


def _accept(listening: socket.socket, context: ssl.SSLContext, target: tuple[str, int]) -> None:
    while True:
        try:
            client, _ = listening.accept()
        except OSError:  # closed: the test is over
            return
        threading.Thread(target=_pass_on, args=(client, context, target), daemon=True).start()


def _pass_on(client: socket.socket, context: ssl.SSLContext, target: tuple[str, int]) -> None:
    with (
        suppress(OSError),
        client,
        socket.create_connection(target) as behind,
        context.wrap_socket(client, server_side=True) as front,
    ):
        sides: dict[socket.socket, socket.socket] = {front: behind, behind: front}
        while True:
            ready = [front] if front.pending() else select.select(list(sides), [], [])[0]
            for side in ready:
                data = side.recv(65536)
                if not data:
                    return
                sides[side].sendall(data)


def _certificates(folder: Path) -> tuple[Path, Path]:
    """The authority's certificate, and the server's with its private key."""
    authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    authority = (
        _certificate(authority_name, authority_name, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    addresses = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
    server = (
        _certificate(server_name, authority_name, server_key)
        .add_extension(addresses, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = server_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "authority.pem").write_bytes(authority.public_bytes(pem))
    (folder / "server.pem").write_bytes(private + server.public_bytes(pem))
    return folder / "authority.pem", folder / "server.pem"


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )
