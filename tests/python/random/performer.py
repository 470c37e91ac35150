"""One rank of a program: performs its actions through horovod.torch and checks every result."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any

import torch
from buffers import Buffer, describe_difference, private_buffer, same_bits, shared_buffer
from calls import call_objects, call_tensors, tensors_of_result
from contents import dtype_of, other_dtype, tensor_of
from faults import Fault, actions_with, corrupt
from program import OF_ALL_RANKS, TENSOR_KINDS, Action, Do, Form, Kind, Operation, Program
from reference import expected_object, expected_tensors

import horovod.torch as hvd
from horovod._core import _native
from horovod.common.exceptions import HorovodInternalError

_DISAGREEMENT = "Mismatched data types"


class WrongResultError(Exception):
    """An operation has completed with something else than the reference says."""


@dataclasses.dataclass
class _Pending:
    action: Action
    buffers: list[Buffer]
    handle: int = 0
    """Of an asynchronous form."""
    aside: Future[Any] | None = None
    """The result that another thread waits for."""
    result: Any = None


class Performer:
    """Runs the actions of one rank. Horovod is not initialized before, nor afterwards."""

    def __init__(
        self,
        program: Program,
        rank: int,
        *,
        note_action: Callable[[int], None],
        stop: Callable[[float, float], None],
        fault: Fault | None = None,
    ) -> None:
        """`note_action` is told what comes next; `stop` has this process stopped in and for so many ms."""
        self._program = program
        self._rank = rank
        self._note_action = note_action
        self._stop = stop
        self._fault = fault
        self._sets: dict[int, hvd.ProcessSet] = {}
        self._inputs: dict[int, list[torch.Tensor]] = {}
        self._pending: dict[int, _Pending] = {}
        self._complete: list[tuple[int, _Pending]] = []
        self.last_joined: list[int] = []
        """What each join returned."""
        self.statistics: Counter[str] = Counter()
        """Of the core."""

    def run(self) -> None:
        """Do everything; raises what goes wrong."""
        # Inputs are made and results checked outside, so that nothing keeps the ranks from racing.
        for number, operation in enumerate(self._program.operations):
            if operation.kind in TENSOR_KINDS and self._rank in self._program.members(operation):
                self._inputs[number] = self._make_inputs(operation)
        self._init()
        for place, action in enumerate(actions_with(self._fault, self._program, self._rank)):
            self._note_action(place)
            self._perform(action)
        self._note_action(len(self._program.actions[self._rank]))
        self._shutdown()
        for number, pending in self._complete:
            self._check(number, pending)

    # ---- actions

    def _perform(self, action: Action) -> None:
        if action.do is Do.SUBMIT:
            operation = self._program.operations[action.operation]
            if operation.kind in OF_ALL_RANKS:
                self._change_job(operation)
            elif operation.kind is Kind.BARRIER:
                hvd.barrier(process_set=self._sets[operation.process_set])
            elif operation.kind in TENSOR_KINDS:
                self._submit(action)
            else:
                self._run_objects(action)
        elif action.do is Do.WAIT:
            self._wait(action.operation)
        elif action.do is Do.WAIT_ASIDE:
            self._wait_aside(self._pending[action.operation])
        elif action.do is Do.POLL:
            self._poll(action.operation)
        elif action.do is Do.POLL_UNTIL_DONE:
            while not self._poll(action.operation):
                pass
            self._wait(action.operation)
        else:
            self._pause(action)

    def _pause(self, action: Action) -> None:
        if action.do is Do.STOP:
            self._stop(action.after_ms, action.for_ms)
        elif action.do is Do.SLEEP:
            time.sleep(action.for_ms / 1000)
        else:
            end = time.monotonic() + action.for_ms / 1000
            while time.monotonic() < end:
                pass

    def _poll(self, number: int) -> bool:
        pending = self._pending[number]
        return hvd.poll(pending.handle) if pending.aside is None else pending.aside.done()

    def _submit(self, action: Action) -> None:
        operation = self._program.operations[action.operation]
        inputs = self._inputs.pop(action.operation)
        pad = 1 + action.operation % 4
        buffers = [shared_buffer(v) if action.shared else private_buffer(v, pad) for v in inputs]
        pending = _Pending(action, buffers)
        place = self._program.sets[operation.process_set].ranks.index(self._rank)
        tensors = [buffer.tensor for buffer in buffers]

        def call() -> Any:
            return call_tensors(operation, action.form, tensors, place, self._sets[operation.process_set])

        if action.form.blocks():
            self._finish(action.operation, pending, call)
        else:
            pending.handle = call()
            self._pending[action.operation] = pending

    def _wait(self, number: int) -> None:
        pending = self._pending.pop(number)
        if pending.aside is None:
            self._finish(number, pending, lambda: hvd.synchronize(pending.handle))
        else:
            self._finish(number, pending, pending.aside.result)

    def _wait_aside(self, pending: _Pending) -> None:
        pending.aside = future = Future[Any]()

        def wait() -> None:
            try:
                future.set_result(hvd.synchronize(pending.handle))
            except BaseException as error:  # noqa: BLE001 - raised where the result is wanted
                future.set_exception(error)

        # One thread for each: threads that waited for each other could keep the ranks from going on.
        Thread(target=wait, daemon=True).start()

    def _finish(self, number: int, pending: _Pending, call: Callable[[], Any]) -> None:
        operation = self._program.operations[number]
        if operation.disagrees is not None:
            self._expect_disagreement(number, call)
            return
        pending.result = tensors_of_result(operation, call())
        for tensor in pending.result:
            corrupt(self._fault, operation.kind, self._rank, tensor)
        if pending.action.shared:
            # Shared memory is gone at the end.
            pending.result = [tensor.clone() for tensor in pending.result]
            pending.buffers = []
        self._complete.append((number, pending))

    def _expect_disagreement(self, number: int, call: Callable[[], Any]) -> None:
        try:
            call()
        except HorovodInternalError as error:
            if _DISAGREEMENT not in str(error):
                raise
        else:
            operation = self._operation(number)
            message = f"{operation.kind.value}: operation {number}: completed, although ranks disagree"
            raise WrongResultError(message)

    def _run_objects(self, action: Action) -> None:
        operation = self._program.operations[action.operation]
        result = call_objects(operation, self._rank, self._sets[operation.process_set])
        if result != expected_object(self._program, operation):
            message = f"{operation.kind.value}: operation {action.operation}: the objects are others"
            raise WrongResultError(message)

    # ---- the job

    def _init(self) -> None:
        self._sets = {
            place: hvd.ProcessSet(entry.ranks)
            for place, entry in enumerate(self._program.sets)
            if entry.static
        }
        self._sets.pop(0)
        hvd.init(process_sets=list(self._sets.values()))
        self._sets[0] = hvd.global_process_set

    def _shutdown(self) -> None:
        self.statistics.update(_native.stats())
        hvd.shutdown()

    def _change_job(self, operation: Operation) -> None:
        if operation.kind is Kind.JOIN:
            self.last_joined.append(hvd.join())
        elif operation.kind is Kind.ADD_SET:
            ranks = self._program.sets[operation.process_set].ranks
            self._sets[operation.process_set] = hvd.add_process_set(ranks)
        elif operation.kind is Kind.REMOVE_SET:
            if not hvd.remove_process_set(self._sets.pop(operation.process_set)):
                message = f"{operation.kind.value}: set {operation.process_set} is not known"
                raise WrongResultError(message)
        else:
            self._shutdown()
            self._init()

    # ---- values

    def _operation(self, number: int) -> Operation:
        return self._program.operations[number]

    def _make_inputs(self, operation: Operation) -> list[torch.Tensor]:
        members = self._program.sets[operation.process_set].ranks
        inputs = [tensor_of(operation, members, self._rank, index) for index in range(len(operation.tensors))]
        if operation.disagrees == self._rank:
            inputs = [torch.zeros_like(t, dtype=dtype_of(other_dtype(_name_of(t.dtype)))) for t in inputs]
        return inputs

    def _check(self, number: int, pending: _Pending) -> None:
        operation = self._operation(number)
        what = f"{operation.kind.value}: operation {number}"
        expected = expected_tensors(self._program, operation, self._rank)
        if operation.kind is Kind.ALLTOALL and len(pending.result) == 1:
            expected.pop()  # the blocking form without splits tells none
        if len(expected) != len(pending.result):
            message = f"{what}: expected {len(expected)} results, got {len(pending.result)}"
            raise WrongResultError(message)
        for index, (right, result) in enumerate(zip(expected, pending.result, strict=True)):
            if not same_bits(right, result):
                message = f"{what}, tensor {index}: {describe_difference(right, result)}"
                raise WrongResultError(message)
        self._check_buffers(what, operation, pending)

    def _check_buffers(self, what: str, operation: Operation, pending: _Pending) -> None:
        if not all(buffer.is_intact() for buffer in pending.buffers):
            message = f"{what}: memory beside a tensor was overwritten"
            raise WrongResultError(message)
        if pending.action.form in {Form.ASYNC_IN_PLACE, Form.BLOCKING_IN_PLACE}:
            return
        for buffer, before in zip(pending.buffers, self._make_inputs(operation), strict=True):
            if not same_bits(before, buffer.tensor):
                message = f"{what}: the input was overwritten"
                raise WrongResultError(message)


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
