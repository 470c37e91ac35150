"""How much is measured, and the circumstances that the figures are for."""

from __future__ import annotations

from typing import Final

GRADIENTS: Final = 161
"""Parameters of ResNet-50."""
BACKWARD_SECONDS: Final = 0.05
"""Over which the gradients become ready, in a stream."""
TRANSFER_SECONDS: Final = 0.02
"""That NCCL takes for all of them."""
STAGED_BYTES: Final = 64 << 20
ROUNDS: Final = 40
QUICK_ROUNDS: Final = 12
