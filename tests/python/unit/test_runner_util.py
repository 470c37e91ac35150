"""Helpers of the runner that programs import."""

from __future__ import annotations

import io
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from horovod.runner import _job, _program, gloo_run, launch
from horovod.runner.common.util import (
    address,
    codec,
    env,
    host_hash,
    network,
    safe_shell_exec,
    secret,
    settings,
    tiny_shell_exec,
)
from horovod.runner.common.util.timeout import Timeout, TimeoutException
from horovod.runner.elastic.settings import ElasticSettings
from horovod.runner.mpi_run import settings_words
from horovod.runner.util import network as util_network
from horovod.runner.util.cache import Cache, use_cache
from horovod.runner.util.network import find_port, get_driver_ip, get_local_intfs
from horovod.runner.util.remote import get_remote_command, get_ssh_command
from horovod.runner.util.streams import Pipe
from horovod.runner.util.threads import execute_function_multithreaded, in_thread, on_event

WAIT_SECONDS = 20


def test_the_launcher_is_the_named_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "mine"
    monkeypatch.setenv("HOROVOD_RUN_EXECUTABLE", str(program))
    with pytest.raises(RuntimeError, match=r"HOROVOD_RUN_EXECUTABLE names .*mine"):
        _program.find_program()

    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)

    assert _program.find_program() == str(program)


def test_a_missing_launcher_is_said_with_all_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOROVOD_RUN_EXECUTABLE", raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(RuntimeError, match=r"neither beside .*nor in PATH; HOROVOD_RUN_EXECUTABLE may"):
        _program.find_program()


def test_rank_and_size_come_from_the_launcher_that_set_them() -> None:
    pmi = {"PMI_RANK": "1", "PMI_SIZE": "2"}
    assert env.get_env_rank_and_size({}) == (0, 1)
    assert env.get_env_rank_and_size(pmi) == (1, 2)
    assert env.get_env_rank_and_size({**pmi, "HOROVOD_RANK": "3", "HOROVOD_SIZE": "4"}) == (3, 4)
    with pytest.raises(RuntimeError, match="PMI_RANK is set but PMI_SIZE is not"):
        env.get_env_rank_and_size({"PMI_RANK": "1"})


def test_variables_of_a_login_stay_at_home() -> None:
    assert env.is_exportable("HOME")
    assert not any(
        map(env.is_exportable, ["BASH_FUNC_x%%", "OLDPWD", "CUDA_VISIBLE_DEVICES", "_HOROVOD_SECRET_KEY"])
    )


def test_a_digest_belongs_to_one_key_and_message() -> None:
    key = secret.make_secret_key()
    digest = secret.compute_digest(key, b"text")

    assert len(key) == secret.DIGEST_LENGTH_BYTES == 32
    assert secret.check_digest(key, b"text", digest)
    assert not secret.check_digest(key, b"texT", digest)
    assert not secret.check_digest(secret.make_secret_key(), b"text", digest)


def test_objects_survive_as_text() -> None:
    assert codec.loads_base64(codec.dumps_base64({"a": [1]})) == {"a": [1]}
    assert isinstance(codec.dumps_base64(1, to_ascii=False), bytes)


def test_a_timeout_says_what_was_waited_for() -> None:
    assert Timeout(WAIT_SECONDS, "x").remaining() > 0
    over = Timeout(0, "no {activity} within {timeout} seconds")

    text = r"^no hosts within 0 seconds\. Timeout after 0 seconds\.$"
    with pytest.raises(TimeoutException, match=text) as raised:
        over.check_time_out_for("hosts")
    assert raised.value.message == str(raised.value)
    with pytest.raises(TimeoutException, match=r"^late: x\. Timeout after 0 seconds\.$"):
        Timeout(0, "late: {activity}.").check_time_out_for("x")


def test_processes_of_one_host_have_the_same_hash() -> None:
    command = "from horovod.runner.common.util.host_hash import host_hash; print(host_hash())"
    other = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)

    assert host_hash.host_hash() == other.stdout.strip()
    assert host_hash.host_hash(salt="x") != host_hash.host_hash()


def test_addresses_of_this_machine_are_known() -> None:
    assert "127.0.0.1" in network.get_local_host_addresses()
    assert network.resolve_host_address("localhost") == "127.0.0.1"
    assert network.resolve_host_address("no-such-host.invalid") is None
    assert network.filter_local_addresses(["localhost", "no-such-host.invalid"]) == ["no-such-host.invalid"]
    assert gloo_run.network.get_driver_ip is launch.network.get_driver_ip is get_driver_ip
    assert util_network.get_local_host_addresses is network.get_local_host_addresses
    assert util_network.resolve_host_address is network.resolve_host_address
    assert get_local_intfs() == {"lo"}
    assert get_driver_ip(["lo"]) == "127.0.0.1"
    with pytest.raises(RuntimeError, match="no-such-nic"):
        get_driver_ip(["no-such-nic"])


