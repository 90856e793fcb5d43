"""CUDA graphs of training steps, which speed up the training of small networks.

A training step launches thousands of kernels. The networks of this package are small, so a GPU
would spend most of the time waiting for launches. A CUDA graph launches all kernels of a step at
once.
"""

from __future__ import annotations

import gc
import logging
import pickle
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

log = logging.getLogger(__name__)

#: Training step without the optimizer: function of a batch (x, y) that computes the forward pass,
#: the loss and the backward pass. It accumulates gradients and returns a dict of tensors.
Step = Callable[[tuple[Any, Any]], dict[str, Any]]

_SCALARS = frozenset({bool, int, float, str})
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

#: Graphs whose capture failed. They must not be deleted, because torch may still have pointers to
#: them.
_FAILED: list[torch.cuda.CUDAGraph] = []


class StepGraphs:
    """Capture training steps as CUDA graphs, and replay the graphs.

    One graph is captured for each kind of step. Two steps are of the same kind if all of these are
    equal:

    - the shapes and dtypes of their batches
    - the weights that are trained
    - the types, buffers and attributes (numbers, strings and booleans) of the modules

    The first step of a kind is executed normally, including compilation. The second step is
    captured as a graph, which is replayed in all later steps of the same kind. The graph contains
    the forward pass, the loss and the backward pass; gradient clipping and the optimizer are
    executed normally. Kernels and random numbers are the same as without a graph. In each process,
    only one net at a time can be trained with graphs.

    When a graph is replayed, the Python code of the modules does not run. Therefore, random numbers
    must be drawn with functions of torch, on the device of the batch. A step that synchronizes the
    CPU with the GPU, or draws random numbers on the CPU, cannot be captured. In this case, training
    runs without graphs, and a message is logged.

    Parameters
    ----------
    device : torch.device
        CUDA device on which the net is trained.
    modules : list of nn.Module
        The network and the loss.
    """

    #: Maximum number of kinds of steps. Steps of other kinds are executed normally.
    MAX_KINDS = 8

    def __init__(self, device: torch.device, modules: list[nn.Module]):
        self.device = device
        self.modules = modules
        self.steps: dict[Any, CapturedStep | None] = {}
        self.works = True
        self._pool: Any = None
        self._index = 0

    def __reduce__(self) -> tuple:
        return type(None), ()  # so that copies and pickles of a net do not contain graphs

    def run(self, step: Step, batch: tuple[Any, Any]) -> dict[str, Any]:
        """Run a step, or replay its graph if there is one, and accumulate the gradients.

        Parameters
        ----------
        step : callable
            Step to run on the batch.
        batch : tuple of x, y
            Input and target tensors. x may also be a dict of tensors, and y may be None.

        Returns
        -------
        dict of str to Any
            Output of the step. Its tensors are detached.
        """
        inputs = _tensors_of(batch)
        parts = [part for module in self.modules for part in module.modules()]
        parameters = [w for part in parts for w in part._parameters.values() if w is not None]
        weights: list[Tensor] = [*dict.fromkeys(parameters)]  # weights may be shared by modules
        kind = _kind_of(batch, inputs, weights, parts) if self.works else None
        if kind not in self.steps:
            if kind is not None and len(self.steps) < self.MAX_KINDS:
                self.steps[kind] = None
            # Detached, because a step cannot be captured while autograd refers to an earlier step.
            return _detached(step(batch))
        captured = self.steps[kind]
        if captured is None:
            try:
                captured = self.steps[kind] = self._capture(step, batch, weights)
            except Exception as error:  # after any error, training runs without graphs
                self.works = False
                self.steps.clear()
                name = type(self.modules[0]).__name__
                reason = f"{type(error).__name__}: {error}".splitlines()[0]
                log.info("Training of %s runs without CUDA graphs (%s).", name, reason)
        return _detached(step(batch)) if captured is None else captured.replay(inputs, weights)

    def _capture(self, step: Step, batch: tuple[Any, Any], weights: list[Tensor]) -> CapturedStep:
        """Run a step twice, then capture it. Weights, buffers and random states are restored."""
        if self._pool is None:
            index = self.device.index
            self._index = torch.cuda.current_device() if index is None else index
            self._pool = torch.cuda.graph_pool_handle()
        batch = map_tensors(partial(Tensor.to, device=self.device, copy=True), batch)
        # A step may change tensors that are not trained, such as a running mean. They are restored.
        state = [t for part in self.modules for t in (*part.parameters(), *part.buffers())]
        state_before = [tensor.detach().clone() for tensor in state]
        drawn_before = _states_on_cpu()
        gradients = [weight.grad for weight in weights]

        def run_step() -> dict[str, Any]:
            for weight in weights:
                weight.grad = None  # so that the graph does not accumulate gradients
            return _detached(step(batch))

        gc.collect()  # removes references of autograd to earlier steps on the default stream
        stream, graph = _side_stream(self._index), torch.cuda.CUDAGraph()
        try:
            with (
                torch.cuda.device(self._index),
                torch.random.fork_rng([self._index], device_type="cuda"),
            ):
                stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(stream):
                    run_step()
                    random_state = pickle.dumps(_states_on_cpu())
                    with _synchronization_is_an_error():
                        run_step()
                    if pickle.dumps(_states_on_cpu()) != random_state:
                        raise RuntimeError("random numbers are drawn on the CPU")
                    try:
                        # Threads that load data may use CUDA at the same time.
                        mode: Any = dict(capture_error_mode="thread_local")
                        with torch.cuda.graph(graph, pool=self._pool, stream=stream, **mode):
                            outputs = run_step()
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
            random.setstate(drawn_before[0])
            np.random.set_state(drawn_before[1])  # noqa: NPY002
            torch.set_rng_state(torch.from_numpy(drawn_before[2]))
        return CapturedStep(graph, _tensors_of(batch), outputs, captured)

    def _end_capture(self, graph: torch.cuda.CUDAGraph) -> None:
        """Restore the state of torch after a failed capture."""
        _FAILED.append(graph)
        with suppress(RuntimeError):  # torch may already have done this when the capture ended
            torch._C._cuda_endAllocateToPool(self._index, self._pool)
            torch._C._cuda_releasePool(self._index, self._pool)
        # Without these lines, the generator would raise an error outside a capture.
        generator = torch.cuda.default_generators[self._index]
        generator.graphsafe_set_state(generator.clone_state())

    def close(self) -> None:
        """Free the memory of the graphs. The last gradients are copied first, to keep them."""
        for module in self.modules:
            for weight in module.parameters():
                if self.steps and weight.grad is not None:
                    weight.grad = weight.grad.clone()
        self.steps.clear()


