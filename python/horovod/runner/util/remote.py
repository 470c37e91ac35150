"""Shell commands that run a command on another host, for programs that start processes there themselves.

Programs compare the text, which does not check host keys; nothing here uses it. The launcher has its own way
to hosts, which learns their keys and refuses those that change.
"""

from __future__ import annotations

import shlex

from horovod.runner.common.util import env

SSH_COMMAND_PREFIX = "ssh -o PasswordAuthentication=no -o StrictHostKeyChecking=no"


def get_ssh_command(
    local_command: str,
    host: str,
    port: int | None = None,
    identity_file: str | None = None,
    timeout_s: int | None = None,
) -> str:
    """Shell text that runs `local_command`, as it stands, on the host by ssh."""
    words = [
        SSH_COMMAND_PREFIX,
        shlex.quote(host),
        "" if port is None else f"-p {port}",
        "" if identity_file is None else f"-i {shlex.quote(str(identity_file))}",
        "" if timeout_s is None else f"-o ConnectTimeout={timeout_s}",
        local_command,
    ]
    # What is not given leaves its space: programs compare the text.
    return " ".join(words)


def get_remote_command(
    local_command: str,
    host: str,
    port: int | None = None,
    identity_file: str | None = None,
    timeout_s: int | None = None,
) -> str:
    """The same by ssh, or by the command of Kubeflow's MPI operator in its jobs."""
    if env.is_kubeflow_mpi():
        return f"{env.KUBEFLOW_MPI_EXEC} {shlex.quote(host)} {local_command}"
    return get_ssh_command(local_command, host, port, identity_file, timeout_s)
