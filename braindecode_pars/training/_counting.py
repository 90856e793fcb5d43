"""Count the floating-point operations and the tokens of code that runs a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

__all__ = ["Count", "count", "count_steps"]


class Count(NamedTuple):
    """What a network has computed.

    Attributes
    ----------
    tokens : float
        Number of tokens that the encoder received.
    flops : float
        Number of floating-point operations of matrix products and convolutions; a multiplication
        and an addition are two. Other operations, such as norms, are not counted.
    """

    tokens: float
    flops: float


def count(run: Callable[[], object], encoder: nn.Module | None = None) -> Count:
    """Run a function, and count the tokens and the operations of its networks.

    Parameters
    ----------
    run : callable
        Function without arguments.
    encoder : nn.Module | None
        Encoder whose tokens are counted: its first argument has the shape (batch, n_patches,
        embed_dim).

    Returns
    -------
    Count
        Tokens and operations, of the backward pass too if the function has one.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.training._counting import count
    >>> count(lambda: torch.ones(2, 3) @ torch.ones(3, 4)).flops
    48
    """
    tokens = 0

    def add(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        nonlocal tokens
        tokens += arguments[0].shape[0] * arguments[0].shape[1]

    hook = None if encoder is None else encoder.register_forward_pre_hook(add)
    try:
        # torch has no count for its fast attention on the CPU; the plain one has the same products.
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            run()
    finally:
        if hook is not None:
            hook.remove()
    return Count(tokens, counter.get_total_flops())


def count_steps(
    step: Callable[[int], object], encoder: nn.Module | None, n_steps: int, n_examples: int
) -> Count:
    """Count the tokens and operations of all steps of a training, from two small steps.

    A step needs a fixed number of operations, and a number for each example.

    Parameters
    ----------
    step : callable
        Function of the number of examples that makes one training step.
    encoder : nn.Module | None
        Encoder whose tokens are counted.
    n_steps, n_examples : int
        Number of steps, and number of examples in all of them together.
    """
    two, four = (count(lambda n=n: step(n), encoder) for n in (2, 4))
    each = [(b - a) / 2 for a, b in zip(two, four, strict=True)]
    fixed = [a - 2 * slope for a, slope in zip(two, each, strict=True)]
    return Count(*(f * n_steps + e * n_examples for f, e in zip(fixed, each, strict=True)))
