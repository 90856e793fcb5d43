"""Devices, random seeds, and the base class of skorch nets."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

import skorch
import torch
from torch import Tensor, nn

from braindecode_pars._common import step_graphs
from braindecode_pars._common.checks import boolean, check_parameters, choice

#: Lock held by the thread that draws random numbers from the global generators of torch.
_DRAWING = threading.RLock()
#: Default dtypes to restore: one for each thread inside :func:`usual_torch`.
_DEFAULT_TYPES: list[torch.dtype] = []
#: Lock for changes of the list of default dtypes.
_LOCK = threading.Lock()


def find_device(name: str | torch.device) -> torch.device:
    """Return a device that can be used. ``"auto"`` selects CUDA, MPS or the CPU, in this order.

    Raises
    ------
    ValueError
        If the device cannot be used on this machine.
    """
    if not isinstance(name, str) or name != "auto":
        # torch.device accepts missing devices, so the device is checked by allocating a tensor.
        try:
            device = torch.empty(0, device=name).device
            if device.type == "meta":
                raise TypeError("a meta device stores no data")
            return device
        except (RuntimeError, AssertionError, TypeError, ValueError) as error:
            raise ValueError(
                f"device={name!r} cannot be used on this machine ({str(error).splitlines()[0]}). "
                "Use device='auto'."
            ) from error
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def device_name(device: torch.device) -> str:
    """Return the name of a CUDA device, or the type of any other device."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


@contextmanager
def usual_torch(gradients: bool = True) -> Iterator[None]:
    """Use the default settings of torch inside the context: float32, CPU, no autocast.

    The settings of the calling program may differ: it may have set a different default dtype or
    device, or may call this package inside ``no_grad`` or autocast. The default dtype is global to
    the process, so it is restored only when the last thread leaves the context.

    Parameters
    ----------
    gradients : bool
        Whether gradients are enabled inside the context.
    """
    with ExitStack() as stack:
        with _LOCK:
            _DEFAULT_TYPES.append(torch.get_default_dtype())
            torch.set_default_dtype(torch.float32)
        stack.callback(_restore_default_type)
        # Entered only if necessary, because this context slows down every torch call.
        if torch.get_default_device().type != "cpu":
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
    """Seed torch on the CPU and on ``device`` inside the context, and restore the state afterwards.

    Inside the context, torch uses its default settings, see :func:`usual_torch`.

    Initial weights, dropout, crops and masks are drawn from the global random generators of torch,
    because most functions of torch and of third-party models only support these generators. The
    generators are shared by all threads of the process, so only one thread at a time can be inside
    the context.

    Parameters
    ----------
    seed : int
        Seed of the generators.
    device : torch.device | str
        Device whose generator is also seeded.
    is_shared : bool
        Whether other threads may enter the context at the same time, for example threads that are
        started inside the context. If False, other threads wait until this thread leaves. If True,
        the random numbers of this thread depend on what the other threads draw.
    """
    device = torch.device(device)
    devices = [] if device.type == "cpu" else [device]
    kind = device.type if devices else "cuda"
    with ExitStack() as stack:
        stack.enter_context(_DRAWING)
        stack.enter_context(torch.random.fork_rng(devices, device_type=kind))
        stack.enter_context(usual_torch())
        # torch.manual_seed would seed all GPUs, including GPUs that are not used.
        torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())
        for seeded_device in devices:
            state = torch.Generator(seeded_device).manual_seed(seed).get_state()
            torch.get_device_module(seeded_device).set_rng_state(state, seeded_device)
        if is_shared:  # the lock is acquired again before the state of the generators is restored
            _DRAWING.release()
            stack.callback(_DRAWING.acquire)
        yield


@contextmanager
def tensor_cores(device: torch.device) -> Iterator[None]:
    """Allow TF32 on CUDA inside the context, unless the newer API of torch was used to set TF32."""
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


