"""Registry of names: tasks, recipes, methods, controls, encoders, models, metrics and columns.

Each name has exactly one row in a table of this module. The choices and help texts of the commands,
and lists in the documentation, are generated from these rows, in the order of the rows. Only the
standard library is imported, so that ``--help`` is fast.

The module also defines lazy names. A lazy name is exported by one subpackage, but defined in
another subpackage that the first must not import. For example,
``braindecode_pars.estimators.LinearProbe`` is a class in ``baselines``, and ``predict_raw`` of a
classifier is a function in ``predictions``. Lazy names are imported on first use.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, Literal, TypeVar

_PACKAGE = __name__.partition(".")[0]
_SOURCE = "git+https://github.com/braindecode/braindecode_pars"


@dataclass(frozen=True)
class Entry:
    """Registered name of a pretext task, recipe, method, control analysis, model or encoder.

    Attributes
    ----------
    name : str
        Name, as passed by users.
    place : str
        Module in the package, and attribute in the module, such as ``"pretext.pars:PARS"``. Empty
        if the object is created by a function.
    description : str
        Short description, for help texts and documentation.
    flags : tuple of str
        Additional properties, such as ``"paper"`` for a pretext task that is compared in the PARS
        paper.
    """

    name: str
    place: str
    description: str
    flags: tuple[str, ...] = ()

    @property
    def attribute(self) -> str:
        """Name of the attribute in the module."""
        return self.place.partition(":")[2]

    def load(self) -> Any:
        """Import the module, and return the registered object."""
        return resolve_name(f"{_PACKAGE}.{self.place}")


Row = TypeVar("Row", "Metric", "Column")


def _by_name(*rows: Row) -> dict[str, Row]:
    """Return the rows of a table in a dict, by the name of each row."""
    return {row.name: row for row in rows}


def _entries(folder: str, *rows: tuple[str, ...]) -> dict[str, Entry]:
    """Create entries from rows. A row contains name, place in the folder, description and flags."""
    return {
        name: Entry(name, f"{folder}{place}" if place else "", description, tuple(flags))
        for name, place, description, *flags in rows
    }


#: Pretext tasks. The flag "paper" marks the tasks that are compared in the paper.
TASKS = _entries(
    "pretext.",
    ("pars", "pars:PARS", "predict time shifts between pairs of patches", "paper"),
    ("mae", "grid:MAE", "reconstruct the samples of masked patches", "paper"),
    ("spectral", "spectral:SpectralMAE", "predict the spectra of masked patches"),
    ("features", "features:SignalFeatures", "predict 31 hand-crafted features of the signal"),
    ("mp3", "grid:MP3", "predict the positions of all patches", "paper"),
    ("droppos", "grid:DropPos", "predict the masked positions of patches", "paper"),
    ("joint", "joint:Joint", "several pretext tasks with a shared encoder"),
    ("pars_space_time", "pars:SpaceTimePARS", "predict shifts in time and electrode position"),
    ("features_space_time", "features:SpaceTimeFeatures", "predict features of all channels"),
    ("spectral_space_time", "spectral:SpaceTimeSpectralMAE", "predict spectra of all channels"),
    ("joint_space_time", "joint:SpaceTimeJoint", "several pretext tasks on all channels"),
)

#: Recipes: a recipe reads a public corpus from its files, and preprocesses the recordings. The flag
#: "tuh" marks the corpora of Temple University Hospital, which share subjects.
RECIPES = _entries(
    "datasets.",
    ("eegmat", "eegmat:RECIPE", "mental arithmetic and rest"),
    ("eesm17", "eesm17:RECIPE", "sleep, ear-EEG"),
    ("physionet_mi", "physionet_mi:RECIPE", "motor imagery"),
    ("tuab", "tuab:RECIPE", "normal and abnormal clinical EEG", "tuh"),
    ("tueg", "tueg:RECIPE", "clinical EEG without labels", "tuh"),
    ("tusz", "tusz:RECIPE", "clinical EEG with epileptic seizures", "tuh"),
    ("ucddb", "ucddb:RECIPE", "sleep with suspected apnea"),
    ("ysyw", "ysyw:RECIPE", "sleep, PhysioNet/CinC Challenge 2018"),
)

#: Methods of ``baselines.make_methods`` that are not pretext tasks.
BASELINES = _entries(
    "",
    ("scratch", "", "PARS network trained from scratch, without pretraining"),
    ("few-labels", "", "feature ensemble: encoder features, tangent space, log band power"),
    ("probe", "", "linear probe on PARS features; every fit includes pretraining"),
    ("random-encoder", "", "linear probe on features of a randomly initialized encoder"),
    ("eegnet", "", "EEGNet with its published training settings"),
    ("shallow", "", "ShallowFBCSPNet with its published training settings"),
    ("band-power", "", "logistic regression on log band power"),
    ("tangent-space", "", "logistic regression in the Riemannian tangent space of covariances"),
    ("tangent-space-8-30", "", "tangent-space, after a band-pass filter from 8 to 30 Hz"),
    ("classical-features", "", "logistic regression on hand-crafted features"),
    ("slow-voltages", "", "linear discriminant analysis of low-frequency amplitudes"),
    ("amplitude", "", "logistic regression on log amplitude"),
)

#: Control analyses of ``evaluation.controls``, which repeat an evaluation on altered windows. The
#: description states how the windows are altered.
CONTROLS = _entries(
    "",
    ("slow", "", "high-pass filtered"),
    ("detrended", "", "detrended"),
    ("eyes", "", "EOG regressed out"),
    ("phase", "", "phase-randomized"),
    ("aperiodic", "", "1/f removed"),
    ("amplitude", "", "amplitude-normalized"),
    ("order", "", "time-shuffled"),
    ("labels", "", "permuted labels"),
)

#: Kinds of saved models, named after the class that loads the folder. The flags are "encoder" (the
#: files are encoder.safetensors and encoder.json), "network" (the model contains a fine-tuned
#: network) and "predictor" (the model predicts labels of windows).
MODEL_KINDS = _entries(
    "",
    ("PatchEncoder", "encoder:PatchEncoder", "encoder", "encoder"),
    ("PARSEmbedder", "estimators:PARSEmbedder", "embedder", "encoder"),
    ("PARSNet", "models:PARSNet", "network", "network"),
    ("PARSClassifier", "estimators:PARSClassifier", "classifier", "network", "predictor"),
    ("FewLabelsClassifier", "estimators:FewLabelsClassifier", "classifier", "predictor"),
    ("PARSRegressor", "estimators:PARSRegressor", "regressor", "network", "predictor"),
)


#: Bundled encoders: name, and folder in ``pretrained/shipped``. The name of the folder can also be
#: used as the name of the encoder. The encoder ``"small"`` was selected on development subjects. A
#: study uses encoders with the flag "sleep" only for windows of 20 s or longer.
ENCODERS = _entries(
    "",
    ("small", "features-eegmmidb", "pretrained on features and spectra"),
    ("pars-sleep", "pars-sleep", "pretrained with PARS on sleep", "sleep"),
)


@dataclass(frozen=True)
class Metric:
    """Metric that compares predictions with true labels.

    Attributes
    ----------
    name : str
        Name of the metric in tables of scores.
    description : str
        Short description, for help texts and documentation.
    chance : float | "1/n_classes" | None
        Chance level. None if the chance level depends on the proportions of the classes.
    needs : "labels" | "probabilities"
        Predictions that are compared with the true labels: predicted labels or class probabilities.
    several_classes : bool
        Whether the metric requires windows of at least two classes.
    """

    name: str
    description: str
    chance: float | Literal["1/n_classes"] | None = None
    needs: Literal["labels", "probabilities"] = "labels"
    several_classes: bool = False

    def chance_level(self, n_classes: int | None = None) -> float:
        """Return the chance level for a number of classes; NaN if the chance level is unknown."""
        if self.chance == "1/n_classes":
            return 1 / n_classes if n_classes else math.nan
        return math.nan if self.chance is None else self.chance


#: Metrics of predicted classes, in the order of help texts and tables.
METRICS = _by_name(
    Metric("kappa", "Cohen's kappa", 0.0, several_classes=True),
    Metric("balanced_accuracy", "mean recall over the classes in the test windows", "1/n_classes"),
    Metric("accuracy", "proportion of correctly classified windows"),
    Metric("f1", "mean F1 score over classes"),
    Metric("f1_weighted", "mean F1 score over classes, weighted by their number of windows"),
    Metric("auroc", "area under the ROC curve", 0.5, "probabilities", several_classes=True),
    Metric(
        "average_precision",
        "area under the precision-recall curve",
        needs="probabilities",
        several_classes=True,
    ),
)


@dataclass(frozen=True)
class Column:
    """Column of a table of scores.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : type
        Type of the values.
    description : str
        Short description of the values, for help texts and documentation.
    is_key : bool
        Whether the column is part of the key that identifies a score. No two scores in a table have
        the same key.
    is_optional : bool
        Whether a table is valid without the column.
    """

    name: str
    kind: type
    description: str
    is_key: bool = False
    is_optional: bool = False


_required_key = partial(Column, is_key=True)
_optional_key = partial(Column, is_key=True, is_optional=True)
_optional = partial(Column, is_optional=True)

#: Columns of tables of scores, in their order in tables and files. If a table has any other column,
#: such as a parameter that is varied in an ablation, this column is part of the key.
SCORES = _by_name(
    _required_key("protocol", str, "name of the evaluation protocol"),
    _required_key("dataset", str, "name of the dataset"),
    _required_key("method", str, "name of the method"),
    _required_key("subject", str, "test subject, or 'all' for all test windows pooled"),
    _required_key("n_train_subjects", int, "number of labeled training subjects"),
    _required_key("seed", int, "seed of the fit, and of the random draw of labeled subjects"),
    _required_key("metric", str, "name of the metric"),
    Column("value", float, "score; NaN if undefined"),
    _optional_key("test_subject_data", str, "which data of the test subject the method uses"),
    _optional_key("n_windows", int, "number of labeled windows of the test subject"),
    _optional_key("minutes", float, "duration of the labeled data of the test subject in minutes"),
    _optional_key("pretraining_seed", int, "seed of the pretraining"),
    _optional_key("control", str, "control analysis; 'none' for the recorded signals"),
    _optional("chance", float, "chance level; NaN if unknown"),
    _optional("why", str, "reason why the score is undefined; NaN if it is defined"),
    _optional("encoder_parameters", int, "number of parameters of the encoder"),
    _optional("pretraining_loss", float, "relative loss at the end of pretraining"),
    _optional("note", str, "how the control signals were computed"),
)

#: Lazy name -> module that defines the name. The first part of a lazy name is the subpackage that
#: exports the name.
LAZY = {
    "datasets.SignalStore": "signal_store.store",
    "datasets.is_store": "signal_store.index",
    "estimators.FewLabelsClassifier": "baselines.few_labels",
    "estimators.HMMSmoothing": "baselines.smoothing",
    "estimators.LinearProbe": "baselines.linear_probe",
    "estimators.NetworkClassifier": "baselines.network",
    "estimators.RiemannianCentering": "baselines.riemannian",
    "estimators.predict_raw": "predictions.recording",
    "evaluation.Study": "study.study_results",
    "evaluation.study": "study.study",
    "models.FOUNDATION_MODELS": "baselines.foundation",
    "models.InputFormat": "baselines.foundation",
    "plotting.ablation_lines": "evaluation.score_figures",
    "plotting.audit_map": "evaluation.audit_figures",
    "plotting.control_gains": "evaluation.score_figures",
    "plotting.hypnodensity": "predictions.night_figures",
    "plotting.hypnogram": "predictions.night_figures",
    "plotting.label_efficiency": "evaluation.score_figures",
    "plotting.night_page": "predictions.night_figures",
    "plotting.subjects_in_features": "evaluation.audit_figures",
    "plotting.subject_dots": "evaluation.score_figures",
}

#: Suffix that :func:`~braindecode_pars.baselines.make_methods` appends to the names of methods that
#: use subject-wise centering.
CENTERED = ", subject-centered (transductive)"

#: Optional packages, and the extra that installs each package.
EXTRAS = {
    "accelerate": "scale",
    "huggingface_hub": "zarr",
    "pyriemann": "evaluation",
    "rich": "commands",
    "typer": "commands",
    "zarr": "zarr",
}


def lazy(path: str) -> Any:
    """Import and return the object with a lazy name (a name of :data:`LAZY`).

    Parameters
    ----------
    path : str
        Key of :data:`LAZY`, such as ``"estimators.LinearProbe"``.

    Raises
    ------
    ImportError
        If an optional package is not installed. The message contains the command to install it.
    """
    return getattr(extra_module(f"{_PACKAGE}.{LAZY[path]}"), path.rpartition(".")[2])


def extra_module(name: str) -> Any:
    """Import an optional package, or a module that requires an optional package.

    Raises
    ------
    ImportError
        If the package is not installed. The message contains the command to install it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise with_extra(error) from None


def with_extra(error: ModuleNotFoundError) -> ImportError:
    """Return an ImportError with the command that installs the missing optional package.

    If the missing package is not an optional package of this package, ``error`` is returned.
    """
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return error
    return ModuleNotFoundError(
        f"The optional package {package} is not installed. Install it with: "
        f"pip install '{_PACKAGE}[{EXTRAS[package]}] @ {_SOURCE}'",
        name=error.name,
    )


def facade(
    package: str, shown: Iterable[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a subpackage with lazy names.

    A lazy name is imported from another subpackage on first use, see :data:`LAZY`.

    Parameters
    ----------
    package : str
        ``__name__`` of the subpackage.
    shown : iterable of str
        All names that the subpackage exports (its ``__all__``).
    """
    folder = package.rpartition(".")[2]

    def load(name: str) -> Any:
        if f"{folder}.{name}" in LAZY:
            return lazy(f"{folder}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: sorted(shown)
