"""The compact form of sparse vectors in Parquet: [n, indices..., values..., zeros], 2 * max_size + 1 long."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def encode(indices: Sequence[int], values: Sequence[float], max_size: int) -> list[float]:
    """Return one vector in the compact form; `max_size`: the most values of any row."""
    count = len(indices)
    if count > max_size:
        message = (
            f"a sparse vector has {count} values, and the column was measured to have {max_size} at most"
        )
        raise ValueError(message)
    padding = [0.0] * (2 * (max_size - count))
    return [float(count), *map(float, indices), *map(float, values), *padding]


def decode(rows: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    """Return the dense vectors of rows in the compact form."""
    dense = np.zeros((len(rows), size), rows.dtype)
    counts = rows[:, 0].astype(np.int64)
    if len(rows) == 0 or counts.max(initial=0) == 0:
        return dense
    # The values of row i are at places counts[i] + 1 to 2 * counts[i].
    places = np.arange(counts.max())
    used = places[None, :] < counts[:, None]
    row, place = np.nonzero(used)
    indices = rows[row, 1 + place].astype(np.int64)
    dense[row, indices] = rows[row, 1 + counts[row] + place]
    return dense
