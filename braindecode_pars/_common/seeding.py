"""Random draws of a fit: they follow its seed, and leave torch's global state as it was.

The initial weights, dropout, crops and masks come from torch's global generators, since most of
these functions of torch and of third-party models take no other generator. A fit therefore has
its own random state, and puts it into the global generators while something draws:

- :func:`random_stream` gives a block of code a state that begins with a seed;
- :func:`drawing` puts that state into torch while its block draws, and then takes it back;
- :func:`seeded` does both, for a short block;
- :class:`OwnDraws` is the mixin that calls :func:`drawing` wherever a skorch net draws.

One lock for the process ensures that two threads never draw from one state. A fit holds it for one
batch at most and never while callbacks run. A callback may therefore fit other estimators in other
threads.

Third-party code draws from the global generators at any time. It runs under :func:`seeded`, which
holds the lock until the end, or under :func:`torch_seeded` and :func:`globally_seeded`, which hold
the lock only while they set the seed.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import torch
from sklearn.utils import check_random_state
from skorch import NeuralNet
from torch import Tensor

_LOCK = threading.RLock()


class _Stream:
    """A state of torch's generators of the CPU and of one device.

    Parameters
    ----------
    seed : int
        Seed of the first state.
    device : torch.device
        Device whose generator belongs to the state.
    """

    def __init__(self, seed: int, device: torch.device):
        self._is_lent = False
        self._device = device
        self._states = _first_states(seed, device)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let the global generators of torch continue from this state inside the context."""
        # Threads with the context of another share its stream, so the lock always comes first.
        with _LOCK:
            if self._is_lent:  # by this thread, further out: another would still have the lock
                yield
                return
            outside = _get_states(self._device)
            try:
                _set_states(self._states, self._device)
                self._is_lent = True
                try:
                    yield
                finally:
                    self._is_lent = False
                    self._states = _get_states(self._device)
            finally:
                _set_states(outside, self._device)


#: The stream of this thread; None if its draws come from the global generators as they are.
_STREAM: ContextVar[_Stream | None] = ContextVar("random_stream", default=None)


@contextmanager
def random_stream(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Let every block under :func:`drawing`, in this thread, draw from a state of its own.

    Outside of such blocks, torch's global generators keep the state of the caller.

    Parameters
    ----------
    seed : int
        Seed of the state.
    device : torch.device | str
        Device of the draws, besides the CPU.
    """
    token = _STREAM.set(_Stream(seed, torch.device(device)))
    try:
        yield
    finally:
        _STREAM.reset(token)


def drawing() -> AbstractContextManager[None]:
    """Draw from the stream of this thread inside the block; without a stream, do nothing.

    Other threads that want to draw from a stream wait, so the block should be short.
    """
    stream = _STREAM.get()
    return nullcontext() if stream is None else stream.lent()


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch on the CPU and on ``device`` inside the context, then restore its state.

    Other threads that want to draw from a stream wait until the end. The block should therefore be
    short, and must not wait for them.
    """
    with random_stream(seed, device), drawing():
        yield


class OwnDraws(NeuralNet):
    """Mixin for skorch nets that draw from the stream of their thread, if there is one.

    Building the module, reading a batch and the forward pass draw; callbacks and the backward pass
    do not. A net outside of :func:`random_stream` draws from torch's global generators, as every
    skorch net does.
    """

    def initialize(self) -> Any:
        with drawing():
            return super().initialize()

    def run_single_epoch(self, iterator: Any, *args: Any, **kwargs: Any) -> None:
        batches = None if iterator is None else drawn(iterator)
        return super().run_single_epoch(batches, *args, **kwargs)

    def infer(self, *args: Any, **kwargs: Any) -> Any:
        with drawing():
            return super().infer(*args, **kwargs)


def drawn(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches; shuffling and reading them draw from the stream."""
    end = object()
    with drawing():
        iterator = iter(batches)
    while True:
        with drawing():
            batch = next(iterator, end)
        if batch is end:
            return
        yield batch


@contextmanager
def torch_seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch as :func:`seeded` does, but let other threads draw from their streams inside.

    These never see the seed, and the seed is not set while one of them draws. What the block itself
    draws outside of a stream must not run beside them.
    """
    device = torch.device(device)
    first = _first_states(seed, device)
    with _LOCK:
        outside = _get_states(device)
        _set_states(first, device)
    try:
        yield
    finally:
        with _LOCK:
            _set_states(outside, device)


@contextmanager
def globally_seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed the global generators of torch, NumPy and Python inside, and restore them at the end.

    This is for a run that owns the process and writes these states into its checkpoints. Unlike
    :func:`random_stream`, it also holds for callbacks, but not beside other threads that draw.
    """
    numpy = check_random_state(None)
    numpy_state, python_state = numpy.get_state(), random.getstate()
    with torch_seeded(seed, device):
        numpy.seed(seed % 2**32)
        random.seed(seed)
        try:
            yield
        finally:
            numpy.set_state(numpy_state)
            random.setstate(python_state)


def _first_states(seed: int, device: torch.device) -> list[Tensor]:
    """Return the states of torch's generators of the CPU and of a device under a seed."""
    # Not torch.manual_seed: it would seed every GPU, also those that are not used.
    devices = [torch.device("cpu")] if device.type == "cpu" else [torch.device("cpu"), device]
    return [torch.Generator(each).manual_seed(seed).get_state() for each in devices]


def _get_states(device: torch.device) -> list[Tensor]:
    """Return the states of torch's global generators of the CPU and of a device."""
    states = [torch.get_rng_state()]
    if device.type != "cpu":
        states.append(torch.get_device_module(device).get_rng_state(device))
    return states


def _set_states(states: list[Tensor], device: torch.device) -> None:
    torch.set_rng_state(states[0])
    if device.type != "cpu":
        torch.get_device_module(device).set_rng_state(states[1], device)
