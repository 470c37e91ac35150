"""The store of an elastic job: workers ask it for their place, and leave their addresses there."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from horovod.runner.http.http_server import RendezvousHandler

from .worker import PUT_WORKER_ADDRESSES, read_service

if TYPE_CHECKING:
    from .driver import ElasticDriver

GET_RANK_AND_SIZE = "rank_and_size"

_logger = logging.getLogger("horovod")


def create_rendezvous_handler(driver: ElasticDriver) -> type[RendezvousHandler]:
    """Return a handler for RendezvousServer.start that speaks for this driver."""

    class ElasticRendezvousHandler(RendezvousHandler):
        """Answers `rank_and_size/<host>:<local rank>` when the next world has begun."""

        def _get_value(self, scope: str, key: str) -> bytes | None:
            if scope != GET_RANK_AND_SIZE:
                return super()._get_value(scope, key)
            host, _, local_rank = key.rpartition(":")
            return _place(driver, host, int(local_rank))

        def _put_value(self, scope: str, key: str, value: bytes) -> None:
            if scope != PUT_WORKER_ADDRESSES:
                super()._put_value(scope, key, value)
                return
            host, _, local_rank = key.rpartition(":")
            addresses, secret_key = read_service(value)
            driver.register_worker_server(host, int(local_rank), addresses, secret_key)

    return ElasticRendezvousHandler


def _place(driver: ElasticDriver, host: str, local_rank: int) -> bytes:
    _logger.debug("%s[%d] is ready for the next world", host, local_rank)
    driver.record_ready(host, local_rank)
    return driver.get_slot_info(host, local_rank).to_response_string().encode("ascii")
