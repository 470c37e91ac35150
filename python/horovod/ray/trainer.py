"""HorovodTrainer on Ray Train."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ray
from ray.train.v2._internal.constants import is_v2_enabled

from ._last_report import LastReport, remember_reports
from ._slots import check_capacity
from .train_config import as_horovod_config

if is_v2_enabled():
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
else:
    from ray.train.data_parallel_trainer import DataParallelTrainer


def resources_of(scaling_config: Any) -> tuple[int, dict[str, float]]:
    """How many workers must be there at least, and what each needs."""
    count = scaling_config.num_workers
    least = count[0] if isinstance(count, tuple | list) else count
    given: Mapping[str, float] | None = scaling_config.resources_per_worker
    if given is not None:
        needs = dict(given)
        if scaling_config.use_gpu:
            needs.setdefault("GPU", 1)
    else:
        needs = {"GPU": 1} if scaling_config.use_gpu else {"CPU": 1}
    return int(least or 0), needs


class HorovodTrainer(DataParallelTrainer):  # type: ignore[misc]  # Ray has no types
    """Runs a train function on Ray Train's workers, as the ranks of a Horovod job.

    The function calls hvd.init() as in any other program. `horovod_config` is a HorovodConfig of
    horovod.ray or of ray.train.horovod; everything else is as in Ray's other trainers.
    """

    def __init__(
        self,
        train_loop_per_worker: Callable[[], Any] | Callable[[dict[str, Any]], Any],
        *,
        train_loop_config: dict[str, Any] | None = None,
        horovod_config: Any = None,
        scaling_config: Any = None,
        dataset_config: Any = None,
        run_config: Any = None,
        datasets: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        resume_from_checkpoint: Any = None,
        **others: Any,
    ) -> None:
        """Parameters of later releases of Ray (`validation_config`) are passed on."""
        super().__init__(
            train_loop_per_worker,
            train_loop_config=train_loop_config,
            backend_config=as_horovod_config(horovod_config),
            scaling_config=scaling_config,
            dataset_config=dataset_config,
            run_config=run_config,
            datasets=datasets,
            metadata=metadata,
            resume_from_checkpoint=resume_from_checkpoint,
            **others,
        )

    def fit(self) -> Any:
        """Train, and return Ray's Result.

        Its `metrics` are those that rank 0 reported last, with or without a checkpoint.
        NotEnoughSlotsError at once if the cluster has no room and cannot grow.
        """
        if not is_v2_enabled():
            return super().fit()
        if not ray.is_initialized():
            ray.init()
        count, needs = resources_of(self.scaling_config)
        if count > 0:
            one_per_node = self.scaling_config.placement_strategy == "STRICT_SPREAD"
            check_capacity("HorovodTrainer", count, needs, one_per_node=one_per_node)
        report = LastReport.create() if count > 0 else None
        if report is None:
            return super().fit()
        try:
            with remember_reports(self.run_config, report):
                result = super().fit()
            # Ray's are those of the last report that had a checkpoint.
            last = report.metrics()
        finally:
            report.close()
        if last is not None:
            result.metrics = last
        return result
