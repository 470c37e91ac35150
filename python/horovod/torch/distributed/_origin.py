"""The stream that an operation on a GPU was submitted from, as torch's own backends treat it.

What follows an operation (copies into the tensors that were given) runs in that stream, where its
temporary memory belongs, whichever thread finds the operation complete. Whoever waits lets the stream
that is current then wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from horovod.torch._devices import HOST

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class Origin:
    """A stream, and the place in it where an operation's results are."""

    def __init__(self, device: int) -> None:
        self.device = torch.device("cuda", device)
        self._stream = torch.cuda.current_stream(device)
        self._event: torch.cuda.Event | None = None

    @property
    def handle(self) -> int:
        """The stream as the core is told."""
        handle: int = self._stream.cuda_stream
        return handle

    def entered(self) -> AbstractContextManager[object]:
        """Makes the stream current."""
        return torch.cuda.stream(self._stream)

    def mark(self) -> None:
        """The results are there after what the stream has got so far."""
        self._event = self._stream.record_event()

    def follow_current(self) -> None:
        """Work that this stream gets from now on comes after what the current one has got."""
        self._stream.wait_event(torch.cuda.current_stream(self.device).record_event())

    def hold_back_current(self) -> None:
        """Work that the current stream gets from now on finds the results."""
        if self._event is not None:
            torch.cuda.current_stream(self.device).wait_event(self._event)


def origin_on(device: int) -> Origin | None:
    """None for host memory, where there is nothing to order."""
    return None if device == HOST else Origin(device)


def new_future(outputs: list[torch.Tensor]) -> torch.futures.Future[list[torch.Tensor]]:
    """A future whose callbacks and waiters find results on GPUs in their streams."""
    devices = {tensor.device for tensor in outputs if tensor.is_cuda}
    return torch.futures.Future(devices=list(devices)) if devices else torch.futures.Future()
