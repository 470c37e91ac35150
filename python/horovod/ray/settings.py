"""What RayExecutor is told about the start of a job."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from horovod.runner.common.util.secret import make_secret_key
from horovod.runner.common.util.timeout import Timeout

_TOO_LATE = (
    "Timed out waiting for {activity}. Please check connectivity between servers. "
    "You may need to increase the timeout_s parameter if you have too many servers."
)


@dataclass
class MiniSettings:
    """Settings of a job on Ray. `timeout_s` limits hvd.init(); the ssh values and `key` have no effect."""

    nics: set[str] | None = None
    verbose: int = 1
    key: bytes = field(default_factory=make_secret_key, repr=False)
    ssh_port: int | None = None
    ssh_identity_file: str | None = None
    timeout_s: int = 300
    placement_group_timeout_s: int = 100
    elastic: bool = False

    @property
    def start_timeout(self) -> Timeout:
        """A time-out that begins now."""
        return Timeout(self.timeout_s, _TOO_LATE)


def write_identity(ssh_identity_file: str | None, ssh_str: str | None) -> None:
    """Store a private key, for this user alone, unless the file exists."""
    if not ssh_str:
        return
    if not ssh_identity_file:
        message = "ssh_str needs ssh_identity_file, the file to write it to"
        raise ValueError(message)
    path = Path(ssh_identity_file).expanduser()
    if path.exists():
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(ssh_str)
