"""One training: its device, its seed, its net with the step, and the number of parameters."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

import skorch
import torch
from accelerate.utils import convert_to_fp32

from braindecode_pars._common.checks import boolean, check_parameters, choice
from braindecode_pars._common.step_graphs import Step, StepGraphs


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
    or in mixed precision.
    """
    before = torch.get_default_dtype()
    with ExitStack() as stack:
        stack.callback(torch.set_default_dtype, before)
        torch.set_default_dtype(torch.float32)
        if torch.get_default_device().type != "cpu":  # the context slows each call of torch
            stack.enter_context(torch.device("cpu"))
        for kind in ("cpu", "cuda"):
            stack.callback(torch.set_autocast_enabled, kind, torch.is_autocast_enabled(kind))
            torch.set_autocast_enabled(kind, False)
        stack.enter_context(torch.inference_mode(not gradients))
        stack.enter_context(torch.set_grad_enabled(gradients))
        yield


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch on the CPU and on ``device`` inside the context, then restore its state.

    Its default type and gradients are the usual ones inside, see :func:`usual_torch`.

    The initial weights, dropout, crops and masks come from torch's global generators, since most of
    these functions of torch and of third-party models take no other generator. These are global to
    the process: fits in two of its threads change the draws of each other.
    """
    device = torch.device(device)
    devices = [] if device.type == "cpu" else [device]
    kind = device.type if devices else "cuda"
    with torch.random.fork_rng(devices, device_type=kind), usual_torch():
        # Not torch.manual_seed: it would seed every GPU, also those that are not used.
        torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())
        for each in devices:
            state = torch.Generator(each).manual_seed(seed).get_state()
            torch.get_device_module(each).set_rng_state(state, each)
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


_PRECISION_RULES = dict(precision=choice("float32", "bfloat16"), compile=boolean())


class TrainingNet(skorch.NeuralNet):
    """What the skorch nets of this package add to skorch, in the order of a training.

    A step is skorch's, in a precision of choice. On CUDA, AdamW uses its fused implementation, and
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
        also captured as graphs, see :class:`~braindecode_pars._common.step_graphs.StepGraphs`: what
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
    >>> net = Net(torch.nn.Linear(1, 1), lr=0.1, train_split=None, verbose=0)
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
        if self.compute_device.type == "cuda" and issubclass(self.optimizer, torch.optim.AdamW):
            kwargs.setdefault("fused", True)
        return args, kwargs

    def partial_fit(self, *args: Any, **kwargs: Any) -> Any:
        # skorch catches Ctrl-C from its call of fit_loop on: only the end of the loop unsets this.
        self.interrupted_ = True
        super().partial_fit(*args, **kwargs)
        # EarlyStopping ends the loop as Ctrl-C does.
        stopping = [
            cb for _, cb in self.callbacks_ if isinstance(cb, skorch.callbacks.EarlyStopping)
        ]
        if self.interrupted_ and all(cb.misses_ != cb.patience for cb in stopping):
            raise KeyboardInterrupt
        return self

    def fit_loop(self, *args: Any, **kwargs: Any) -> Any:
        with tensor_cores(self.compute_device), self.captured_steps():
            fitted = super().fit_loop(*args, **kwargs)
        self.interrupted_ = False
        return fitted

    @property
    def _trained_modules(self) -> list[torch.nn.Module]:
        parts = (self.module_, self.criterion_)
        return [part for part in parts if isinstance(part, torch.nn.Module)]

    @property
    def _can_capture(self) -> bool:
        is_one_process = not isinstance(self.module_, torch.nn.parallel.DistributedDataParallel)
        return self.compile and self.compute_device.type == "cuda" and is_one_process

    @contextmanager
    def captured_steps(self) -> Iterator[None]:
        """Capture the steps inside as CUDA graphs, where that is possible."""
        if self._can_capture:
            self.graphs_ = StepGraphs(self.compute_device)
        try:
            yield
        finally:
            if self.graphs_ is not None:
                self.graphs_.close(self._trained_modules)
            self.graphs_ = None

    def run_step(self, step: Step, batch: tuple[Any, Any]) -> dict[str, Any]:
        """Return ``step(batch)``, from a graph if there is one; batch is (x, y)."""
        if self.graphs_ is None:
            return step(batch)
        return self.graphs_.run(step, batch, self._trained_modules)

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
            return convert_to_fp32(super().infer(*args, **kwargs))


def n_parameters(module: torch.nn.Module) -> int:
    """Return the number of parameters of a network."""
    return sum(parameter.numel() for parameter in module.parameters())
