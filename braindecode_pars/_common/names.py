"""Names that a part shows although a higher part has them, which it must not import.

``braindecode_pars.estimators.LinearProbe`` is a class in ``baselines``, and ``predict_raw`` of a
classifier is a function in ``predictions``. Such names are loaded when they are used.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_SOURCE = "git+https://github.com/braindecode/braindecode_pars"

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
    "plotting.person_in_features": "evaluation.audit_figures",
    "plotting.subject_dots": "evaluation.score_figures",
}

#: Packages that are not required, and the extra that installs each.
EXTRAS = {
    "accelerate": "scale",
    "pyriemann": "evaluation",
    "rich": "commands",
    "typer": "commands",
}


def lazy(path: str) -> Any:
    """Return what is behind a shown name.

    Parameters
    ----------
    path : str
        Name in :data:`LAZY`, such as ``"estimators.LinearProbe"``.

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
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: sorted(shown)
