"""The Spark session of the driver: how much room it has, and barrier jobs that can be cancelled.

`ClassicSession` asks the SparkContext; `ConnectSession` has none and knows less. Jobs run in a thread of
their own; the methods here are for the thread that called run().
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from ._barrier import SCHEMA
from ._slots import Room, most_failures, promised_slots

_numbers = itertools.count()


class Session(Protocol):
    """What a job needs of Spark."""

    spark: Any

    def parallelism(self) -> int:
        """How many tasks Spark runs by default."""

    def room(self) -> Room:
        """Its slots."""

    def most_task_failures(self) -> int:
        """How often one task may fail before its job does."""

    def name_job(self, name: str) -> None:
        """Let the jobs of this thread be known by a name."""

    def cancel(self, name: str) -> None:
        """End the jobs of that name."""

    def active_tasks(self, name: str) -> int | None:
        """How many tasks of that job were started; None: Spark does not say."""


class SparkJob:
    """One job in a thread."""

    def __init__(
        self, session: Session, task: Callable[..., Any], num_proc: int, *, barrier: bool = True
    ) -> None:
        """Start it; with a barrier all tasks at once or none."""
        self.name = f"horovod.spark.run.{next(_numbers)}"
        self.rows: list[tuple[int, int, bytes]] = []
        self.error: BaseException | None = None
        self._session = session
        self._task = task
        self._num_proc = num_proc
        self._barrier = barrier
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether it ended within so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """End it."""
        with suppress(Exception):  # the application may be gone
            self._session.cancel(self.name)

    def active_tasks(self) -> int | None:
        """How many of its tasks were started; None: Spark does not say."""
        try:
            return self._session.active_tasks(self.name)
        except Exception:  # noqa: BLE001 - the application may be gone
            return None

    def _run(self) -> None:
        try:
            self._session.name_job(self.name)
            frame = self._session.spark.range(0, self._num_proc, 1, self._num_proc)
            rows = frame.mapInArrow(self._task, SCHEMA, barrier=self._barrier).collect()
            self.rows = [(row["rank"], row["position"], bytes(row["part"])) for row in rows]
        except BaseException as error:  # noqa: BLE001 - raised by whoever waits
            self.error = error


class ClassicSession:
    """A session in the process of the driver."""

    def __init__(self, spark: Any) -> None:
        """Use its SparkContext."""
        self.spark = spark
        self._context = spark.sparkContext

    def parallelism(self) -> int:
        """How many tasks Spark runs by default."""
        return int(self._context.defaultParallelism)

    def room(self) -> Room:
        """Its slots, as the check of barrier stages counts them."""
        conf = self._context.getConf()
        return Room(
            slots=self._slots(),
            promised=promised_slots(self._context.master, conf.get),
            is_local=self._context.master.startswith("local[") or self._context.master == "local",
            age_seconds=time.time() - self._context.startTime / 1000.0,
            has_dynamic_allocation=_is_true(conf.get("spark.dynamicAllocation.enabled", "false")),
        )

    def most_task_failures(self) -> int:
        """Of the master, if it is this process, or of the settings."""
        setting = self._context.getConf().get("spark.task.maxFailures")
        return most_failures(self._context.master, setting)

    def name_job(self, name: str) -> None:
        """A job group, whose tasks are interrupted when it is cancelled."""
        self._context.setJobGroup(name, "horovod.spark.run", interruptOnCancel=True)

    def cancel(self, name: str) -> None:
        """End the group."""
        self._context.cancelJobGroup(name)

    def active_tasks(self, name: str) -> int | None:
        """Of the stages of the group."""
        tracker = self._context.statusTracker()
        count = 0
        for job in tracker.getJobIdsForGroup(name):
            found = tracker.getJobInfo(job)
            for stage in found.stageIds if found is not None else ():
                info = tracker.getStageInfo(stage)
                count += info.numActiveTasks if info is not None else 0
        return count

    def _slots(self) -> int | None:
        context = self._context._jsc.sc()  # noqa: SLF001 - Python has no name for it
        try:
            profile = context.resourceProfileManager().defaultResourceProfile()
            return int(context.maxNumConcurrentTasks(profile))
        except Exception:  # noqa: BLE001 - another release of Spark may not have it
            return None


class ConnectSession:
    """A session of Spark Connect: the SparkContext is in another process, maybe on another host."""

    def __init__(self, spark: Any) -> None:
        """Use it."""
        self.spark = spark

    def parallelism(self) -> int:
        """The number of partitions that Spark gives a range if nobody says how many."""
        from pyspark.sql.functions import spark_partition_id  # noqa: PLC0415

        found = self.spark.range(0, 1 << 16).select(spark_partition_id().alias("id")).distinct().count()
        return int(found)

    def room(self) -> Room:
        """Its slots, unless somebody set the default parallelism, which then says nothing about them."""
        chosen = self._setting("spark.default.parallelism")
        master = self._setting("spark.master") or ""
        return Room(
            slots=self.parallelism() if chosen is None else None,
            promised=None,
            is_local=True,  # without a SparkContext nobody knows what may still come
            age_seconds=0.0,
            has_dynamic_allocation=_is_true(self._setting("spark.dynamicAllocation.enabled"))
            and not master.startswith("local"),
        )

    def most_task_failures(self) -> int:
        """As the server says; 1 if it does not say what it is."""
        master = self._setting("spark.master") or "local"
        return most_failures(master, self._setting("spark.task.maxFailures"))

    def name_job(self, name: str) -> None:
        """A tag of the operations of this thread."""
        self.spark.addTag(name)

    def cancel(self, name: str) -> None:
        """End the operations with the tag."""
        self.spark.interruptTag(name)

    def active_tasks(self, name: str) -> int | None:  # noqa: ARG002 - an interface
        """Spark Connect does not say."""
        return None

    def _setting(self, name: str) -> str | None:
        try:
            value = self.spark.conf.get(name, None)
        except Exception:  # noqa: BLE001 - a server may keep it to itself
            return None
        return None if value is None else str(value)


def _is_true(text: str | None) -> bool:
    return text is not None and text.strip().lower() == "true"


def find_session() -> Session:
    """The session of this process; an exception with what to do if there is none."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError as error:
        message = "horovod.spark needs PySpark 3.5 or newer: pip install 'pyspark>=3.5' pandas pyarrow"
        raise ImportError(message) from error
    spark = SparkSession.getActiveSession() or _default_session(SparkSession)
    if spark is None:
        message = (
            "Could not find an active SparkContext, are you running in a PySpark session? "
            "SparkSession.builder.getOrCreate() makes one"
        )
        raise RuntimeError(message)
    if not hasattr(spark, "range") or "connect" in type(spark).__module__:
        return ConnectSession(spark)
    return ClassicSession(spark)


def _default_session(session_class: Any) -> Any:
    """A session for a program that has only a SparkContext, or made its session in another thread."""
    from pyspark import SparkContext  # noqa: PLC0415

    if SparkContext._active_spark_context is None:  # noqa: SLF001 - Python has no name for it
        return None
    return session_class.builder.getOrCreate()
