"""Configuration of a pretraining run."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

from braindecode_pars._common import checks, settings
from braindecode_pars.paper import ENCODER, PRETRAINING

_SECONDS = checks.positive(1e12)


def _are_lengths(value: Any) -> bool:
    lengths = value if isinstance(value, list | tuple) else [value]
    for length in lengths:
        _SECONDS.check("window_seconds", length)
    return 0 < len(lengths) == len(set(lengths))


#: Setting of a run -> rule for its value.
_RULES = {
    **settings.RULES,
    **dict.fromkeys(("embed_dim", "num_layers", "num_heads", "mlp_dim"), checks.integer(1)),
    "epochs": checks.optional(checks.integer(1)),
    **dict.fromkeys(("lr", "patch_seconds"), _SECONDS),
    "window_seconds": checks.ParameterRule(
        "a number of seconds, or several different numbers", (Real, list, tuple), _are_lengths
    ),
    **dict.fromkeys(("steps_per_epoch", "micro_batch_size"), checks.optional(checks.integer(1))),
    "task": checks.instance("the name of a pretext task", str),
    "device": checks.choice("auto", "cpu", "cuda", "mps"),
    "encoder": checks.optional(checks.instance("a folder or the id of a model", str)),
    "drop_prob": checks.proportion(),
    # The keys of encoder.TOKENIZERS, whose import takes seconds.
    "tokenizer": checks.choice("linear", "spectral"),
    "exclude_subjects": checks.instance("a list of subjects", list, tuple),
    "seed": checks.integer(0),
    "num_workers": checks.optional(checks.integer(0)),
}

#: Settings for two CPU cores and tens of subjects, equal to the defaults of the estimators.
LAPTOP: dict[str, Any] = dict(
    epochs=None, batch_size=settings.BATCH_SIZE, lr=settings.LEARNING_RATE
)
LAPTOP |= dict(embed_dim=64, num_layers=2, num_heads=4, mlp_dim=128, tokenizer="spectral")


@dataclass(frozen=True)
class RunConfig(settings.PretrainingSettings):
    """Configuration of a pretraining run, by default with the settings of the paper (section 2.5).

    A configuration is immutable.

    Attributes
    ----------
    task, task_params, max_steps, minutes, sham, lr, weight_decay, warmup, precision, compile
        See :class:`~braindecode_pars.pretraining.PretrainingSettings`. ``task`` is a name in
        ``PRETEXT_TASKS``, or a class in a file, such as ``"my_task.py:Slope"``. A class in a file
        is replaced by the name of its task.
    epochs : int | None
        Number of epochs of the run and of the learning-rate schedule: linear warm-up, then cosine
        decay to zero. If None, a tenth of the subjects of the store (at least one) is held out. The
        run then continues while the held-out loss decreases, see
        :class:`~braindecode_pars.callbacks.HeldOutSchedule`.
    batch_size : int
        Number of examples in a step, summed over all processes.
    device : "auto" | "cpu" | "cuda" | "mps"
        Device to train on. ``"auto"`` selects CUDA if available, otherwise MPS, otherwise the CPU.
    encoder : str | None
        Pretrained encoder with which the run continues: a folder, the name of a bundled encoder or
        a model id; see :func:`~braindecode_pars.pretrained.load_encoder`. Its sizes replace
        ``patch_seconds`` and the encoder arguments below. If None, a new encoder is trained.
    window_seconds : float | tuple of float
        Length of the random crops in seconds. With several lengths, such as ``(10, 3)``,
        successive steps cycle through them. Each length has a separate task on the same encoder,
        with separate heads and chance level; the loss of each task is relative to its chance level.
        A pass over the data counts windows of the longest length.
    patch_seconds : float
        Length of a patch in seconds.
    embed_dim, num_layers, num_heads, mlp_dim, drop_prob, tokenizer
        Arguments of :class:`~braindecode_pars.PatchEncoder`.
    steps_per_epoch : int | None
        Number of steps in an epoch. A checkpoint is written after each epoch. If None, an epoch is
        one pass over the data.
    micro_batch_size : int | None
        Number of examples per forward pass. Gradients are averaged over the micro-batches of a
        step. Smaller micro-batches require less memory. The result changes only through rounding,
        and because the task draws random numbers per micro-batch. If None, each process computes
        its part of a step in one micro-batch.
    exclude_subjects : tuple of str
        Subjects to exclude from pretraining, such as future test subjects.
    seed : int
        Seed of the initial weights, the order of the data, the crops and the draws of the task.
    num_workers : int | None
        Number of data loading processes per training process. If None, up to four on a GPU and
        zero on the CPU.

    Raises
    ------
    ValueError, TypeError
        If a setting is out of range or of the wrong type.

    Examples
    --------
    >>> from braindecode_pars.runs import RunConfig
    >>> RunConfig(task="mae", epochs=100).batch_size
    512
    """

    epochs: int | None = PRETRAINING["max_epochs"]
    lr: float = PRETRAINING["lr"]
    batch_size: int = PRETRAINING["batch_size"]
    weight_decay: float = PRETRAINING["optimizer__weight_decay"]
    encoder: str | None = None
    window_seconds: float | tuple[float, ...] = 30.0
    patch_seconds: float = 1.0
    embed_dim: int = ENCODER["embed_dim"]
    num_layers: int = ENCODER["num_layers"]
    num_heads: int = ENCODER["num_heads"]
    mlp_dim: int = ENCODER["mlp_dim"]
    drop_prob: float = 0.0
    tokenizer: str = ENCODER["tokenizer"]
    steps_per_epoch: int | None = None
    micro_batch_size: int | None = None
    exclude_subjects: tuple[str, ...] = ()
    seed: int = 0
    num_workers: int | None = None

    def __post_init__(self) -> None:
        # This import takes seconds, and the help of the commands needs only the defaults.
        from braindecode_pars.pretext.base import find_task

        options = vars(self)
        checks.check_parameters(options, _RULES)
        super().__post_init__()

        # Normalize the values, so that equal settings from Python and run.json compare equal.
        subjects = sorted(set(map(str, self.exclude_subjects)))
        # Store only the name of a task from a file: a run must not specify code to execute.
        task_class = find_task(self.task)
        task = task_class.name if checks.names_file(self.task) else self.task
        plain: dict[str, Any] = {"exclude_subjects": tuple(subjects), "task": task}
        # NumPy scalars
        plain |= {name: v.item() for name, v in options.items() if hasattr(v, "item")}
        if isinstance(self.window_seconds, list | tuple):
            lengths = tuple(map(float, self.window_seconds))
            plain["window_seconds"] = lengths if len(lengths) > 1 else lengths[0]
        for name, value in plain.items():
            object.__setattr__(self, name, value)  # the dataclass is frozen

    @property
    def lengths(self) -> tuple[float, ...]:
        """Lengths of the crops in seconds, in the order of the steps."""
        lengths = self.window_seconds
        return lengths if isinstance(lengths, tuple) else (lengths,)

    def in_samples(self, sfreq: float) -> list[int]:
        """Return the lengths of the crops in samples, in the order of the steps."""
        return [round(seconds * sfreq) for seconds in self.lengths]

    @classmethod
    def for_laptop(cls, **options: Any) -> Self:
        """Return a configuration whose defaults are small enough for a CPU.

        The defaults are the same as in :class:`~braindecode_pars.PARSEmbedder`: two layers of 64
        features, the spectral patch embedding, batches of 32 windows, and training while the
        held-out loss decreases.

        Parameters
        ----------
        **options
            Attributes of this class, which override the defaults.

        Returns
        -------
        RunConfig
            Configuration with all settings checked.

        Raises
        ------
        ValueError, TypeError
            If a setting is unknown, out of range or of the wrong type.
        """
        from braindecode_pars.pretext.base import params_of  # takes seconds

        task_params = params_of(options.get("task", cls.task), options.get("task_params"))
        return cls(**{**LAPTOP, **options, "task_params": task_params})


@dataclass(frozen=True)
class SizedRunConfig(RunConfig):
    """Configuration of a run on specific data and processes, with all sizes set."""

    steps_per_epoch: int = 1
    micro_batch_size: int = 1
