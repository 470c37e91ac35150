"""How an elastic job is to be started, as one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from horovod.common._renamed import renamed
from horovod.runner.common.util.settings import BaseSettings


class ElasticSettings(BaseSettings):
    """A launch on hosts that come and go."""

    @renamed(min_np="min_num_proc", max_np="max_num_proc")
    def __init__(
        self,
        discovery: Any,
        min_num_proc: int | None,
        max_num_proc: int | None,
        elastic_timeout: int | None,
        reset_limit: int | None,
        cooldown_range: Sequence[int] | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep what is particular to elastic jobs; the rest goes to BaseSettings."""
        super().__init__(elastic=True, **kwargs)
        self.discovery = discovery
        self.min_num_proc = min_num_proc
        self.max_num_proc = max_num_proc
        self.elastic_timeout = elastic_timeout
        self.reset_limit = reset_limit
        self.cooldown_range = cooldown_range