@pytest.fixture
def _two_interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {
        "lo": [
            SimpleNamespace(family=socket.AF_INET, address="127.0.0.1"),
            SimpleNamespace(family=socket.AF_INET6, address="::1"),
        ],
        "eth0": [SimpleNamespace(family=socket.AF_INET, address="10.0.0.7")],
    }
    monkeypatch.setattr(address, "psutil", SimpleNamespace(net_if_addrs=lambda: entries))


@pytest.mark.usefixtures("_two_interfaces")
@pytest.mark.parametrize(
    ("nics", "port", "expected"),
    [
        (None, None, {"lo": ["127.0.0.1"], "eth0": ["10.0.0.7"]}),
        ({}, 5, {"lo": [("127.0.0.1", 5)], "eth0": [("10.0.0.7", 5)]}),
        (["eth0", "eth9"], None, {"eth0": ["10.0.0.7"]}),
    ],
)
def test_addresses_are_known_by_interface(nics: Any, port: int | None, expected: object) -> None:
    assert address.local_addresses(nics=nics, port=port) == expected


@pytest.mark.usefixtures("_two_interfaces")
def test_interfaces_that_are_not_there_have_no_addresses() -> None:
    with pytest.raises(network.NoValidAddressesFound) as raised:
        address.local_addresses(nics=["eth9"])

    assert str(raised.value) == (
        "No available network interface found matching user provided interfaces ['eth9'], "
        "existing nics: ['lo', 'eth0']"
    )


def test_addresses_by_interface_need_psutil(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "psutil", None)

    with pytest.raises(ImportError, match="pip install psutil"):
        address.local_addresses()


def test_a_port_in_use_is_passed_over() -> None:
    tried = []

    def serve(address: tuple[str, int]) -> str:
        tried.append(address[1])
        if len(tried) == 1:
            raise OSError(98, "in use")
        if len(tried) == 2:
            raise RuntimeError(address)
        return "server"

    assert find_port(serve) == ("server", tried[2])


def test_a_factory_that_takes_no_port_at_all_is_an_error_with_its_own() -> None:
    def serve(address: tuple[str, int]) -> None:
        raise KeyError(address[0])

    with pytest.raises(RuntimeError, match=r"^Unable to find a port to bind to.*KeyError") as raised:
        find_port(serve)

    assert isinstance(raised.value.__cause__, KeyError)


def test_settings_become_a_command_line() -> None:
    given = settings.Settings(
        hosts="a:2", num_proc=2, extra_mpi_args="-x", ssh_port=22, start_timeout=Timeout(9, "")
    )

    words = settings_words(given, {"eth1", "eth0"})

    assert words == [
        "--num-proc=2",
        "--hosts=a:2",
        "--start-timeout=9",
        "--ssh-port=22",
        "--mpi-args=-x",
        "--network-interfaces=eth0,eth1",
    ]
    assert ElasticSettings(None, 1, 2, 3, 4, num_proc=2).elastic


def test_a_command_for_another_host_is_shell_text(monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = "ssh -o PasswordAuthentication=no -o StrictHostKeyChecking=no"
    monkeypatch.delenv("OMPI_MCA_plm_rsh_agent", raising=False)

    assert get_ssh_command("true", "gpu1") == f"{ssh} gpu1    true"
    assert get_remote_command("'a b'", "gpu1", 22, "my key", 10) == (
        f"{ssh} gpu1 -p 22 -i 'my key' -o ConnectTimeout=10 'a b'"
    )
    monkeypatch.setenv("OMPI_MCA_plm_rsh_agent", "/etc/mpi/kubexec.sh")
    assert get_remote_command("true", "gpu1", 22) == "/etc/mpi/kubexec.sh gpu1 true"


def test_a_short_command_gives_output_and_code() -> None:
    assert tiny_shell_exec.execute("echo out; echo err >&2; exit 3") == ("out\nerr\n", 3)


def test_lines_carry_the_index() -> None:
    out, err = io.StringIO(), io.StringIO()

    code = safe_shell_exec.execute("printf 'a\\nb'; echo c >&2; exit 3", stdout=out, stderr=err, index=7)

    assert code == 3
    assert out.getvalue() == "[7]<stdout>:a\n[7]<stdout>:b"
    assert err.getvalue() == "[7]<stderr>:c\n"


def prefixed(text: str, prefix: str | None, index: int | None, with_timestamp: bool = False) -> str:
    source, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    out = io.StringIO()
    with os.fdopen(source, "rb") as connection:
        safe_shell_exec.prefix_connection(connection, out, prefix, index, with_timestamp)
    return out.getvalue()


def test_lines_have_a_prefix_if_all_of_it_is_known() -> None:
    text = "one\rtwo\nthree"

    assert prefixed(text, "x", 1) == "[1]<x>:one\r[1]<x>:two\n[1]<x>:three"
    assert prefixed(text, None, 1) == prefixed(text, "x", None) == prefixed(text, None, None, True) == text


def test_each_line_carries_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1579521601, 1579521700))
    monkeypatch.setattr(safe_shell_exec.time, "localtime", lambda _: time.gmtime(next(clock)))

    assert prefixed("a\nb\n", "x", 1, True) == (
        "Mon Jan 20 12:00:01 2020[1]<x>:a\nMon Jan 20 12:00:02 2020[1]<x>:b\n"
    )


