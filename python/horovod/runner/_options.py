"""Options as Python programs hold them (attributes of an object), as words of a command line and back."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

# Attribute, and the option that takes its value.
_VALUES = {
    "num_proc": "--num-proc",
    "hosts": "--hosts",
    "hostfile": "--hostfile",
    "config_file": "--config-file",
    "output_filename": "--output-filename",
    "start_timeout": "--start-timeout",
    "ssh_port": "--ssh-port",
    "ssh_identity_file": "--ssh-identity-file",
    "mpi_args": "--mpi-args",
    "binding_args": "--binding-args",
    "min_num_proc": "--min-num-proc",
    "max_num_proc": "--max-num-proc",
    "slots": "--slots-per-host",
    "elastic_timeout": "--elastic-timeout",
    "reset_limit": "--reset-limit",
    "host_discovery_script": "--host-discovery-script",
    "join": "--join",
    "key_file": "--key-file",
}

_SWITCHES = {
    "verbose": "--verbose",
    "disable_cache": "--disable-cache",
    "prefix_output_with_timestamp": "--prefix-output-with-timestamp",
    "use_gloo": "--gloo",
    "use_mpi": "--mpi",
    "use_jsrun": "--jsrun",
    "tcp_flag": "--tcp",
    "whole_hosts": "--whole-hosts",
}

_TUNABLE_VALUES = {
    name: "--" + name.replace("_", "-")
    for name in (
        "fusion_threshold_mb",
        "cycle_time_ms",
        "cache_capacity",
        "autotune_log_file",
        "autotune_profile",
        "autotune_warmup_samples",
        "autotune_steps_per_sample",
        "autotune_bayes_opt_max_samples",
        "autotune_gaussian_process_noise",
        "timeline_filename",
        "stall_check_warning_time_seconds",
        "stall_check_shutdown_time_seconds",
        "num_nccl_streams",
        "thread_affinity",
        "gloo_timeout_seconds",
        "log_level",
    )
}

# Attribute, and the options for true and false; None is neither.
_TUNABLE_SWITCHES = {
    "hierarchical_allreduce": ("--hierarchical-allreduce", "--no-hierarchical-allreduce"),
    "hierarchical_allgather": ("--hierarchical-allgather", "--no-hierarchical-allgather"),
    "torus_allreduce": ("--torus-allreduce", "--no-torus-allreduce"),
    "autotune": ("--autotune", "--no-autotune"),
    "timeline_mark_cycles": ("--timeline-mark-cycles", "--no-timeline-mark-cycles"),
    "no_stall_check": ("--no-stall-check", "--stall-check"),
    "mpi_threads_disable": ("--mpi-threads-disable", "--no-mpi-threads-disable"),
    "log_with_timestamp": ("--log-with-timestamp", "--log-without-timestamp"),
}

# What the launcher calls the opposite of log_with_timestamp.
_HIDE_TIMESTAMP = "log_hide_timestamp"

TUNABLES = (*_TUNABLE_VALUES, *_TUNABLE_SWITCHES)


def _opposite(value: bool | None) -> bool | None:
    return None if value is None else not value


def _values(args: Any, options: dict[str, str]) -> list[str]:
    # In one word with '=': a value may begin with a dash.
    given = {name: getattr(args, name, None) for name in options}
    return [f"{options[name]}={value}" for name, value in given.items() if value is not None]


def tunable_words(args: Any, only: Iterable[str] = TUNABLES) -> list[str]:
    """The options that set variables of the workers."""
    wanted = set(only)
    words = _values(args, {name: flag for name, flag in _TUNABLE_VALUES.items() if name in wanted})
    for name, (on, off) in _TUNABLE_SWITCHES.items():
        value = getattr(args, name, None)
        if name in wanted and value is not None:
            words.append(on if value else off)
    return words


def parsed_options(planned: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a plan under the names of attributes; warns of words that are obsolete."""
    options = dict(planned["options"])
    hide = options.pop(_HIDE_TIMESTAMP)
    options["log_with_timestamp"] = _opposite(hide)
    options["nics"] = None if options["nics"] is None else set(options["nics"])
    for text in planned["warnings"]:
        # Those about a configuration file are told by the launcher when it starts the job.
        if text.startswith("--"):
            # Of the caller of the function that reads a command line.
            warnings.warn(text, DeprecationWarning, stacklevel=3)
    return options


def option_words(args: Any) -> list[str]:
    """The command line that says what the attributes of `args` say; the command is not part of it."""
    # Where a script finds the hosts, others do not count.
    unused = ("hosts", "hostfile") if getattr(args, "host_discovery_script", None) else ()
    words = _values(args, {name: flag for name, flag in _VALUES.items() if name not in unused})
    words += [flag for name, flag in _SWITCHES.items() if getattr(args, name, None)]
    nics = getattr(args, "nics", None)
    if nics:
        words.append("--network-interfaces=" + ",".join(sorted(nics)))
    cooldown = getattr(args, "cooldown_range", None)
    if cooldown is not None:
        words += ["--blacklist-cooldown-range", *(str(seconds) for seconds in cooldown)]
    return words + tunable_words(args)
