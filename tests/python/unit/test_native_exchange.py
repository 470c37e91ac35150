"""A store written in Python, as init asks it on behalf of ranks on several hosts."""

from __future__ import annotations

import pytest
from packages import need

from horovod._core import _native, errors
from horovod._core.exchange import find_exchange, register_finder
from horovod.torch._launcher_store import TorchExchange, started_by_torchrun

TIMED_OUT = 6
FIRST_OF_TWO_HOSTS = (0, 2, 0, 1, 0, 2)


class MemoryExchange:
    """A store of one process: what other ranks would set never comes."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def set(self, key: str, value: bytes, /) -> None:
        self.values[key] = value

    def get(self, key: str, seconds: float, /) -> bytes | None:
        assert seconds >= 0
        return self.values.get(key)


def start(exchange: object) -> None:
    _native.init(FIRST_OF_TWO_HOSTS, "exchange-test", (), False, 0, exchange)  # type: ignore[arg-type]


def test_rank_0_leaves_no_key_and_names_the_rank_that_does_not_come(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOROVOD_GLOO_TIMEOUT_SECONDS", "1")
    monkeypatch.setenv("HOROVOD_GLOO_IFACE", "lo")
    exchange = MemoryExchange()

    with pytest.raises(errors.HorovodInternalError, match="timed out waiting for rank 1 of 2") as caught:
        start(exchange)

    assert caught.value.status == TIMED_OUT
    # What is left of the key is sealed for ranks with public keys: tests/unit/bootstrap looks inside.
    epochs = {name.split("/")[2] for name in exchange.values}
    assert len(epochs) == 1
    prefix = f"exchange-test/horovod/{epochs.pop()}"
    assert set(exchange.values) == {f"{prefix}/key/sealed", f"{prefix}/member/0", f"{prefix}/roster"}
    assert all(len(value) != 32 for value in exchange.values.values())


def test_what_the_store_raises_is_what_init_raises():
    class Broken(MemoryExchange):
        def set(self, key: str, value: bytes, /) -> None:
            message = f"no room for {key} of {len(value)} bytes"
            raise OSError(message)

    with pytest.raises(OSError, match="no room for exchange-test/horovod/"):
        start(Broken())


def test_a_value_that_is_no_bytes_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOROVOD_GLOO_IFACE", "lo")

    class Wrong(MemoryExchange):
        def get(self, key: str, seconds: float, /) -> bytes | None:
            return "text"  # type: ignore[return-value]

    with pytest.raises(TypeError, match="bytes"):
        start(Wrong())


def test_init_says_how_many_arguments_it_takes():
    with pytest.raises(TypeError, match="expected 5 to 6 arguments, got 4"):
        _native.init(None, None, (), False)  # type: ignore[call-arg]


def test_the_first_store_that_somebody_finds_is_taken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("horovod._core.exchange._finders", [])
    store = MemoryExchange()
    register_finder(lambda: None)
    register_finder(lambda: store)

    assert find_exchange() is store


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, False),
        ({"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1"}, False),
        ({"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}, False),
        ({"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, True),
        (
            {
                "TORCHELASTIC_RUN_ID": "x",
                "WORLD_SIZE": "4",
                "LOCAL_WORLD_SIZE": "2",
                "HOROVOD_STORE_ADDRESSES": "10.0.0.1:5",
            },
            False,
        ),
    ],
)
def test_torchruns_store_is_used_for_several_hosts_only(variables: dict[str, str], expected: bool):
    assert started_by_torchrun(variables) is expected


def test_a_store_of_torch_gives_values_and_knows_when_the_time_is_over():
    distributed = need("torch.distributed", "python")
    exchange = TorchExchange(distributed.HashStore())

    exchange.set("a", b"\0value")

    assert exchange.get("a", 1.0) == b"\0value"
    assert exchange.get("b", 0.01) is None
