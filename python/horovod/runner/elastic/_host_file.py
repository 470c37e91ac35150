"""The hosts that a HostDiscovery of a program finds, as a file that horovodrun reads again and again."""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from . import driver
from .discovery import HostDiscovery

_logger = logging.getLogger("horovod")

PERIOD_VARIABLE = "HOROVOD_ELASTIC_DISCOVERY_SECONDS"
_LEAST_PERIOD = 0.01


def discovery_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which horovodrun looks for hosts as often as the driver's constant says."""
    period = max(driver.DISCOVER_HOSTS_FREQUENCY_SECS, _LEAST_PERIOD)
    return {PERIOD_VARIABLE: str(period), **environment}


_HostFile = TypeVar("_HostFile", bound="HostFile")


class HostFile:
    """Asks in a thread, and writes what has changed; hosts once known stay when asking fails."""

    def __init__(self, discovery: HostDiscovery) -> None:
        """Nothing is asked yet."""
        self._discovery = discovery
        self._folder = ""
        self._written: dict[str, int] | None = None
        self._failure: str | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._ask_again, name="hvd-host-file", daemon=True)

    @property
    def path(self) -> str:
        """The file."""
        return str(Path(self._folder) / "hosts")

    def __enter__(self: _HostFile) -> _HostFile:  # noqa: PYI019 - Python 3.10 has no Self
        """Ask for the first time; what fails now is the caller's."""
        hosts = self._discovery.find_available_hosts_and_slots()
        self._folder = tempfile.mkdtemp(prefix="horovod-hosts-")
        self._write(hosts)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the thread, remove the file."""
        del kind, error, trace
        self._is_over.set()
        self._thread.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ask_again(self) -> None:
        while not self._is_over.wait(max(driver.DISCOVER_HOSTS_FREQUENCY_SECS, _LEAST_PERIOD)):
            try:
                self._write(self._discovery.find_available_hosts_and_slots())
                self._failure = None
            except Exception as error:  # noqa: BLE001 - the program's own code
                if str(error) != self._failure:
                    _logger.warning("elastic job: the hosts stay as they are known: %s", error)
                self._failure = str(error)

    def _write(self, hosts: Mapping[str, int]) -> None:
        if hosts == self._written:
            return
        new = Path(self._folder) / "hosts.new"
        new.write_text("".join(f"{host}:{slots}\n" for host, slots in hosts.items()), encoding="utf-8")
        new.rename(self.path)
        self._written = dict(hosts)
