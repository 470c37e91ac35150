"""Whether there is room for a job, decided from what Spark says."""

from dataclasses import replace

import pytest

from horovod.spark._slots import Room, Verdict, decide, promised_slots

ROOM = Room(slots=2, promised=None, is_local=False, age_seconds=1000, has_dynamic_allocation=False)
LATE = 1000.0


@pytest.mark.parametrize(
    ("num_proc", "change", "waited", "verdict"),
    [
        (2, {}, 0, Verdict.GO),
        (1, {}, 0, Verdict.GO),
        (3, {"slots": None}, 0, Verdict.GO),
        (3, {"is_local": True}, 0, Verdict.REFUSE),
        (3, {"is_local": True, "age_seconds": 0, "promised": 8}, 0, Verdict.REFUSE),
        (3, {"age_seconds": 1}, LATE, Verdict.WAIT),
        (3, {}, 0, Verdict.WAIT),
        (3, {}, LATE, Verdict.REFUSE),
        (3, {"promised": 4}, LATE, Verdict.WAIT),
        (5, {"promised": 4, "age_seconds": 0}, 0, Verdict.REFUSE),
        (1, {"has_dynamic_allocation": True}, 0, Verdict.REFUSE),
    ],
)
def test_verdicts(num_proc, change, waited, verdict):
    assert decide(num_proc, replace(ROOM, **change), waited).verdict is verdict


def test_a_refusal_says_what_was_asked_for_and_what_is_there():
    assert "num_proc is 3, but the Spark application has 2 task slots" in decide(3, ROOM, LATE).reason
    limited = replace(ROOM, promised=4)
    assert "num_proc is 5, but the Spark application has 4 task slots at most" in decide(5, limited, 0).reason
    assert (
        "spark.dynamicAllocation.enabled=false"
        in decide(1, replace(ROOM, has_dynamic_allocation=True), 0).reason
    )


@pytest.mark.parametrize(
    ("master", "settings", "slots"),
    [
        ("local-cluster[2,3,1024]", {}, 6),
        ("local-cluster[2, 3, 1024]", {"spark.task.cpus": "2"}, 2),
        ("yarn", {}, None),
        ("yarn", {"spark.executor.instances": "4"}, None),
        ("yarn", {"spark.executor.instances": "4", "spark.executor.cores": "5", "spark.task.cpus": "2"}, 8),
        ("spark://host:7077", {"spark.cores.max": "9", "spark.task.cpus": "2"}, 4),
    ],
)
def test_promised_slots(master, settings, slots):
    assert promised_slots(master, settings.get) == slots
