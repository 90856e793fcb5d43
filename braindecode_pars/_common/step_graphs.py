"""Training steps on CUDA as graphs: one launch in place of the thousands of a step.

At the sizes of this package, a GPU waits for the launches of its kernels. A CUDA graph has them
all, so that a step takes as long as its kernels do.
"""

from __future__ import annotations

import gc
import logging
import pickle
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate.utils import recursively_apply
from torch import Tensor, nn

log = logging.getLogger(__name__)

#: Forward pass, loss and backward pass: a function of a batch (x, y) that returns a dict of tensors
#: and adds to the gradients.
Step = Callable[[tuple[Any, Any]], dict[str, Any]]

_SCALARS = frozenset({bool, int, float, str})
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

#: Graphs whose capture has failed; torch may still have pointers to them.
_FAILED: list[torch.cuda.CUDAGraph] = []


class StepGraphs:
    """The captured steps of one training, one graph for each kind of step.

    Steps are of one kind if their batches have the same shapes and types, the same weights are
    trained, the modules have the same types and buffers, and the same numbers, texts and truth
    values as attributes. Other Python code of a module runs only while its step is captured: random
    numbers must come from torch's functions, on the device of the batch.

    The first step of a kind runs as always, which also compiles. The second is captured, and the
    graph is replayed from then on. It has the forward pass, the loss and the backward pass;
    clipping and the optimizer run as always. Its kernels are those of a step that is not captured,
    and so are its random draws. Only one training at a time in a process can be captured.

    A step that makes the CPU wait for the GPU, or draws on the CPU, cannot be captured. The
    training then runs as always, and a line in the log says so.

    Parameters
    ----------
    device : torch.device
        CUDA device of the training.
    """

    #: Largest number of kinds; steps of others run as always.
    MOST = 8

    def __init__(self, device: torch.device):
        self.device = device
        self.steps: dict[Any, CapturedStep | None] = {}
        self.works = True
        self._pool: Any = None
        self._index = 0
        self._told = False

    def __reduce__(self) -> tuple:
        return type(None), ()  # a copy or a pickle of a net has no graphs

    def run(self, step: Step, batch: tuple[Any, Any], modules: list[nn.Module]) -> dict[str, Any]:
        """Return what a step returns, detached, and add to the gradients of the weights.

        Parameters
        ----------
        step : callable
            The step.
        batch : tuple of x, y
            Tensors; x may also be a dict of tensors, and y None.
        modules : list of nn.Module
            The network and the loss.

        Returns
        -------
        dict of str to Any
            Output of the step.
        """
        handled = sys.exception()
        inputs, rebuilt = _tensors_of(batch)
        parts = [part for module in modules for part in module.modules()]
        found = [w for part in parts for w in part._parameters.values() if w is not None]
        weights: list[Tensor] = [*dict.fromkeys(found)]  # some are of two parts
        kind = _kind_of(batch, inputs, weights, parts) if self.works else None
        is_new = kind not in self.steps
        if kind is None or (is_new and len(self.steps) == self.MOST):
            if kind is not None and not self._told:
                self._told = True
                log.info("Training steps are of more than %d kinds; not all are graphs.", self.MOST)
            return _detached(step(batch))
        if is_new:
            self.steps[kind] = None
            # Detached: what autograd keeps of a step on this stream would break a capture.
            return _detached(step(batch))
        captured = self.steps[kind]
        if captured is None:
            try:
                captured = self._capture(step, rebuilt, inputs, weights, modules)
                self.steps[kind] = captured
            except Exception as error:  # whatever it is, the step runs without a graph
                self.works = False
                self.steps.clear()
                cause: BaseException = error
                while cause.__context__ not in (None, handled):  # the first one
                    cause = cause.__context__
                what = getattr(modules[0], "shown_name", type(modules[0]).__name__)
                why = f"{type(cause).__name__}: {cause}".splitlines()[0]
                log.info("Training steps of %s run without a CUDA graph (%s).", what, why)
                del cause  # it keeps the memory of the capture
        return _detached(step(batch)) if captured is None else captured.replay(inputs, weights)

    def _capture(
        self,
        step: Step,
        rebuilt: Callable[[list[Tensor]], tuple[Any, Any]],
        inputs: list[Tensor],
        weights: list[Tensor],
        modules: list[nn.Module],
    ) -> CapturedStep:
        """Run a step twice without effects, then capture it."""
        if self._pool is None:
            index = self.device.index
            self._index = torch.cuda.current_device() if index is None else index
            self._pool = torch.cuda.graph_pool_handle()
        inputs = [given.to(self.device, copy=True) for given in inputs]
        batch = rebuilt(inputs)
        # A step may change buffers, and weights that it does not train: a mean over steps.
        state = [t for module in modules for t in (*module.parameters(), *module.buffers())]
        state_before = [tensor.detach().clone() for tensor in state]
        drawn_before = _states_on_cpu()
        gradients = [weight.grad for weight in weights]

        def once() -> dict[str, Any]:
            for weight in weights:
                weight.grad = None  # so that the graph writes gradients, and does not add to them
            return _detached(step(batch))

        gc.collect()  # of what autograd keeps of earlier steps, on the usual stream
        stream, graph = _side_stream(self._index), torch.cuda.CUDAGraph()
        try:
            with (
                torch.cuda.device(self._index),
                torch.random.fork_rng([self._index], device_type="cuda"),
            ):
                stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(stream):
                    once()
                    drawn = pickle.dumps(_states_on_cpu())
                    with _waiting_is_an_error():
                        once()
                    if pickle.dumps(_states_on_cpu()) != drawn:
                        raise RuntimeError("random numbers are drawn on the CPU")
                    try:
                        # Threads that load data use CUDA meanwhile.
                        mode: Any = dict(capture_error_mode="thread_local")
                        with torch.cuda.graph(graph, pool=self._pool, stream=stream, **mode):
                            outputs = once()
                    except BaseException:
                        self._end_capture(graph)
                        raise
                captured = [weight.grad for weight in weights]
        finally:
            torch.cuda.current_stream(self._index).wait_stream(stream)
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.grad = gradient
            with torch.no_grad():
                for tensor, before in zip(state, state_before, strict=True):
                    tensor.copy_(before)
            _set_states_on_cpu(*drawn_before)
        return CapturedStep(graph, inputs, outputs, captured)

    def _end_capture(self, graph: torch.cuda.CUDAGraph) -> None:
        """Undo what a failed capture leaves behind in torch."""
        _FAILED.append(graph)
        with suppress(RuntimeError):  # the end of the capture may have done this
            torch._C._cuda_endAllocateToPool(self._index, self._pool)
            torch._C._cuda_releasePool(self._index, self._pool)
        # It would refuse to draw outside a capture.
        generator = torch.cuda.default_generators[self._index]
        generator.graphsafe_set_state(generator.clone_state())

    def close(self, modules: list[nn.Module]) -> None:
        """Free the graphs; the last gradients stay."""
        for module in modules:
            for weight in module.parameters():
                if self.steps and weight.grad is not None:
                    weight.grad = weight.grad.clone()
        self.steps.clear()


