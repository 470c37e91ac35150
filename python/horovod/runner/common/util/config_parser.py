"""Options from a configuration, and as variables of the workers. The launcher decides both."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, MutableMapping
from typing import Any

from horovod.runner._options import TUNABLES, parsed_options, tunable_words
from horovod.runner._program import plan

HOROVOD_FUSION_THRESHOLD = "HOROVOD_FUSION_THRESHOLD"
HOROVOD_CYCLE_TIME = "HOROVOD_CYCLE_TIME"
HOROVOD_CACHE_CAPACITY = "HOROVOD_CACHE_CAPACITY"
HOROVOD_HIERARCHICAL_ALLREDUCE = "HOROVOD_HIERARCHICAL_ALLREDUCE"
HOROVOD_HIERARCHICAL_ALLGATHER = "HOROVOD_HIERARCHICAL_ALLGATHER"
HOROVOD_TORUS_ALLREDUCE = "HOROVOD_TORUS_ALLREDUCE"
HOROVOD_AUTOTUNE = "HOROVOD_AUTOTUNE"
HOROVOD_AUTOTUNE_LOG = "HOROVOD_AUTOTUNE_LOG"
HOROVOD_AUTOTUNE_PROFILE = "HOROVOD_AUTOTUNE_PROFILE"
HOROVOD_AUTOTUNE_WARMUP_SAMPLES = "HOROVOD_AUTOTUNE_WARMUP_SAMPLES"
HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE = "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE"
HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES = "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES"
HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE = "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE"
HOROVOD_TIMELINE = "HOROVOD_TIMELINE"
HOROVOD_TIMELINE_MARK_CYCLES = "HOROVOD_TIMELINE_MARK_CYCLES"
HOROVOD_STALL_CHECK_DISABLE = "HOROVOD_STALL_CHECK_DISABLE"
HOROVOD_STALL_CHECK_TIME_SECONDS = "HOROVOD_STALL_CHECK_TIME_SECONDS"
HOROVOD_STALL_SHUTDOWN_TIME_SECONDS = "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"
HOROVOD_MPI_THREADS_DISABLE = "HOROVOD_MPI_THREADS_DISABLE"
HOROVOD_NUM_NCCL_STREAMS = "HOROVOD_NUM_NCCL_STREAMS"
NCCL_IB_DISABLE = "NCCL_IB_DISABLE"
HOROVOD_THREAD_AFFINITY = "HOROVOD_THREAD_AFFINITY"
HOROVOD_GLOO_TIMEOUT_SECONDS = "HOROVOD_GLOO_TIMEOUT_SECONDS"
HOROVOD_LOG_LEVEL = "HOROVOD_LOG_LEVEL"
HOROVOD_LOG_HIDE_TIME = "HOROVOD_LOG_HIDE_TIME"
LOG_LEVELS = ["TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"]

_CONTROLLERS = ("use_gloo", "use_mpi")


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _yaml(config: Mapping[str, Any]) -> str:
    lines = []
    for section, content in config.items():
        if isinstance(content, Mapping):
            given = {key: value for key, value in content.items() if value is not None}
            if given:
                lines.append(f"{section}:")
                lines += [f"  {key}: {_scalar(value)}" for key, value in given.items()]
        elif content is not None:
            lines.append(f"{section}: {_scalar(content)}")
    return "".join(line + "\n" for line in lines)


def set_args_from_config(args: Any, config: Mapping[str, Any], override_args: Collection[str]) -> None:
    """Set the attributes that the configuration names and the command line does not (`override_args`)."""
    with tempfile.NamedTemporaryFile("w", prefix="horovod-config-", suffix=".yaml") as file:
        file.write(_yaml(config))
        file.flush()
        planned = plan(["--num-proc=1", f"--config-file={file.name}", "true"], environment={})
    options = parsed_options(planned)
    for name in TUNABLES:
        if name not in override_args and options[name] is not None:
            setattr(args, name, options[name])
    if not any(getattr(args, name, None) for name in _CONTROLLERS):
        for name in _CONTROLLERS:
            if options[name]:
                setattr(args, name, True)


def validate_config_args(args: Any) -> None:
    """ValueError if the launcher would not take one of the values."""
    set_env_from_args({}, args)


def set_env_from_args(env: MutableMapping[str, str], args: Any) -> MutableMapping[str, str]:
    """Set the variables by which workers learn the options that are given; others stay as they are."""
    words = [*tunable_words(args), *(["--tcp"] if getattr(args, "tcp_flag", None) else [])]
    planned = plan(["--num-proc=1", *words, "true"], environment={})
    env.update(planned["flag_environment"])
    return env
