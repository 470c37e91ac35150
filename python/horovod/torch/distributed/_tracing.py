"""Keeps torch.compile out of the process group, without loading the compiler where torch allows.

torch.compiler.disable does this, but importing what it needs takes longer than a job takes to start.
It comes to an attribute that the tracer looks for, and a mark on the code for the hook of frames.
"""

from __future__ import annotations

import types
from typing import TypeVar

import torch

Class = TypeVar("Class", bound=type)

_REASON = "collectives of the process group run eagerly"


def invisible_to_compile(group: Class) -> Class:
    """Hides the methods of a class, and what they call."""
    methods = {n: m for n, m in vars(group).items() if isinstance(m, types.FunctionType)}
    hook = torch._C._dynamo.eval_frame  # noqa: SLF001
    if not hasattr(hook, "_FrameExecStrategy"):  # before torch 2.6
        for name, method in methods.items():
            setattr(group, name, torch.compiler.disable(method))  # type: ignore[no-untyped-call]
        return group
    skip = hook._FrameAction.SKIP  # noqa: SLF001
    for method in set(methods.values()):
        hook.set_code_exec_strategy(method.__code__, hook._FrameExecStrategy(skip, skip))  # noqa: SLF001
        method._torchdynamo_disable = True  # type: ignore[attr-defined]  # noqa: SLF001
        method._torchdynamo_disable_msg = _REASON  # type: ignore[attr-defined]  # noqa: SLF001
    return group