class CapturedStep(NamedTuple):
    """A graph, and the tensors that it reads and writes.

    Attributes
    ----------
    graph : torch.cuda.CUDAGraph
        What is replayed.
    inputs : list of Tensor
        The batch.
    outputs : dict of str to Any
        What the step returns.
    gradients : list of Tensor or None
        Gradient of each weight, of this step alone.
    """

    graph: Any
    inputs: list[Tensor]
    outputs: dict[str, Any]
    gradients: list[Tensor | None]

    def replay(self, inputs: list[Tensor], weights: list[Tensor]) -> dict[str, Any]:
        """Run the step on other inputs; see :meth:`StepGraphs.run`."""
        for place, given in zip(self.inputs, inputs, strict=True):
            place.copy_(given, non_blocking=True)
        # Gradients of an earlier part of the step, which the graph would overwrite.
        earlier = [None if weight.grad is None else weight.grad.clone() for weight in weights]
        self.graph.replay()
        for weight, before, added in zip(weights, earlier, self.gradients, strict=True):
            if before is None or added is None:
                weight.grad = added if before is None else before
            else:
                weight.grad = before.add_(added)
        return recursively_apply(torch.clone, self.outputs)  # callbacks may keep them


@cache
def _side_stream(index: int) -> torch.cuda.Stream:
    """Return the stream of captures; one for all, since torch keeps memory for each."""
    return torch.cuda.Stream(index)


def _detached(outputs: dict[str, Any]) -> dict[str, Any]:
    return recursively_apply(Tensor.detach, outputs)


def _tensors_of(
    batch: tuple[Any, Any],
) -> tuple[list[Any], Callable[[list[Tensor]], tuple[Any, Any]]]:
    """Return the tensors of a batch, and a function that builds a batch of others."""
    x, y = batch
    names = [*x] if isinstance(x, Mapping) else None
    found = [x] if names is None else [*x.values()]

    def rebuilt(tensors: list[Tensor]) -> tuple[Any, Any]:
        given = tensors[: len(found)]
        other_x: Any = given[0] if names is None else dict(zip(names, given, strict=True))
        return other_x, None if y is None else tensors[-1]

    return found if y is None else [*found, y], rebuilt


def _kind_of(
    batch: tuple[Any, Any], inputs: list[Any], weights: list[Tensor], parts: list[nn.Module]
) -> tuple | None:
    """Return what decides on the kernels of a step; None if it cannot be captured."""
    has_hooks = any(getattr(part, hooks) for part in parts for hooks in _HOOKS)
    has_hooks |= any(w._backward_hooks or w._post_accumulate_grad_hooks for w in weights)
    if has_hooks or not all(isinstance(given, Tensor) for given in inputs):
        return None
    names = tuple(batch[0]) if isinstance(batch[0], Mapping) else None
    shapes = tuple((given.shape, given.dtype) for given in inputs)
    trained = tuple((weight.data_ptr(), weight.requires_grad) for weight in weights)
    return names, batch[1] is None, shapes, trained, tuple(map(_facts_of, parts))


def _facts_of(part: nn.Module) -> tuple:
    """Return the type of a module, where its buffers are, and its plain attributes."""
    buffers = tuple(b.data_ptr() for b in part._buffers.values() if b is not None)
    values = vars(part).values()
    plain = tuple(value for value in values if type(value) in _SCALARS)
    dicts = (value for value in values if type(value) is dict)
    facts = tuple(v for each in dicts for v in each.items() if type(v[1]) in _SCALARS)
    return type(part), buffers, plain, facts


def _states_on_cpu() -> tuple[Any, Any, Any]:
    """Return the states of the random generators of the CPU."""
    return random.getstate(), np.random.get_state(), torch.get_rng_state().numpy()  # noqa: NPY002


def _set_states_on_cpu(of_python: Any, of_numpy: Any, of_torch: Any) -> None:
    random.setstate(of_python)
    np.random.set_state(of_numpy)  # noqa: NPY002
    torch.set_rng_state(torch.from_numpy(of_torch))


@contextmanager
def _waiting_is_an_error() -> Iterator[None]:
    """Let torch raise an error where it would make the CPU wait for the GPU."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls this mode a prototype
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)
