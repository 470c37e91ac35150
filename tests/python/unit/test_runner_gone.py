"""Names of the original's launcher that are there to be imported."""

from __future__ import annotations

import importlib

import pytest


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("common.service.driver_service", "BasicDriverClient"),
        ("common.service.driver_service", "BasicDriverService"),
        ("common.service.task_service", "BasicTaskClient"),
        ("common.service.task_service", "BasicTaskService"),
        ("common.util.network", "BasicClient"),
        ("common.util.network", "BasicService"),
        ("driver.driver_service", "HorovodRunDriverClient"),
        ("driver.driver_service", "HorovodRunDriverService"),
        ("http.http_client", "put_data_into_kvstore"),
        ("http.http_client", "read_data_from_kvstore"),
        ("task.task_service", "HorovodRunTaskClient"),
        ("task.task_service", "HorovodRunTaskService"),
        ("task_fn", "main"),
    ],
)
def test_services_of_the_original_can_be_imported_and_say_that_they_are_gone(module, name):
    gone = getattr(importlib.import_module(f"horovod.runner.{module}"), name)

    with pytest.raises(
        NotImplementedError, match=rf"horovod\.runner\.{module}\.{name} is not here: horovodrun"
    ):
        gone(0, key=b"")
