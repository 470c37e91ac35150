"""A job of a cluster engine, and what each of its workers needs. Pure but for name and key."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from .places import Place, RankOrder, assign_places
from .rendezvous import Introduction
from .versions import check_version, own_version

_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Job:
    """Name and key of one job. Made by the driver, once per start; travels by the engine alone."""

    name: str
    version: str
    key: bytes = field(repr=False)

    @staticmethod
    def create() -> Job:
        """A job that did not exist before."""
        return Job(
            name=f"cluster-{secrets.token_hex(12)}",
            version=own_version(),
            key=secrets.token_bytes(_KEY_BYTES),
        )


@dataclass(frozen=True, slots=True)
class Assignment:
    """All that a worker needs for `enter`. `meeting` is None in jobs of one host, and then so is the key."""

    job: str
    version: str
    place: Place
    host: str
    meeting: tuple[str, int] | None
    key: bytes | None = field(repr=False)
    variables: Mapping[str, str] = field(default_factory=dict)


def assign(
    job: Job,
    introductions: Sequence[Introduction],
    order: RankOrder = RankOrder.AS_GIVEN,
    variables: Mapping[str, str] | None = None,
    nics: Collection[str] = (),
) -> list[Assignment]:
    """The assignment of each worker, in the order of the introductions.

    `variables` are further ones for the environment of every worker, `nics` the interfaces to use
    between hosts. VersionMismatchError if a worker has another horovod than the driver.
    """
    for worker, introduction in enumerate(introductions):
        who = f"worker {worker} (host {introduction.hostname}, process {introduction.pid})"
        check_version(who, introduction.version, job.version)
    places = assign_places([introduction.host for introduction in introductions], order)
    rank0 = introductions[next(worker for worker, place in enumerate(places) if place.rank == 0)]
    extra = dict(variables or {})
    if nics:
        extra.setdefault("HOROVOD_GLOO_IFACE", ",".join(sorted(nics)))
    return [
        Assignment(
            job=job.name,
            version=job.version,
            place=place,
            host=introduction.host,
            meeting=None if place.is_one_host else (rank0.address, rank0.port),
            key=None if place.is_one_host else job.key,
            variables=extra,
        )
        for place, introduction in zip(places, introductions, strict=True)
    ]
