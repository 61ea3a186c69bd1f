"""GroupDRO: the mean loss of each group weighed, and the weight moved to the groups that fare worst.

Source: "Distributionally Robust Neural Networks for Group Shifts" (arXiv 1911.08731), Algorithm 1 and §3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def first_weights(sizes: Sequence[int]) -> NDArray[np.float64]:
    """Equal weights over the groups that have training rows; a group without any has weight 0 and keeps it.

    >>> first_weights([30, 0, 10]).tolist()
    [0.5, 0.0, 0.5]
    """
    present = np.asarray(sizes) > 0
    weights: NDArray[np.float64] = present / present.sum()
    return weights


def next_weights(
    weights: Sequence[float] | NDArray[np.float64],
    losses: Sequence[float] | NDArray[np.float64],
    *,
    step_size: float,
    sizes: Sequence[int] | None = None,
    adjustment: float = 0.0,
) -> NDArray[np.float64]:
    """One exponentiated-gradient step: each weight times exp(step_size · loss), then all scaled to sum to 1.

    Args:
        weights: one a group, from 0, summing to 1.
        losses: the mean loss of each group in the batch, from 0; 0 for a group that is not in it.
        step_size: η, from 0. At 0 the weights stay, and the loss is the mean over groups.
        sizes: training rows a group; needed with ``adjustment``.
        adjustment: C, from 0; C / √(rows of the group) is added to each loss, since a small group's training loss says less (§3.3).

    >>> import math
    >>> next_weights([0.5, 0.5], [0.0, math.log(3)], step_size=1.0).tolist()
    [0.25, 0.75]
    >>> next_weights([0.5, 0.5], [0.2, 0.2], step_size=math.log(2), sizes=[4, 1], adjustment=2.0).round(6).tolist()
    [0.333333, 0.666667]
    """
    told = np.asarray(losses, np.float64)
    if adjustment:
        if sizes is None:
            raise ValueError("adjustment: expected the sizes of the groups beside it")
        told = told + adjustment / np.sqrt(np.maximum(np.asarray(sizes, np.float64), 1))
    # Less the largest exponent, which cancels, so that a large loss does not overflow.
    grown: NDArray[np.float64] = np.asarray(weights, np.float64) * np.exp(step_size * (told - told.max()))
    scaled: NDArray[np.float64] = grown / grown.sum()
    return scaled


def group_losses(losses: Any, groups: Any, n_groups: int) -> Any:
    """The mean loss of each group in a batch, a tensor [n_groups] that gradients go through; 0 for a group that is not in the batch.

    ``losses`` is a float tensor [rows], ``groups`` an int64 tensor [rows] of numbers below ``n_groups``.
    """
    sums = losses.new_zeros(n_groups).index_add(0, groups, losses)
    counts = losses.new_zeros(n_groups).index_add(0, groups, losses.new_ones(len(losses)))
    return sums / counts.clamp(min=1)
