"""What has a name for users: tasks, recipes, methods, controls, metrics, columns; lazy names.

Everything with a name is a row of a table here, and only here. Registries, choices and help of the
commands, and lists in the documentation are derived from the rows, in their order. Only the
standard library is imported, so that ``--help`` is fast.

A part also shows names that a higher part has, which it must not import:
``braindecode_pars.estimators.LinearProbe`` is a class in ``baselines``, and ``predict_raw`` of a
classifier is a function in ``predictions``. Such names are loaded when they are used.
"""

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

_PACKAGE = __name__.partition(".")[0]
_SOURCE = "git+https://github.com/braindecode/braindecode_pars"


@dataclass(frozen=True)
class Entry:
    """Something that users name.

    Attributes
    ----------
    name : str
        Its name, as users write it.
    place : str
        Module below the package and the name there, such as ``"pretext.pars:PARS"``; empty for what
        is made by a function of the registry.
    says : str
        What it is, in a few words.
    flags : tuple of str
        Further properties, such as ``"paper"`` for a task of the paper.
    """

    name: str
    place: str
    says: str
    flags: tuple[str, ...] = ()

    @property
    def attribute(self) -> str:
        """Name in the module."""
        return self.place.partition(":")[2]

    def load(self) -> Any:
        """Import the module, and return what the place has."""
        module, _, attribute = self.place.partition(":")
        return getattr(import_module(f"{_PACKAGE}.{module}"), attribute)


def _entries(folder: str, *rows: tuple[str, ...]) -> dict[str, Entry]:
    """Return the entries of rows: name, place in the folder, words, and flags."""
    return {
        name: Entry(name, f"{folder}.{place}" if place else "", says, tuple(flags))
        for name, place, says, *flags in rows
    }


#: Pretext tasks. "paper" is a task that the paper compares.
TASKS = _entries(
    "pretext",
    ("pars", "pars:PARS", "relative shifts in time between pairs of patches", "paper"),
    ("mae", "grid:MAE", "samples of masked patches", "paper"),
    ("spectral", "spectral:SpectralMAE", "spectra of masked patches"),
    ("features", "features:SignalFeatures", "31 hand-crafted features of a signal"),
    ("mp3", "grid:MP3", "positions of all patches", "paper"),
    ("droppos", "grid:DropPos", "masked positions of patches", "paper"),
    ("joint", "joint:Joint", "several tasks with one encoder"),
    ("pars_space_time", "pars:SpaceTimePARS", "relative shifts in time and on the head"),
    ("features_space_time", "features:SpaceTimeFeatures", "features, from all channels"),
    ("spectral_space_time", "spectral:SpaceTimeSpectralMAE", "spectra, from all channels"),
    ("joint_space_time", "joint:SpaceTimeJoint", "several tasks on all channels"),
)

#: Corpora that are read from files. "tuh" are parts of one hospital, with subjects in common.
RECIPES = _entries(
    "datasets",
    ("eegmat", "eegmat:RECIPE", "mental arithmetic and rest"),
    ("eesm17", "eesm17:RECIPE", "sleep with electrodes in the ear"),
    ("physionet_mi", "physionet_mi:RECIPE", "imagined movements"),
    ("tuab", "tuab:RECIPE", "normal and abnormal clinical EEG", "tuh"),
    ("tueg", "tueg:RECIPE", "clinical EEG without labels", "tuh"),
    ("tusz", "tusz:RECIPE", "clinical EEG with epileptic seizures", "tuh"),
    ("ucddb", "ucddb:RECIPE", "sleep with suspected apnea"),
    ("ysyw", "ysyw:RECIPE", "sleep, PhysioNet challenge 2018"),
)

#: Methods of ``baselines.make_methods`` that are no pretext task.
BASELINES = _entries(
    "baselines",
    ("scratch", "", "the same network without pretraining"),
    ("few-labels", "", "mean of classifiers on a frozen encoder and hand-crafted features"),
    ("probe", "", "logistic regression on features of PARS, pretrained in every fit"),
    ("random-encoder", "", "logistic regression on an encoder with random initialization"),
    ("eegnet", "", "EEGNet with its published training"),
    ("shallow", "", "ShallowFBCSPNet with its published training"),
    ("band-power", "", "logistic regression on log band power"),
    ("tangent-space", "", "logistic regression in the tangent space of covariances"),
    ("tangent-space-8-30", "", "the same after a filter from 8 to 30 Hz"),
    ("classical-features", "", "logistic regression on hand-crafted features"),
    ("slow-voltages", "", "linear discriminant analysis of low-frequency amplitudes"),
    ("amplitude", "", "logistic regression on the log amplitude"),
)

#: Controls of ``evaluation.controls``: what the windows lack.
CONTROLS = _entries(
    "evaluation",
    ("slow", "", "low-frequency activity"),
    ("detrended", "", "a line in each window"),
    ("eyes", "", "what channels near the eyes predict"),
    ("phase", "", "waveform and timing"),
    ("aperiodic", "", "the aperiodic part of the spectra"),
    ("amplitude", "", "the amplitudes of channels and windows"),
    ("order", "", "the order of patches"),
    ("labels", "", "the association of labels and windows"),
)


@dataclass(frozen=True)
class Metric:
    """A metric of predictions.

    Attributes
    ----------
    name : str
        Its name in tables of scores.
    says : str
        What it is, in a few words.
    chance : float | "1/n_classes" | None
        Chance level; None if it depends on the proportions of the classes.
    needs : "labels" | "probabilities"
        Predictions that are compared with the true labels.
    several_classes : bool
        Whether it needs windows of at least two classes.
    """

    name: str
    says: str
    chance: float | Literal["1/n_classes"] | None = None
    needs: Literal["labels", "probabilities"] = "labels"
    several_classes: bool = False

    def chance_level(self, n_classes: int | None = None) -> float:
        """Return the chance level for a number of classes; NaN if it is unknown."""
        if self.chance == "1/n_classes":
            return 1 / n_classes if n_classes else math.nan
        return math.nan if self.chance is None else self.chance


