"""One training: its device and seed, its steps, which CUDA may replay as graphs, and its net.

At the sizes of this package, a GPU waits for the launches of its kernels, thousands in a step. A
CUDA graph has them all, so that a step takes as long as its kernels do.
"""

from __future__ import annotations

import gc
import logging
import pickle
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import skorch
import torch
from torch import Tensor, nn

from braindecode_pars._common.checks import boolean, check_parameters, choice

log = logging.getLogger(__name__)

#: Held by the thread whose draws come from torch's generators.
_DRAWING = threading.RLock()
#: Default types before each thread that is in :func:`usual_torch`, and the lock of this list.
_DEFAULT_TYPES: list[torch.dtype] = []
_LOCK = threading.Lock()


def find_device(name: str | torch.device) -> torch.device:
    """Return a usable device; ``"auto"`` chooses CUDA, then MPS, then the CPU.

    Raises
    ------
    ValueError
        When the device cannot be used on this machine.
    """
    if not isinstance(name, str) or name != "auto":
        # Only an allocation shows that a device works; torch.device accepts absent ones.
        try:
            device = torch.empty(0, device=name).device
            if device.type == "meta":
                raise TypeError("it stores no data")
            return device
        except (RuntimeError, AssertionError, TypeError, ValueError) as error:
            raise ValueError(
                f"device={name!r} cannot be used here ({str(error).splitlines()[0]}); use 'auto'."
            ) from error
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def device_name(device: torch.device) -> str:
    """Return the name of a GPU, and the type of another device."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


@contextmanager
def usual_torch(gradients: bool = True) -> Iterator[None]:
    """Let torch make tensors of single precision on the CPU inside, with or without gradients.

    A program may have set another default type or device, or call this package without gradients
    or in mixed precision. The default type is global to the process: the last of several threads
    restores it.
    """
    with ExitStack() as stack:
        with _LOCK:
            _DEFAULT_TYPES.append(torch.get_default_dtype())
            torch.set_default_dtype(torch.float32)
        stack.callback(_restore_default_type)
        if torch.get_default_device().type != "cpu":  # the context slows each call of torch
            stack.enter_context(torch.device("cpu"))
        for kind in ("cpu", "cuda"):
            stack.callback(torch.set_autocast_enabled, kind, torch.is_autocast_enabled(kind))
            torch.set_autocast_enabled(kind, False)
        stack.enter_context(torch.inference_mode(not gradients))
        stack.enter_context(torch.set_grad_enabled(gradients))
        yield


def _restore_default_type() -> None:
    with _LOCK:
        torch.set_default_dtype(_DEFAULT_TYPES.pop())


@contextmanager
def seeded(
    seed: int, device: torch.device | str = "cpu", *, is_shared: bool = False
) -> Iterator[None]:
    """Seed torch on the CPU and on ``device`` inside the context, then restore its state.

    Its default type and gradients are the usual ones inside, see :func:`usual_torch`.

    The initial weights, dropout, crops and masks come from torch's global generators, since most of
    these functions of torch and of third-party models take no other generator. These are global to
    the process, so one thread at a time is in this context and the others wait.

    Parameters
    ----------
    seed : int
        Seed of the generators.
    device : torch.device | str
        Device whose generator is seeded as well.
    is_shared : bool
        Whether other threads may enter meanwhile, such as those that the code inside starts and
        waits for. Their draws then change those of this thread, but not the other way round.
    """
    device = torch.device(device)
    devices = [] if device.type == "cpu" else [device]
    kind = device.type if devices else "cuda"
    with ExitStack() as stack:
        stack.enter_context(_DRAWING)
        stack.enter_context(torch.random.fork_rng(devices, device_type=kind))
        stack.enter_context(usual_torch())
        # Not torch.manual_seed: it would seed every GPU, also those that are not used.
        torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())
        for seeded_device in devices:
            state = torch.Generator(seeded_device).manual_seed(seed).get_state()
            torch.get_device_module(seeded_device).set_rng_state(state, seeded_device)
        if is_shared:  # held again before the state is restored
            _DRAWING.release()
            stack.callback(_DRAWING.acquire)
        yield


@contextmanager
def tensor_cores(device: torch.device) -> Iterator[None]:
    """Allow TF32 on CUDA inside the context, unless torch's newer interface was used to set it."""
    before = None
    if device.type == "cuda":
        with suppress(RuntimeError):
            before = torch.get_float32_matmul_precision()
            torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        if before is not None:
            torch.set_float32_matmul_precision(before)


