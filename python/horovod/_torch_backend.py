"""Tells torch about the backend "horovod" and the ways its processes find each other.

torch calls register() through the entry point `torch.backends` on every `import torch`, so that
`init_process_group("horovod")` works in programs that import torch alone; `import horovod.torch` calls
it as well. Hence it is light: what is registered loads the rest when a group is made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from torch._C._distributed_c10d import Store

BACKEND_NAME = "horovod"
_SCHEME = "horovod"


def is_available() -> bool:
    """Return whether this torch was built with torch.distributed."""
    return bool(importlib.import_module("torch.distributed").is_available())


def register() -> None:
    """Make `init_process_group("horovod")` known to torch; does nothing the second time."""
    dist = importlib.import_module("torch.distributed")
    if not dist.is_available() or BACKEND_NAME.upper() in dist.Backend._plugins:  # noqa: SLF001
        return
    dist.Backend.register_backend(BACKEND_NAME, _create_group, extended_api=True, devices=["cpu", "cuda"])
    _register_rendezvous()


def _create_group(options: Any, backend_options: object = None) -> Any:
    """Called by torch with its private options object, whose type differs between releases."""
    from horovod.torch.distributed._membership import create_group  # noqa: PLC0415

    return create_group(options, backend_options)


def _register_rendezvous() -> None:
    """`horovod://`, and `env://` in processes that only know the variables of horovodrun."""
    # torch.distributed has a function of the same name.
    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    handlers = getattr(rendezvous, "_rendezvous_handlers", {})
    if _SCHEME not in handlers:
        rendezvous.register_rendezvous_handler(_SCHEME, _meet_through_the_job)
    original = handlers.get("env")
    if original is None:
        return

    def env_or_job(url: str, **arguments: Any) -> Iterator[tuple[Store, int, int]]:
        from horovod.torch.distributed._rendezvous import only_horovodrun_speaks  # noqa: PLC0415

        handler = _meet_through_the_job if only_horovodrun_speaks(url) else original
        return handler(url, **arguments)

    handlers["env"] = env_or_job


def _meet_through_the_job(
    url: str, timeout: timedelta | None = None, **_: object
) -> Iterator[tuple[Store, int, int]]:
    from horovod.torch.distributed._rendezvous import meet_through_the_job  # noqa: PLC0415

    return meet_through_the_job(url, timeout)