def _in_float32(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


_PRECISION_RULES = dict(precision=choice("float32", "bfloat16"), compile=boolean())


class TrainingNet(skorch.NeuralNet):
    """Base class of the skorch nets of this package: precision, compilation, CUDA graphs, checks.

    A TrainingNet differs from :class:`skorch.NeuralNet` as follows:

    - The forward pass is computed in the chosen precision.
    - AdamW uses its fused implementation, except on MPS.
    - On CUDA, float32 matrix products use TF32 during training. This includes the decoder of PARS,
      which compares pairs of patches and never runs in bfloat16.
    - After Ctrl-C, ``fit`` runs the callbacks and then raises KeyboardInterrupt, so that a pipeline
      or a cross-validation does not continue with a partially trained net. (``fit`` of skorch
      returns without an error.)
    - If the loss is not finite, ``fit`` raises an error.

    Parameters
    ----------
    precision : "float32" | "bfloat16"
        Precision of the forward pass (torch autocast). Weights, gradients, optimizer state and
        losses are always float32.
    compile : bool
        Whether to compile the encoder and the decoder, which take most of the computing time. The
        first steps then take up to a minute. Compilation does not change the names of the weights,
        and random numbers are drawn outside the compiled code. If training runs on CUDA in a single
        process, steps are also captured as CUDA graphs, see
        :class:`~braindecode_pars._common.step_graphs.StepGraphs`. Later steps replay the graphs
        without running the Python code of the modules, so the same operations run in every step.
    *args, **kwargs
        Arguments of :class:`skorch.NeuralNet`.

    Raises
    ------
    TypeError, ValueError
        From ``initialize`` and ``fit``, if ``precision`` is unknown or ``compile`` is not a bool.
    KeyboardInterrupt
        From ``fit``, after Ctrl-C. The net keeps its current weights.
    ValueError
        From ``fit``, if the training loss is NaN or infinite, or if all weights are frozen.

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
    ValueError: The training loss became nan in epoch 1 of Net at learning rate 0.1. Decrease ...
    """

    def __init__(
        self,
        *args: Any,
        precision: str = "float32",
        compile: bool = False,  # noqa: A002  the name is used by skorch
        **kwargs: Any,
    ):
        self.precision = precision
        super().__init__(*args, compile=compile, **kwargs)

    #: CUDA graphs of the training steps. None outside training, or if steps are not captured.
    graphs_: step_graphs.StepGraphs | None = None

    @property
    def compute_device(self) -> torch.device:
        """Device on which the net is trained."""
        if self.device is None:  # skorch does not move the module
            return next(self.module_.parameters()).device
        return torch.device(self.device)

    def _validate_params(self) -> None:
        super()._validate_params()
        check_parameters(vars(self), _PRECISION_RULES, type(self).__name__)

    def torch_compile(self, module: Any, name: str) -> Any:
        # skorch would compile the whole module, including the code that draws random numbers.
        if self.compile and name == "module":
            for path, part in module.named_modules():  # including the subtasks of a joint task
                if path.rpartition(".")[2] in ("encoder", "decoder"):
                    part.compile(**self.get_params_for("compile"))
        return module

    def get_params_for_optimizer(self, *args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        args, kwargs = super().get_params_for_optimizer(*args, **kwargs)
        if self.compute_device.type != "mps" and issubclass(self.optimizer, torch.optim.AdamW):
            kwargs.setdefault("fused", True)
        return args, kwargs

    def partial_fit(self, *args: Any, **kwargs: Any) -> Any:
        # skorch catches Ctrl-C in fit_loop, so interrupted_ is only set to False if the loop ends.
        self.interrupted_ = True
        super().partial_fit(*args, **kwargs)
        # EarlyStopping ends the loop in the same way as Ctrl-C, but is not an interruption.
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
        """Capture the training steps inside the context as CUDA graphs, if possible."""
        if self._can_capture:
            parts = (self.module_, self.criterion_)
            modules = [part for part in parts if isinstance(part, nn.Module)]
            self.graphs_ = step_graphs.StepGraphs(self.compute_device, modules)
        try:
            yield
        finally:
            if self.graphs_ is not None:
                self.graphs_.close()
            self.graphs_ = None

    def run_step(self, step: step_graphs.Step, batch: tuple[Any, Any]) -> dict[str, Any]:
        """Run a step on a batch (x, y), by replaying its CUDA graph if steps are captured."""
        return step(batch) if self.graphs_ is None else self.graphs_.run(step, batch)

    def train_step_single(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        step = partial(super().train_step_single, **fit_params)
        self._set_training(True)
        return step(batch) if fit_params else self.run_step(step, skorch.dataset.unpack_data(batch))

    def train_step(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        if not any(weights.requires_grad for weights in self.module_.parameters()):
            raise ValueError(
                f"{type(self).__name__} has no weights to train, because all of its weights are "
                "frozen. Call requires_grad_(True) on the weights that should be trained, and "
                "check callbacks that freeze weights, such as Freezer."
            )
        step = super().train_step(batch, **fit_params)
        if not torch.isfinite(step["loss"]):
            raise ValueError(
                f"The training loss became {step['loss'].item()} in epoch {len(self.history)} of "
                f"{type(self).__name__} at learning rate {self.lr:g}. Decrease the learning rate."
            )
        return step

    def infer(self, *args: Any, **kwargs: Any) -> Any:
        enabled = self.precision == "bfloat16"
        with torch.autocast(self.compute_device.type, torch.bfloat16, enabled=enabled):
            # If the caller uses autocast, weights of the last step may still be in its cache.
            torch.clear_autocast_cache()
            # Losses and scores require float32, and NumPy does not support bfloat16.
            return step_graphs.map_tensors(_in_float32, super().infer(*args, **kwargs))