def n_parameters(module: nn.Module) -> int:
    """Return the number of parameters of a network."""
    return sum(parameter.numel() for parameter in module.parameters())


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
    modules : list of nn.Module
        The network and the loss.
    """

    #: Largest number of kinds; steps of others run as always.
    MOST = 8

    def __init__(self, device: torch.device, modules: list[nn.Module]):
        self.device, self.modules = device, modules
        self.steps: dict[Any, CapturedStep | None] = {}
        self.works = True
        self._pool: Any = None
        self._index = 0
        self._told = False

    def __reduce__(self) -> tuple:
        return type(None), ()  # a copy or a pickle of a net has no graphs

    def run(self, step: Step, batch: tuple[Any, Any]) -> dict[str, Any]:
        """Return what a step returns, detached, and add to the gradients of the weights.

        Parameters
        ----------
        step : callable
            The step.
        batch : tuple of x, y
            Tensors; x may also be a dict of tensors, and y None.

        Returns
        -------
        dict of str to Any
            Output of the step.
        """
        handled = sys.exception()
        inputs = _tensors_of(batch)
        parts = [part for module in self.modules for part in module.modules()]
        parameters = [w for part in parts for w in part._parameters.values() if w is not None]
        weights: list[Tensor] = [*dict.fromkeys(parameters)]  # some belong to two parts
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
                captured = self._capture(step, batch, weights)
                self.steps[kind] = captured
            except Exception as error:  # whatever it is, the step runs without a graph
                self.works = False
                self.steps.clear()
                cause: BaseException = error
                while cause.__context__ not in (None, handled):  # the first one
                    cause = cause.__context__
                network = self.modules[0]
                what = getattr(network, "shown_name", type(network).__name__)
                why = f"{type(cause).__name__}: {cause}".splitlines()[0]
                log.info("Training steps of %s run without a CUDA graph (%s).", what, why)
                del cause  # it keeps the memory of the capture
        return _detached(step(batch)) if captured is None else captured.replay(inputs, weights)

    def _capture(self, step: Step, batch: tuple[Any, Any], weights: list[Tensor]) -> CapturedStep:
        """Run a step twice without effects, then capture it."""
        if self._pool is None:
            index = self.device.index
            self._index = torch.cuda.current_device() if index is None else index
            self._pool = torch.cuda.graph_pool_handle()
        batch = map_tensors(partial(Tensor.to, device=self.device, copy=True), batch)
        # A step may change buffers, and weights that it does not train: a mean over steps.
        state = [t for part in self.modules for t in (*part.parameters(), *part.buffers())]
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
            random.setstate(drawn_before[0])
            np.random.set_state(drawn_before[1])  # noqa: NPY002
            torch.set_rng_state(torch.from_numpy(drawn_before[2]))
        return CapturedStep(graph, _tensors_of(batch), outputs, captured)

    def _end_capture(self, graph: torch.cuda.CUDAGraph) -> None:
        """Undo what a failed capture leaves behind in torch."""
        _FAILED.append(graph)
        with suppress(RuntimeError):  # the end of the capture may have done this
            torch._C._cuda_endAllocateToPool(self._index, self._pool)
            torch._C._cuda_releasePool(self._index, self._pool)
        # It would refuse to draw outside a capture.
        generator = torch.cuda.default_generators[self._index]
        generator.graphsafe_set_state(generator.clone_state())

    def close(self) -> None:
        """Free the graphs; the last gradients stay."""
        for module in self.modules:
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
        for place, new_input in zip(self.inputs, inputs, strict=True):
            place.copy_(new_input, non_blocking=True)
        # Gradients of an earlier part of the step, which the graph would overwrite.
        earlier = [None if weight.grad is None else weight.grad.clone() for weight in weights]
        self.graph.replay()
        for weight, before, added in zip(weights, earlier, self.gradients, strict=True):
            if before is None or added is None:
                weight.grad = added if before is None else before
            else:
                weight.grad = before.add_(added)
        return map_tensors(torch.clone, self.outputs)  # callbacks may keep them


@cache
def _side_stream(index: int) -> torch.cuda.Stream:
    """Return the stream of captures; one for all, since torch keeps memory for each."""
    return torch.cuda.Stream(index)


def map_tensors(function: Callable[[Tensor], Tensor], value: Any) -> Any:
    """Return a value with a function applied to the tensors in its mappings and sequences."""
    match value:
        case Tensor():
            return function(value)
        case Mapping():
            return {key: map_tensors(function, item) for key, item in value.items()}
        case tuple() | list():
            items = [map_tensors(function, item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _in_float32(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _detached(outputs: dict[str, Any]) -> dict[str, Any]:
    return map_tensors(Tensor.detach, outputs)


def _tensors_of(batch: tuple[Any, Any]) -> list[Any]:
    """Return the tensors of a batch."""
    x, y = batch
    return [*(x.values() if isinstance(x, Mapping) else [x]), *([] if y is None else [y])]


def _kind_of(
    batch: tuple[Any, Any], inputs: list[Any], weights: list[Tensor], parts: list[nn.Module]
) -> tuple | None:
    """Return what decides on the kernels of a step; None if it cannot be captured."""
    has_hooks = any(getattr(part, hooks) for part in parts for hooks in _HOOKS)
    has_hooks |= any(w._backward_hooks or w._post_accumulate_grad_hooks for w in weights)
    if has_hooks or not all(isinstance(tensor, Tensor) for tensor in inputs):
        return None
    names = tuple(batch[0]) if isinstance(batch[0], Mapping) else None
    shapes = tuple((tensor.shape, tensor.dtype) for tensor in inputs)
    trained = tuple((weight.data_ptr(), weight.requires_grad) for weight in weights)
    return names, batch[1] is None, shapes, trained, tuple(map(_facts_of, parts))


def _facts_of(part: nn.Module) -> tuple:
    """Return the type of a module, where its buffers are, and its plain attributes."""
    buffers = tuple(b.data_ptr() for b in part._buffers.values() if b is not None)
    values = vars(part).values()
    plain = tuple(value for value in values if type(value) in _SCALARS)
    dicts = (value for value in values if type(value) is dict)
    facts = tuple(v for mapping in dicts for v in mapping.items() if type(v[1]) in _SCALARS)
    return type(part), buffers, plain, facts


def _states_on_cpu() -> tuple[Any, Any, Any]:
    """Return the states of the random generators of the CPU."""
    return random.getstate(), np.random.get_state(), torch.get_rng_state().numpy()  # noqa: NPY002


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


_PRECISION_RULES = dict(precision=choice("float32", "bfloat16"), compile=boolean())


class TrainingNet(skorch.NeuralNet):
    """What the skorch nets of this package add to skorch, in the order of a training.

    A step is skorch's, in a precision of choice. AdamW uses its fused implementation. On CUDA,
    float32 matrix products use TF32 during training. TF32 also applies to the pair decoder, which
    never runs in bfloat16.

    skorch catches Ctrl-C and returns. A pipeline or a cross-validation would then continue with a
    partly trained net. Here training ends, with its callbacks, and KeyboardInterrupt is raised
    again. A loss that is not finite is an error.

    Parameters
    ----------
    precision : "float32" | "bfloat16"
        Precision of the forward pass (torch's autocast). Weights, gradients, optimizer state and
        losses are always float32.
    compile : bool
        Whether to compile the encoder and the decoder, which take most of the computing time.
        Compilation is in place: weights keep their names, and random draws stay outside the
        compiled code. The first steps then take up to a minute. On CUDA, in one process, steps are
        also captured as graphs, see :class:`~braindecode_pars._common.computing.StepGraphs`: what
        Python code of a module decides anew in each step then has no effect.
    *args, **kwargs
        Arguments of the skorch net.

    Raises
    ------
    TypeError, ValueError
        From ``initialize`` and ``fit``, when ``precision`` is unknown or ``compile`` is not True
        or False.
    KeyboardInterrupt
        From ``fit``, after Ctrl-C. The net keeps its current weights.
    ValueError
        From ``fit``, when the training loss is NaN or infinite, or all weights are frozen.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from skorch import NeuralNetRegressor
    >>> from braindecode_pars._common.computing import TrainingNet
    >>> class Net(TrainingNet, NeuralNetRegressor):
    ...     pass
    >>> net = Net(nn.Linear(1, 1), lr=0.1, train_split=None, verbose=0)
    >>> net.fit(np.ones((4, 1), "float32"), np.full((4, 1), np.nan, "float32"))
    Traceback (most recent call last):
        ...
    ValueError: The training loss became nan in epoch 1 of Net at learning rate 0.1; lower ...
    """

    def __init__(
        self,
        *args: Any,
        precision: str = "float32",
        compile: bool = False,  # noqa: A002  the name is skorch's
        **kwargs: Any,
    ):
        self.precision = precision
        super().__init__(*args, compile=compile, **kwargs)

    #: Graphs of the steps while the net trains, where they are captured.
    graphs_: StepGraphs | None = None

    @property
    def compute_device(self) -> torch.device:
        """Device of the training."""
        if self.device is None:  # skorch then does not move the module
            return next(self.module_.parameters()).device
        return torch.device(self.device)

    def _validate_params(self) -> None:
        super()._validate_params()
        check_parameters(vars(self), _PRECISION_RULES, type(self).__name__)

    def torch_compile(self, module: Any, name: str) -> Any:
        # skorch would compile the whole module, and with it the random draws.
        if self.compile and name == "module":
            for path, part in module.named_modules():  # also of the tasks of a joint task
                if path.rpartition(".")[2] in ("encoder", "decoder"):
                    part.compile(**self.get_params_for("compile"))
        return module

    def get_params_for_optimizer(self, *args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        args, kwargs = super().get_params_for_optimizer(*args, **kwargs)
        if self.compute_device.type != "mps" and issubclass(self.optimizer, torch.optim.AdamW):
            kwargs.setdefault("fused", True)
        return args, kwargs

    def partial_fit(self, *args: Any, **kwargs: Any) -> Any:
        # skorch catches Ctrl-C from its call of fit_loop on: only the end of the loop unsets this.
        self.interrupted_ = True
        super().partial_fit(*args, **kwargs)
        # EarlyStopping ends the loop as Ctrl-C does.
        kind = skorch.callbacks.EarlyStopping
        stopping = [cb for _, cb in self.callbacks_ if isinstance(cb, kind)]
        if self.interrupted_ and all(cb.misses_ != cb.patience for cb in stopping):
            raise KeyboardInterrupt
        return self

    def fit_loop(self, *args: Any, **kwargs: Any) -> Any:
        with tensor_cores(self.compute_device), self.captured_steps():
            fitted = super().fit_loop(*args, **kwargs)
        self.interrupted_ = False
        return fitted

    @property
    def _can_capture(self) -> bool:
        is_one_process = not isinstance(self.module_, nn.parallel.DistributedDataParallel)
        return self.compile and self.compute_device.type == "cuda" and is_one_process

    @contextmanager
    def captured_steps(self) -> Iterator[None]:
        """Capture the steps inside as CUDA graphs, where that is possible."""
        if self._can_capture:
            parts = (self.module_, self.criterion_)
            modules = [part for part in parts if isinstance(part, nn.Module)]
            self.graphs_ = StepGraphs(self.compute_device, modules)
        try:
            yield
        finally:
            if self.graphs_ is not None:
                self.graphs_.close()
            self.graphs_ = None

    def run_step(self, step: Step, batch: tuple[Any, Any]) -> dict[str, Any]:
        """Return ``step(batch)``, from a graph if there is one; batch is (x, y)."""
        return step(batch) if self.graphs_ is None else self.graphs_.run(step, batch)

    def train_step_single(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        step = partial(super().train_step_single, **fit_params)
        self._set_training(True)
        return step(batch) if fit_params else self.run_step(step, skorch.dataset.unpack_data(batch))

    def train_step(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        if not any(weights.requires_grad for weights in self.module_.parameters()):
            raise ValueError(
                f"{type(self).__name__} has nothing to train: all weights are frozen. Call "
                "requires_grad_(True) on those to train, and check callbacks such as Freezer."
            )
        step = super().train_step(batch, **fit_params)
        if not torch.isfinite(step["loss"]):
            raise ValueError(
                f"The training loss became {step['loss'].item()} in epoch {len(self.history)} of "
                f"{type(self).__name__} at learning rate {self.lr:g}; lower the learning rate."
            )
        return step

    def infer(self, *args: Any, **kwargs: Any) -> Any:
        enabled = self.precision == "bfloat16"
        with torch.autocast(self.compute_device.type, torch.bfloat16, enabled=enabled):
            # Inside a program's autocast, the weights of the last step would stay in its cache.
            torch.clear_autocast_cache()
            # Losses and scores need float32, and NumPy has no bfloat16.
            return map_tensors(_in_float32, super().infer(*args, **kwargs))