def test_a_command_does_not_outlive_a_caller_that_is_killed() -> None:
    program = (
        "from horovod.runner.common.util import safe_shell_exec; "
        "safe_shell_exec.execute('sleep 1000 & echo $!; wait')"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as caller:
        child = os.pidfd_open(int(caller.stdout.readline()))

        caller.kill()

    assert select.select([child], [], [], WAIT_SECONDS)[0], "the command is still there"
    os.close(child)


def test_what_a_command_leaves_running_stays_when_it_has_ended() -> None:
    out = io.StringIO()
    safe_shell_exec.execute("sleep 1000 >/dev/null 2>&1 & echo $!", stdout=out)
    left = os.pidfd_open(int(out.getvalue()))

    assert not select.select([left], [], [], 0.2)[0]
    signal.pidfd_send_signal(left, signal.SIGKILL)
    os.close(left)


def test_a_death_by_signal_is_a_code() -> None:
    assert safe_shell_exec.execute("kill -9 $$") == 128 + signal.SIGKILL


class Announcing(io.StringIO):
    """Tells what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: queue.Queue[str] = queue.Queue()

    def write(self, text: str) -> int:
        self.lines.put(text)
        return len(text)


def test_an_event_ends_the_whole_group() -> None:
    out, event, codes = Announcing(), threading.Event(), []
    command = "sleep 1000 & echo $!; wait"
    thread = in_thread(
        lambda: codes.append(safe_shell_exec.execute(command, stdout=out, events=[event])),
    )
    child = os.pidfd_open(int(out.lines.get(timeout=WAIT_SECONDS)))

    event.set()
    thread.join(WAIT_SECONDS)

    assert codes == [128 + signal.SIGTERM]
    assert select.select([child], [], [], WAIT_SECONDS)[0], "the child of the shell is still there"
    os.close(child)


def test_a_pipe_hands_over_in_order() -> None:
    pipe = Pipe()
    in_thread(lambda: (pipe.write("hello"), pipe.write("world"), pipe.close()))

    taken = [pipe.read(2, WAIT_SECONDS), pipe.read(-1, WAIT_SECONDS), pipe.read(-1, WAIT_SECONDS)]

    assert taken == ["he", "llo", "world"]
    assert pipe.read(-1, WAIT_SECONDS) is None


def test_a_cache_forgets_with_other_parameters(tmp_path: Path) -> None:
    Cache(str(tmp_path), 60, "same").put("key", [1])

    assert Cache(str(tmp_path), 60, "same").get("key") == [1]
    assert Cache(str(tmp_path), 0, "same").get("key") is None
    assert Cache(str(tmp_path), 60, "other").get("key") is None


def test_a_cache_keeps_what_programs_put_in_it(tmp_path: Path) -> None:
    first = Cache(str(tmp_path), 60, "same")
    unusual = object()
    for key, value in (
        ("set", {"lo", "eth0"}),
        (("tuple", frozenset({"a", "b"})), (1, 2.5, None, b"x")),
        (7, {"a": [True]}),
        ("unusual", unusual),
    ):
        first.put(key, value)
        assert first.get(key) == value

    later = Cache(str(tmp_path), 60, "same")

    assert later.get("set") == {"lo", "eth0"}
    assert later.get(("tuple", frozenset({"b", "a"}))) == (1, 2.5, None, b"x")
    assert later.get(7) == {"a": [True]}
    assert later.get("unusual") is None


@pytest.mark.parametrize("text", ["", "[]", '{"parameters_hash": "same", "values": {"a": [1, 2]}}', "\x00"])
def test_a_file_that_is_no_cache_is_an_empty_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "cache.json").write_text(text)

    assert Cache(str(tmp_path), 60, "same").get("a") is None


def test_a_function_with_a_cache_is_called_once_per_arguments(tmp_path: Path) -> None:
    calls = []

    @use_cache()
    def interfaces(hosts: list[str], port: int = 22) -> set[str] | None:
        calls.append((hosts, port))
        return {*hosts} or None

    cache = Cache(str(tmp_path), 60, "same")
    results = [interfaces(["a", "b"], port=1, fn_cache=cache) for _ in range(2)]
    results += [interfaces(["a"], port=1, fn_cache=cache), interfaces(["a"], port=2, fn_cache=cache)]

    assert results == [{"a", "b"}, {"a", "b"}, {"a"}, {"a"}]
    assert calls == [(["a", "b"], 1), (["a"], 1), (["a"], 2)]
    for _ in range(2):
        interfaces([], fn_cache=cache)  # None
        interfaces(["a"], fn_cache=None)
    assert len(calls) == 7


def test_the_function_of_an_event_is_called_once_it_is_set() -> None:
    event, called = threading.Event(), queue.Queue()
    on_event(event, called.put, args=(7,))

    event.set()

    assert called.get(timeout=WAIT_SECONDS) == 7


def test_a_stop_comes_before_the_event() -> None:
    event, stop, called = threading.Event(), threading.Event(), []
    thread = on_event(event, called.append, args=(7,), stop=stop, check_stop_interval_s=0.01, daemon=False)

    stop.set()
    thread.join(WAIT_SECONDS)

    assert not thread.is_alive()
    assert called == []


def test_threads_refuse_what_they_cannot_use() -> None:
    text = r"^args must be a tuple, not <class 'int'>, for a single argument use \(arg,\)$"
    with pytest.raises(ValueError, match=text):
        in_thread(print, args=1)
    with pytest.raises(ValueError, match=text):
        on_event(threading.Event(), print, args=1)
    with pytest.raises(ValueError, match=r"^Event must not be None$"):
        on_event(None, print)
    with pytest.raises(ValueError, match=r"^Stop event must be given for non-daemon event thread$"):
        on_event(threading.Event(), print, stop=None, daemon=False)


def test_the_package_finds_its_runner_when_it_is_needed() -> None:
    command = (
        "import sys, horovod; assert 'horovod.runner' not in sys.modules; "
        "print(horovod.runner.run is horovod.run, horovod.runner.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)

    assert done.stdout == "True horovod.runner\n"


def test_many_calls_give_results_by_index() -> None:
    assert execute_function_multithreaded(lambda a, b: a * b, [(2, 3), (4, 5)]) == {0: 6, 1: 20}
    assert execute_function_multithreaded(lambda: 1, []) == {}


class InterruptingError(Exception):
    """What the handler of a signal raises."""


@pytest.fixture
def interrupting_signal() -> Iterator[signal.Signals]:
    """A signal that raises in the main thread, as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise InterruptingError

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield signal.SIGUSR1
    signal.signal(signal.SIGUSR1, before)


def interrupt_from_a_thread(number: signal.Signals) -> None:
    """The signal comes to a thread that is not the main one, so it does not end what that one waits for."""
    time.sleep(0.2)  # until the main thread waits
    signal.pthread_kill(threading.get_ident(), number)


def test_a_signal_for_another_thread_ends_the_wait_for_threads(
    interrupting_signal: signal.Signals,
) -> None:
    may_end = threading.Event()

    def work() -> bool:
        interrupt_from_a_thread(interrupting_signal)
        return may_end.wait(20)

    began = time.monotonic()
    with pytest.raises(InterruptingError):
        execute_function_multithreaded(work, [()])
    may_end.set()
    assert time.monotonic() - began < 15


def test_a_signal_for_another_thread_ends_a_job(interrupting_signal: signal.Signals) -> None:
    with subprocess.Popen(["/bin/sleep", "20"]) as process:
        in_thread(interrupt_from_a_thread, (interrupting_signal,))
        with pytest.raises(InterruptingError):
            _job._wait(process)
        assert process.returncode == -signal.SIGINT


def test_a_signal_for_another_thread_ends_a_command(interrupting_signal: signal.Signals) -> None:
    in_thread(interrupt_from_a_thread, (interrupting_signal,))
    began = time.monotonic()
    with pytest.raises(InterruptingError):
        safe_shell_exec.execute("exec sleep 20")
    assert time.monotonic() - began < 15
