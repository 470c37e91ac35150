"""Keys. The launcher makes the key of a job itself and gives it to the workers by a descriptor."""

from __future__ import annotations

import hashlib
import hmac
import secrets

DIGEST_LENGTH_BYTES = 32
HOROVOD_SECRET_KEY = "_HOROVOD_SECRET_KEY"  # noqa: S105 - the name of a variable


def make_secret_key() -> bytes:
    """32 random bytes."""
    return secrets.token_bytes(DIGEST_LENGTH_BYTES)


def compute_digest(key: bytes, message: bytes) -> bytes:
    """HMAC-SHA256 of the message."""
    return hmac.new(key, message, hashlib.sha256).digest()


def check_digest(key: bytes, message: bytes, digest: bytes) -> bool:
    """Whether the digest belongs to the message; takes the same time for every wrong one."""
    return hmac.compare_digest(compute_digest(key, message), digest)