#: Metrics of predicted classes; the order is that of help and tables.
METRICS = {
    metric.name: metric
    for metric in (
        Metric("kappa", "Cohen's kappa", 0.0, several_classes=True),
        Metric("balanced_accuracy", "mean recall of the classes that occur", "1/n_classes"),
        Metric("accuracy", "share of correct labels"),
        Metric("f1", "mean F1 of the classes"),
        Metric("f1_weighted", "F1 of the classes, weighted by their windows"),
        Metric("auroc", "area under the ROC curve", 0.5, "probabilities", several_classes=True),
        Metric(
            "average_precision", "area under precision over recall", None, "probabilities", True
        ),
    )
}


@dataclass(frozen=True)
class Column:
    """A column of tables of scores.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : type
        Type of its values.
    says : str
        What its values are, in a few words.
    is_key : bool
        Whether it tells scores apart. No two scores have the same values in all keys.
    is_optional : bool
        Whether tables may lack it, such as those of earlier versions.
    """

    name: str
    kind: type
    says: str
    is_key: bool = False
    is_optional: bool = False


#: Columns of scores, in the order of tables and files. Any further column is a key, such as a
#: parameter that an ablation varies.
SCORES = {
    column.name: column
    for column in (
        Column("protocol", str, "protocol", is_key=True),
        Column("dataset", str, "name of the windows", is_key=True),
        Column("method", str, "name of the estimator", is_key=True),
        Column("subject", str, "test subject, or 'all' for all test windows together", is_key=True),
        Column("n_train_subjects", int, "number of training subjects", is_key=True),
        Column("seed", int, "seed of the fit, and of the draw of labeled subjects", is_key=True),
        Column("metric", str, "name of the metric", is_key=True),
        Column("value", float, "score; NaN where it is undefined"),
        Column("test_subject_data", str, "data of the test subject that are used", True, True),
        Column("n_windows", int, "number of labeled windows of the test subject", True, True),
        Column("minutes", float, "labeled minutes of the test subject", True, True),
        Column("pretraining_seed", int, "seed of the pretraining", True, True),
        Column("control", str, "what the windows lack; 'none' for recorded signals", True, True),
        Column("chance", float, "chance level; NaN where it is unknown", is_optional=True),
        Column("why", str, "why the score is undefined; missing elsewhere", is_optional=True),
        Column(
            "encoder_parameters", int, "size of the encoder, where sizes differ", is_optional=True
        ),
        Column(
            "pretraining_loss", float, "last relative loss of the pretraining", is_optional=True
        ),
        Column("note", str, "how the windows of a control were made", is_optional=True),
    )
}

#: Shown name -> module that has it. A facade, such as ``estimators``, shows all of its names here.
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

#: Earlier name -> present name, which has the same meaning.
RENAMED = {
    "evaluation.ChangedSignals": "ControlSignals",
    "evaluation.LabelledSubjects": "LabeledSubjects",
    "evaluation.LabelledWindows": "LabeledWindows",
    "evaluation.SlowVoltages": "LowFrequencyAmplitude",
    "evaluation.audit_person": "audit_subjects",
    "plotting.person_in_features": "subjects_in_features",
}

#: What :func:`~braindecode_pars.baselines.make_methods` appends to the names of methods with
#: subject-wise centering.
CENTERED = ", subject-centered (transductive)"

#: Packages that are not required, and the extra that installs each.
EXTRAS = {
    "accelerate": "scale",
    "pyriemann": "evaluation",
    "rich": "commands",
    "typer": "commands",
}


def lazy(path: str) -> Any:
    """Return the object that a lower part shows by its name.

    Parameters
    ----------
    path : str
        Key of :data:`LAZY`, such as ``"estimators.LinearProbe"``.

    Raises
    ------
    ImportError
        When a package is missing. The message says how to install it.
    """
    try:
        return getattr(import_module(f"{_PACKAGE}.{LAZY[path]}"), path.rpartition(".")[2])
    except ModuleNotFoundError as error:
        raise with_extra(error) from None


def extra_module(name: str) -> Any:
    """Import a module of a package that an extra installs, which takes seconds for some.

    Raises
    ------
    ImportError
        When the package is missing. The message says how to install it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise with_extra(error) from None


def with_extra(error: ModuleNotFoundError) -> ImportError:
    """Return an error of a missing package that names the extra which installs it."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return error
    return ModuleNotFoundError(
        f"{package} is not installed. Install it with: "
        f"pip install '{_PACKAGE}[{EXTRAS[package]}] @ {_SOURCE}'",
        name=error.name,
    )


def facade(
    package: str, shown: Iterable[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a folder that shows names of higher parts.

    Parameters
    ----------
    package : str
        ``__name__`` of the folder.
    shown : iterable of str
        All names that the folder shows, its ``__all__``.
    """
    folder = package.rpartition(".")[2]

    def load(name: str) -> Any:
        if f"{folder}.{name}" in LAZY:
            return lazy(f"{folder}.{name}")
        if present := RENAMED.get(f"{folder}.{name}"):
            warnings.warn(f"{package}.{name} was renamed; use {present}.", FutureWarning, 2)
            return getattr(import_module(package), present)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: sorted(shown)
