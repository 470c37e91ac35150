"""Waiting for conditions, and looking whether processes are gone."""

import io
import os
import re
import time
from pathlib import Path

SECONDS = 60


def wait_until(condition, what, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} seconds: {what}"
        time.sleep(0.05)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for_ends(pids):
    wait_until(lambda: not any(is_running(pid) for pid in pids), f"processes {pids} end")


class Watched(io.StringIO):
    """A stream that calls a function once, when a word was written for the `times`-th time."""

    def __init__(self, word, times, function):
        super().__init__()
        self._word, self._times, self._function = word, times, function

    def write(self, text):
        super().write(text)
        if self._function is not None and self.getvalue().count(self._word) >= self._times:
            function, self._function = self._function, None
            function()
        return len(text)

    def pids(self):
        """What ranks printed as `pid N`."""
        return [int(pid) for pid in re.findall(r"<stdout>:pid (\d+)$", self.getvalue(), re.MULTILINE)]


def wait_in_job():
    """For a rank: say who it is, then do nothing for ever."""
    from horovod._core.basics import HorovodBasics

    HorovodBasics().init()
    print(f"pid {os.getpid()}", flush=True)
    time.sleep(3600)
