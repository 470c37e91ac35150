"""Write the seeds of the targets whose inputs are binary: corpus/elastic_fuzz, mirror_fuzz and tls_fuzz.

Run it again when a message changes; the other corpora were written by hand.
"""

from __future__ import annotations

import struct
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"


def text(value: bytes) -> bytes:
    """Return a text as net/packing.h writes it."""
    return struct.pack("<I", len(value)) + value


# What src/elastic/message.cc writes.
ELASTIC = {
    "ready": struct.pack("<BQ", 1, 0) + text(b""),
    "ready_again": struct.pack("<BQ", 1, 3) + text(b"rank 2 (host b): the connection was closed"),
    "ready_long": struct.pack("<BQ", 1, 9) + text(b"x" * 1024),
    "report": struct.pack("<Biq", 2, 1, 42),
    "report_last": struct.pack("<Biq", 2, 3, -1),
    "assign": struct.pack("<BQ6i", 16, 1, 0, 1, 0, 1, 0, 1),
    "assign_many": struct.pack("<BQ6i", 16, 7, 5, 8, 1, 4, 1, 2),
    "assign_bad": struct.pack("<BQ6i", 16, 7, 8, 8, 1, 4, 1, 2),
    "removed": struct.pack("<B", 17) + text(b"host c is gone"),
    "broken": struct.pack("<BQ", 18, 2) + text(b"rank 1 was lost"),
    "news": struct.pack("<BqI", 19, 1_700_000_000_000_000_000, 3),
    "leave": struct.pack("<B", 20),
}

CHANNEL = 7  # of mirror_fuzz.cc


def head(kind: int, body: bytes, index: int = 0, channel: int = CHANNEL) -> bytes:
    """Return a message as src/mirror/message.h describes it."""
    return struct.pack("<IHHII", len(body), kind, 0, channel, index) + body


def record(payload: bytes, flags: int, slot: int = 0, offset: int = 0) -> bytes:
    """Return the body of a record."""
    return struct.pack("<6I", slot, offset, len(payload), flags, 0, len(payload)) + payload


HELLO = struct.pack("<ii64s", 4711, 0, b"hostb")
ALIVE = struct.pack("<IiIBBHQQQQI80s", 5, 0, 1, 1, 2, 0, 1000, 0, 4096, 0, 6, b"layer1")
FAILURE = struct.pack("<ii", 5, 2) + b"rank 2 has failed"
MARKS = struct.pack("<4I", 1, 0, 0, 1)
LOG = struct.pack("<Q", 2)
BYTES, SCRIPT, WHOLE = b"\0", b"\1", b"\0"  # how mirror_fuzz.cc takes the rest, and in which pieces

MESSAGES = {
    "hello": head(1, HELLO, channel=0),
    "record_inline": head(2, record(b"\1\2\3\4", 1)),
    "record_eager": head(2, record(b"e" * 200, 2)),
    "record_arena": head(2, record(b"a" * 5000, 0)),
    "record_none": head(2, struct.pack("<6I", 1, 0, 1 << 20, 16, 0, 0)),
    "marks": head(3, MARKS),
    "log": head(4, LOG),
    "closed": head(5, b""),
    "alive": head(6, ALIVE, channel=0),
    "leaving": head(7, b"", channel=0),
    "left": head(8, b"", channel=0),
    "failure": head(9, FAILURE, channel=0),
    "wake": head(10, b"", index=1, channel=0),
    "stall": head(11, b"", index=0, channel=0),
    "late_set": head(2, record(b"\1\2\3\4", 1), channel=CHANNEL + 1),
}
MIRROR = {name: BYTES + WHOLE + message for name, message in MESSAGES.items()}
MIRROR["life"] = (
    BYTES + WHOLE + b"".join(MESSAGES[name] for name in ("hello", "record_inline", "marks", "alive", "left"))
)
MIRROR["life_in_pieces"] = BYTES + b"\5" + MIRROR["life"][2:]
MIRROR["many_records"] = (
    BYTES + WHOLE + b"".join(head(2, record(bytes([i]) * 4, 1), index=i) for i in range(40))
)
# Kind, usual head, and for those whose length is free the length; then the body.
MIRROR["script"] = (
    SCRIPT
    + WHOLE
    + b"\1\0"
    + HELLO
    + b"\2\0\4"
    + record(b"\1\2\3\4", 1)
    + b"\3\0"
    + MARKS
    + b"\6\0"
    + ALIVE
    + b"\x09\0"
    + bytes([len(FAILURE) - 8])
    + FAILURE
)

# Steps of tls_fuzz.cc: what is done, and with how much.
SEND, PASS, FLIP, DROP, REPEAT, INSERT, RECEIVE = range(7)


def steps(*pairs: tuple[int, int]) -> bytes:
    """Return a script for tls_fuzz.cc."""
    return b"".join(struct.pack("<BH", what, count) for what, count in pairs)


TLS = {
    "plain": steps((SEND, 10), (PASS, 65535), (RECEIVE, 10)),
    "large": steps(
        (SEND, 40000), (PASS, 65535), (RECEIVE, 65535), (SEND, 16384), (PASS, 65535), (RECEIVE, 20000)
    ),
    "pieces": steps(
        (SEND, 5000), (PASS, 3), (RECEIVE, 100), (PASS, 4000), (RECEIVE, 100), (PASS, 65535), (RECEIVE, 65535)
    ),
    "keys": steps(*[step for _ in range(12) for step in ((SEND, 1), (PASS, 100), (RECEIVE, 1))]),
    "flip": steps((SEND, 100), (FLIP, 50), (PASS, 65535), (RECEIVE, 100)),
    "flip_head": steps((SEND, 100), (FLIP, 3), (PASS, 65535), (RECEIVE, 100)),
    "drop": steps((SEND, 100), (SEND, 100), (DROP, 122), (PASS, 65535), (RECEIVE, 200)),
    "repeat": steps((SEND, 100), (REPEAT, 122), (PASS, 65535), (RECEIVE, 200)),
    "insert": steps((SEND, 100), (INSERT, 22), (PASS, 65535), (RECEIVE, 200)),
}


def main() -> None:
    """Write each seed to a file of its name."""
    for target, seeds in {"elastic_fuzz": ELASTIC, "mirror_fuzz": MIRROR, "tls_fuzz": TLS}.items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in seeds.items():
            (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
