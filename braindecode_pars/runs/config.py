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


#: Setting of a run -> rule that checks the value of this setting.
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
    "encoder": checks.optional(checks.instance("the folder or the name of an encoder", str)),
    "drop_prob": checks.proportion(),
    # Same names as in encoder.TOKENIZERS, which is not imported because the import takes seconds.
    "tokenizer": checks.choice("linear", "spectral"),
    "exclude_subjects": checks.instance("a list of subjects", list, tuple),
    "seed": checks.integer(0),
    "num_workers": checks.optional(checks.integer(0)),
}

#: Settings that are suitable for two CPU cores and tens of subjects. They are the same as the
#: default settings of the estimators.
LAPTOP: dict[str, Any] = dict(
    epochs=None, batch_size=settings.BATCH_SIZE, lr=settings.LEARNING_RATE
)
LAPTOP |= dict(embed_dim=64, num_layers=2, num_heads=4, mlp_dim=128, tokenizer="spectral")


@dataclass(frozen=True)
class RunConfig(settings.PretrainingSettings):
    """Configuration of a pretraining run. The defaults are the settings of the paper (section 2.5).

    A configuration cannot be changed after it was created.

    Attributes
    ----------
    task, task_params, max_steps, minutes, sham, lr, weight_decay, warmup, precision, compile
        See :class:`~braindecode_pars.pretraining.PretrainingSettings`. ``task`` is the name of a
        pretext task in ``PRETEXT_TASKS``, or a task class in a Python file, such as
        ``"my_task.py:Slope"``. If a class is passed, the attribute contains the name of its task,
        without the file.
    epochs : int | None
        Number of epochs of the run. The learning rate increases linearly (warm-up), and then decays
        to zero as a cosine, over exactly this number of epochs. If None, the number of epochs
        depends on the data: a tenth of the subjects of the store (at least one) is held out, and
        the run continues as long as the loss on these subjects decreases. If the store has fewer
        than three subjects, or a subject is unknown, the loss on different crops of the training
        recordings is used instead. See :class:`~braindecode_pars.callbacks.HeldOutSchedule`.
    batch_size : int
        Number of examples (crops) in a training step, summed over all processes.
    device : "auto" | "cpu" | "cuda" | "mps"
        Device to train on. ``"auto"`` selects CUDA if available, otherwise MPS, otherwise the CPU.
    encoder : str | None
        Pretrained encoder from which the run starts: a folder, the name of a bundled encoder, or a
        model on the Hugging Face Hub (``"hf://owner/name"``); see
        :func:`~braindecode_pars.pretrained.load_encoder`. ``patch_seconds`` and the encoder
        arguments below are then ignored, because the sizes of this encoder are used. If None, a new
        encoder is trained.
    window_seconds : float | tuple of float
        Length in seconds of the crops (random excerpts) on which the encoder is trained. With
        several lengths, such as ``(10, 3)``, successive steps cycle through the lengths. For each
        length, there is a separate pretext task with its own head, whose loss is divided by its
        chance level. The number of windows in a pass over the data is computed for the longest
        length.
    patch_seconds : float
        Length of a patch in seconds.
    embed_dim, num_layers, num_heads, mlp_dim, drop_prob, tokenizer
        Arguments of :class:`~braindecode_pars.PatchEncoder`.
    steps_per_epoch : int | None
        Number of steps in an epoch. A checkpoint is written after each epoch. If None, an epoch is
        one pass over the data; if ``epochs`` is also None, an epoch has at most 250 steps.
    micro_batch_size : int | None
        Number of examples per forward pass. Gradients are averaged over the micro-batches of a
        step. Smaller micro-batches require less memory. The size of micro-batches hardly affects
        the result: it changes rounding errors and the random numbers of the pretext task, which are
        drawn for each micro-batch. If None, each process computes its part of a step in one
        micro-batch.
    exclude_subjects : tuple of str
        Subjects to exclude from pretraining, such as subjects on which the encoder will be tested.
    seed : int
        Seed of the initial weights, of the order of the data, of the random crops, and of the
        random numbers of the pretext task.
    num_workers : int | None
        Number of processes that load data for each training process. If None, up to four on a GPU,
        and none on the CPU.

    Raises
    ------
    ValueError, TypeError
        If a setting is out of range or has the wrong type.

    Examples
    --------
    Settings that are not passed have the values of the paper:

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
        # Import here: the import takes seconds, and --help needs only the default settings.
        from braindecode_pars.pretext.base import find_task

        options = vars(self)
        checks.check_parameters(options, _RULES)
        super().__post_init__()

        # Normalize the values, so that settings from Python can be compared with run.json.
        subjects = sorted(set(map(str, self.exclude_subjects)))
        # Store only the name of a task, not its file: run.json must not contain code to execute.
        task_class = find_task(self.task)
        task = task_class.name if checks.names_file(self.task) else self.task
        plain: dict[str, Any] = {"exclude_subjects": tuple(subjects), "task": task}
        # Convert NumPy scalars to Python numbers.
        plain |= {name: v.item() for name, v in options.items() if hasattr(v, "item")}
        if isinstance(self.window_seconds, list | tuple):
            lengths = tuple(map(float, self.window_seconds))
            plain["window_seconds"] = lengths if len(lengths) > 1 else lengths[0]
        for name, value in plain.items():
            object.__setattr__(self, name, value)  # the dataclass is frozen

    @property
    def lengths(self) -> tuple[float, ...]:
        """Lengths of the crops in seconds, in the order in which successive steps use them."""
        lengths = self.window_seconds
        return lengths if isinstance(lengths, tuple) else (lengths,)

    def in_samples(self, sfreq: float) -> list[int]:
        """Return the lengths of the crops in samples, in the order of :attr:`lengths`."""
        return [round(seconds * sfreq) for seconds in self.lengths]

    @classmethod
    def for_laptop(cls, **options: Any) -> Self:
        """Return a configuration with default settings that are small enough for a CPU.

        The default settings are the same as in :class:`~braindecode_pars.PARSEmbedder`: an encoder
        with two layers of 64 features and the spectral patch embedding, batches of 32 windows, and
        training as long as the loss on held-out subjects decreases (``epochs=None``).

        Parameters
        ----------
        **options
            Attributes of this class, which override the defaults.

        Returns
        -------
        RunConfig
            Configuration. All settings have been checked.

        Raises
        ------
        ValueError, TypeError
            If a setting is unknown, out of range, or has the wrong type.
        """
        from braindecode_pars.pretext.base import params_of  # takes seconds

        task_params = params_of(options.get("task", cls.task), options.get("task_params"))
        return cls(**{**LAPTOP, **options, "task_params": task_params})


@dataclass(frozen=True)
class SizedRunConfig(RunConfig):
    """Configuration of a run on a specific store and number of processes.

    Here, ``steps_per_epoch`` and ``micro_batch_size`` are always integers.
    """

    steps_per_epoch: int = 1
    micro_batch_size: int = 1
