"""How a job is to be started, as one value."""

from __future__ import annotations

from typing import Any

from .timeout import Timeout


class BaseSettings:
    """What every launch needs. The names are those of the command line's attributes."""

    def __init__(
        self,
        num_proc: int | None = None,
        verbose: int = 0,
        ssh_port: int | None = None,
        ssh_identity_file: str | None = None,
        extra_mpi_args: str | None = None,
        tcp_flag: bool | None = None,
        binding_args: str | None = None,
        key: bytes | None = None,
        start_timeout: Timeout | None = None,
        output_filename: str | None = None,
        run_func_mode: bool | None = None,
        nics: set[str] | None = None,
        elastic: bool = False,
        prefix_output_with_timestamp: bool = False,
    ) -> None:
        """Keep what was given."""
        self.num_proc = num_proc
        self.verbose = verbose
        self.ssh_port = ssh_port
        self.ssh_identity_file = ssh_identity_file
        self.extra_mpi_args = extra_mpi_args
        self.tcp_flag = tcp_flag
        self.binding_args = binding_args
        self.key = key
        self.start_timeout = start_timeout
        self.output_filename = output_filename
        self.run_func_mode = run_func_mode
        self.nics = nics
        self.elastic = elastic
        self.prefix_output_with_timestamp = prefix_output_with_timestamp


class Settings(BaseSettings):
    """A launch on hosts that are known: 'host1:2,host2:4'."""

    def __init__(self, hosts: str | None = None, **kwargs: Any) -> None:
        """Keep the hosts; the rest goes to BaseSettings."""
        super().__init__(**kwargs)
        self.hosts = hosts
