"""Jobs whose processes the caller starts: what it is given for each slot, and how the job ends."""

from __future__ import annotations

import io
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from horovod.runner import gloo_run
from horovod.runner.common.util import safe_shell_exec
from horovod.runner.common.util.hosts import SlotInfo
from horovod.runner.common.util.settings import Settings
from horovod.runner.elastic.settings import ElasticSettings

OUTPUT: dict[int, str] = {}


def run_here(text: str, slot: SlotInfo, events: list[threading.Event]) -> tuple[int, float]:
    out = io.StringIO()
    code = safe_shell_exec.execute(text, stdout=out, events=events)
    OUTPUT[slot.rank] = out.getvalue()
    return code, time.time()


def launch(script: str, hosts: str = "localhost:2", **kwargs: object) -> None:
    settings = Settings(num_proc=2, hosts=hosts, **kwargs)
    env = {"WORD": "it's", "OLDPWD": "/", "PATH": "/usr/bin:/bin"}
    gloo_run.launch_gloo(["sh", "-c", script], run_here, settings, {"lo"}, env, "127.0.0.1")


def test_a_slot_is_told_its_place() -> None:
    slot = SlotInfo("gpu1", rank=3, local_rank=1, cross_rank=2, size=8, local_size=4, cross_size=5)

    assert gloo_run.create_slot_env_vars(slot) == {
        "HOROVOD_HOSTNAME": "gpu1",
        "HOROVOD_RANK": "3",
        "HOROVOD_SIZE": "8",
        "HOROVOD_LOCAL_RANK": "1",
        "HOROVOD_LOCAL_SIZE": "4",
        "HOROVOD_CROSS_RANK": "2",
        "HOROVOD_CROSS_SIZE": "5",
    }


def test_the_text_of_a_command_has_its_variables_in_order() -> None:
    texts = {}

    def record(text: str, slot: SlotInfo, events: list[threading.Event]) -> tuple[int, float]:
        assert len(events) == 1
        texts[slot.rank] = text
        return 0, 0.0

    settings = Settings(num_proc=2, hosts="a:1,b:2")
    env = {"OLDPWD": "/", "B": "x y", "A": "1"}
    gloo_run.launch_gloo(["python", "my train.py"], record, settings, {"eth1", "eth0"}, env, "10.0.0.1")

    assert sorted(texts) == [0, 1]
    assert re.fullmatch(
        "env HOROVOD_HOSTNAME=b HOROVOD_RANK=1 HOROVOD_SIZE=2 HOROVOD_LOCAL_RANK=0 HOROVOD_LOCAL_SIZE=1 "
        "HOROVOD_CROSS_RANK=1 HOROVOD_CROSS_SIZE=2 B='x y' A=1 PYTHONUNBUFFERED=1 "
        r"HOROVOD_GLOO_RENDEZVOUS_ADDR=10\.0\.0\.1 HOROVOD_GLOO_RENDEZVOUS_PORT=\d+ HOROVOD_CONTROLLER=gloo "
        "HOROVOD_CPU_OPERATIONS=gloo HOROVOD_GLOO_IFACE=eth0 NCCL_SOCKET_IFNAME=eth0,eth1 "
        "python 'my train.py'",
        texts[1],
    )


def test_the_texts_can_be_run(tmp_path: Path) -> None:
    launch(
        'echo "$WORD $HOROVOD_RANK $HOROVOD_SIZE $HOROVOD_GLOO_IFACE"', output_filename=str(tmp_path / "a/b")
    )

    assert OUTPUT == {0: "it's 0 2 lo\n", 1: "it's 1 2 lo\n"}
    assert (tmp_path / "a/b").is_dir()


def test_the_first_failure_ends_the_others_and_is_named() -> None:
    before = signal.getsignal(signal.SIGTERM)

    with pytest.raises(RuntimeError, match="exited with non-zero status") as raised:
        launch("if [ $HOROVOD_RANK = 1 ]; then exit 3; fi; exec sleep 1000")

    assert "\nProcess name: 1\nExit code: 3\n" in str(raised.value)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_ends_all() -> None:
    script = f"if [ $HOROVOD_RANK = 0 ]; then kill -TERM {os.getpid()}; fi; exec sleep 1000"

    with pytest.raises(RuntimeError, match="Exit code: 143"):
        launch(script)


def test_elastic_jobs_start_with_hosts_that_can_be_compared() -> None:
    elastic = ElasticSettings(None, 1, 2, 3, 4, num_proc=2)

    assert gloo_run._get_min_start_hosts(elastic) == 2
    elastic.nics = {"lo"}
    assert gloo_run._get_min_start_hosts(elastic) == 1
    assert gloo_run._get_min_start_hosts(Settings()) == 1


def test_elastic_jobs_are_the_launchers() -> None:
    settings = ElasticSettings(None, 1, 2, 3, 4, num_proc=1)

    with pytest.raises(ValueError, match="must be a HostDiscovery, got NoneType"):
        gloo_run.gloo_run_elastic(settings, {"PATH": "/usr/bin:/bin"}, ["true"])
