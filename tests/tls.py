"""The TLS of a server whose certificate nobody else knows."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


def made_in(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Make a certificate for 127.0.0.1. Return the TLS of a server, and that of a client that trusts it."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run([*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, ssl.create_default_context(cafile=str(certificate))
