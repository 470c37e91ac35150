"""`from ray.train.horovod import HorovodTrainer` on Ray Train V2: our class in place of Ray's refusal.

Ray Train V2 still has the name, but its class only raises DeprecationWarning. Ray imports horovod.ray
in the middle of that import, so we are asked in time. Rules: only the one module with the refusal, only
while Ray ships it and Train V2 is on, one line in the log, and HOROVOD_RAY_TRAIN_HOOK=0 turns it off.
Without `import horovod` by somebody nothing happens. The documented import is that of horovod.ray.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

STUB = "ray.train.v2.horovod.horovod_trainer"
SWITCH = "HOROVOD_RAY_TRAIN_HOOK"

_PACKAGE = "ray.train.horovod"
_NAME = "HorovodTrainer"
_REFUSAL = "raise DeprecationWarning"
_logger = logging.getLogger("horovod.ray")


def is_wanted() -> bool:
    """Whether the switch is on, as it is if nobody touches it."""
    return os.environ.get(SWITCH, "1").strip().lower() not in {"0", "false", "off", "no"}


def _is_v2_enabled() -> bool:
    constants = importlib.import_module("ray.train.v2._internal.constants")
    return bool(constants.is_v2_enabled())


def _is_refusal(spec: ModuleSpec | None) -> bool:
    """Whether Ray ships the module and all that its class does is to refuse."""
    if spec is None or not isinstance(spec.loader, InspectLoader):
        return False
    return _REFUSAL in (spec.loader.get_source(STUB) or "")


def _our_trainer() -> type:
    trainer: type = importlib.import_module("horovod.ray.trainer").HorovodTrainer
    _logger.info("%s.%s is horovod.ray.%s; %s=0 leaves Ray's own", _PACKAGE, _NAME, _NAME, SWITCH)
    return trainer


class _Loader(Loader):
    def exec_module(self, module: ModuleType) -> None:
        setattr(module, _NAME, _our_trainer())


class _Finder(MetaPathFinder):
    """Answers for one module name; Ray's own file must be there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del target
        if fullname != STUB or not is_wanted() or not _is_v2_enabled():
            return None
        theirs = PathFinder.find_spec(fullname, path)
        if theirs is None or not _is_refusal(theirs):
            return None
        return ModuleSpec(fullname, _Loader(), origin=theirs.origin)


def _replace_loaded() -> None:
    """The refusal was imported before us."""
    stub = sys.modules.get(STUB)
    theirs = getattr(stub, _NAME, None)
    if stub is None or theirs is None or theirs.__module__ != STUB:
        return
    if not is_wanted() or not _is_v2_enabled() or not _is_refusal(stub.__spec__):
        return
    ours = _our_trainer()
    for name in (STUB, _PACKAGE):
        if getattr(sys.modules.get(name), _NAME, None) is theirs:
            setattr(sys.modules[name], _NAME, ours)


def install() -> None:
    """Answer for the module from now on; once is enough."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    _replace_loaded()