class CapturedStep(NamedTuple):
    """CUDA graph of a training step, with the tensors that the graph reads and writes.

    Attributes
    ----------
    graph : torch.cuda.CUDAGraph
        Graph to replay.
    inputs : list of Tensor
        Input tensors of the graph. Each batch is copied to these tensors.
    outputs : dict of str to Any
        Output of the step. Its tensors are overwritten in each replay.
    gradients : list of (Tensor | None)
        Gradient of each weight in this step, without the gradients of earlier steps.
    """

    graph: Any
    inputs: list[Tensor]
    outputs: dict[str, Any]
    gradients: list[Tensor | None]

    def replay(self, inputs: list[Tensor], weights: list[Tensor]) -> dict[str, Any]:
        """Replay the graph on new inputs, and accumulate gradients, see :meth:`StepGraphs.run`."""
        for place, new_input in zip(self.inputs, inputs, strict=True):
            place.copy_(new_input, non_blocking=True)
        # Gradients that were accumulated in earlier steps. The graph would overwrite them.
        earlier = [None if weight.grad is None else weight.grad.clone() for weight in weights]
        self.graph.replay()
        for weight, before, added in zip(weights, earlier, self.gradients, strict=True):
            if before is None or added is None:
                weight.grad = added if before is None else before
            else:
                weight.grad = before.add_(added)
        return map_tensors(torch.clone, self.outputs)  # callbacks may store the outputs


@cache
def _side_stream(index: int) -> torch.cuda.Stream:
    """Return the CUDA stream that is used for all captures on a device.

    The same stream is used for all captures, because torch reserves memory for each stream.
    """
    return torch.cuda.Stream(index)


def map_tensors(function: Callable[[Tensor], Tensor], value: Any) -> Any:
    """Return a copy of nested mappings and sequences, with a function applied to all tensors."""
    match value:
        case Tensor():
            return function(value)
        case Mapping():
            return {key: map_tensors(function, item) for key, item in value.items()}
        case tuple() | list():
            items = [map_tensors(function, item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _detached(outputs: dict[str, Any]) -> dict[str, Any]:
    return map_tensors(Tensor.detach, outputs)


def _tensors_of(batch: tuple[Any, Any]) -> list[Any]:
    """Return the tensors of a batch (x, y) as a list."""
    x, y = batch
    return [*(x.values() if isinstance(x, Mapping) else [x]), *([] if y is None else [y])]


def _kind_of(
    batch: tuple[Any, Any], inputs: list[Any], weights: list[Tensor], parts: list[nn.Module]
) -> tuple | None:
    """Return a key that contains all properties of a step on which its kernels depend.

    None is returned if the step cannot be captured: if there are hooks, or inputs that are not
    tensors.
    """
    has_hooks = any(getattr(part, hooks) for part in parts for hooks in _HOOKS)
    has_hooks |= any(w._backward_hooks or w._post_accumulate_grad_hooks for w in weights)
    if has_hooks or not all(isinstance(tensor, Tensor) for tensor in inputs):
        return None
    names = tuple(batch[0]) if isinstance(batch[0], Mapping) else None
    shapes = tuple((tensor.shape, tensor.dtype) for tensor in inputs)
    trained = tuple((weight.data_ptr(), weight.requires_grad) for weight in weights)
    return names, batch[1] is None, shapes, trained, tuple(map(_facts_of, parts))


def _facts_of(part: nn.Module) -> tuple:
    """Return the type of a module, the addresses of its buffers, and its scalar attributes."""
    buffers = tuple(b.data_ptr() for b in part._buffers.values() if b is not None)
    values = vars(part).values()
    plain = tuple(value for value in values if type(value) in _SCALARS)
    dicts = (value for value in values if type(value) is dict)
    facts = tuple(v for mapping in dicts for v in mapping.items() if type(v[1]) in _SCALARS)
    return type(part), buffers, plain, facts


def _states_on_cpu() -> tuple[Any, Any, Any]:
    """Return the states of the random number generators on the CPU."""
    return random.getstate(), np.random.get_state(), torch.get_rng_state().numpy()  # noqa: NPY002


@contextmanager
def _synchronization_is_an_error() -> Iterator[None]:
    """Raise an error if torch synchronizes the CPU with the GPU inside the context."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that this mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)
