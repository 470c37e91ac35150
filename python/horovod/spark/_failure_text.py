"""Failures of ranks as text inside the exception of a Spark task, where the driver finds them again.

Spark says of a failed task no more than the text of its exception, in the middle of others.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from dataclasses import asdict, replace

from horovod._cluster.failures import Failure

from ._barrier import REFUSAL

_MARK = "horovod-failure"
_PATTERN = re.compile(rf"<{_MARK} ([A-Za-z0-9+/=]+)>")
_REFUSAL = re.compile(re.escape(REFUSAL) + r"([^\n]+)")
_MOST_CHARACTERS = 16 * 1024


def to_json(failure: Failure) -> str:
    """A failure as data: exceptions themselves stay in their process."""
    text = failure.traceback
    if len(text) > _MOST_CHARACTERS:
        half = _MOST_CHARACTERS // 2
        text = f"{text[:half]}\n[...]\n{text[-half:]}"
    plain = asdict(replace(failure, pickled=None, traceback=text, summary=failure.summary[:_MOST_CHARACTERS]))
    return json.dumps(plain)


def from_json(text: str) -> Failure:
    """The reverse of `to_json`; ValueError for anything else."""
    try:
        fields = json.loads(text)
        return Failure(
            rank=int(fields["rank"]),
            host=str(fields["host"]),
            when=float(fields["when"]),
            summary=str(fields["summary"]),
            traceback=str(fields["traceback"]),
            pickled=None,
        )
    except (KeyError, TypeError) as error:
        message = f"expected a failure as JSON, got {text[:200]!r}"
        raise ValueError(message) from error


def to_text(failure: Failure, *, is_known: bool) -> str:
    """For the exception of a task: readable in Spark's logs, and whole if the driver does not know it yet."""
    text = f"rank {failure.rank} on host {failure.host} failed: {failure.summary}"
    if is_known:
        return text
    packed = base64.b64encode(zlib.compress(to_json(failure).encode())).decode()
    return f"{text}\n<{_MARK} {packed}>"


def find_failures(text: str) -> list[Failure]:
    """All failures in what Spark says, each rank once."""
    found: dict[int, Failure] = {}
    for packed in _PATTERN.findall(text):
        try:
            failure = from_json(zlib.decompress(base64.b64decode(packed)).decode())
        except (ValueError, binascii.Error, zlib.error):
            continue  # cut off
        found.setdefault(failure.rank, failure)
    return list(found.values())


def find_refusal(text: str) -> str | None:
    """What a task says that cannot take part."""
    found = _REFUSAL.search(text)
    return None if found is None else found[1].strip()
