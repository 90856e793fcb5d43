"""Cache of finished folds, so that an interrupted evaluation can be resumed.

A saved fold is reused if the following are unchanged: the parameters of the estimator; the samples,
labels and subjects of the data; and the versions of this package, braindecode, torch and
scikit-learn. Changes in user code are not detected, except in the file of a pretext task that is
specified as ``FILE.py:CLASS``, a class in a Python file of the user. Delete ``cache/`` in the
folder of the results after changing your code.
"""

import copy
import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import braindecode
import joblib
import numpy as np
import sklearn.base
import torch

import braindecode_pars
from braindecode_pars._common import checks, files, model_files, tables
from braindecode_pars._common.results_folder import ResultsFolder
from braindecode_pars.evaluation.splitting import Corpus, Fold, with_seed

#: Format and version of the settings file.
_FORMAT = {"format": "braindecode_pars scores", "version": 4}

#: Folder of an evaluation without ``out``. No method has a description, so nothing is saved.
NO_FOLDER = ResultsFolder(Path(), "no evaluation", {"methods": {}})


def open_folder(path: str | Path, settings: Mapping[str, Any]) -> ResultsFolder:
    """Open a folder of results, or create it.

    The folder has one JSON file for each finished fold in the subfolder ``cache``, see
    :func:`file_of`. A fold is one fit with its training and test windows. Each file is first
    written under a temporary name and then renamed, so that no file is incomplete. Each file
    contains a checksum of its content. Several processes may use the folder at the same time. To
    run all folds again, delete ``cache``.

    Parameters
    ----------
    path : path
        Folder of results.
    settings : mapping
        Settings on which all folds depend, see :func:`settings_of`. If the folder contains
        finished folds, a later run may add datasets and methods, but must not change the
        existing datasets and methods.

    Returns
    -------
    ResultsFolder
        Folder of results with these settings.

    Raises
    ------
    TypeError
        If ``path`` is not a path.
    ValueError
        If the folder contains results that were computed with different data or settings; the
        message lists the differences. If the folder contains results of another version of this
        package, a damaged settings file, or files of other programs.
    BlockingIOError
        If another process keeps the folder locked.
    """
    checks.instance("the path of a folder", str, Path).check("out", path)
    path = Path(path).expanduser()
    file = path / "cache" / "settings.json"
    marks = ["cache/settings.json"]
    # Users may delete the cache, but keep the table of scores. A table with this name may also
    # be from another program.
    table, header = path / "scores.csv", ",".join(tables.SCORES).encode()
    if table.is_file() and table.read_bytes().startswith(header):
        marks.append(table.name)
    folder = ResultsFolder(
        path,
        "an evaluation",
        {**_FORMAT, **settings},
        marks=tuple(marks),
        grows=("datasets", "methods"),
        allowed_files=("cache",),  # a killed process can leave an empty folder of this name
    )
    # Another process may add its methods at the same time.
    with folder.opened(exclusive=False):
        new_settings = folder.settings
        if any(fold != file for fold in file.parent.glob("*.json")):
            stored = files.read_json(file) if file.is_file() else {}
            new_settings = folder.check_settings(stored)
        files.replace_file(file, files.to_json(new_settings))
    return folder


def file_of(fold: Fold, folder: ResultsFolder) -> str | None:
    """Return the path of the file of a fold, relative to the folder of results.

    The file name contains a digest (short hash) of the data and settings. Returns None for a method
    without a description, whose folds are not saved.
    """
    content = _digest_of(fold, folder, fold.train, fold.test, fold.valid, fold.pretrain)
    if content is None:
        return None
    parts = [fold.method, fold.dataset, f"subject-{fold.subject}"]
    parts += [f"n{fold.n_train_subjects}", f"seed{fold.seed}"]
    name = _file_name("_".join(part for part in parts if part))
    return f"cache/{name}_{digest(fold.key, content)}.json"


def encoder_of(fold: Fold, folder: ResultsFolder) -> Path | None:
    """Return the folder of the pretrained encoder that a fold shares with other folds.

    The name of the folder contains a digest (short hash) of the data and settings. Returns None for
    a method without a description, whose encoders are not saved.
    """
    content = _digest_of(fold, folder, fold.pretrain)
    name = f"{_file_name(fold.method)}_{content}"
    return None if content is None else folder.path / "encoders" / name


def _digest_of(fold: Fold, folder: ResultsFolder, *windows: np.ndarray) -> str | None:
    """Return a digest of the data and method of a fold, and of the indices of its windows."""
    methods = folder.settings["methods"]
    if fold.method not in methods:
        return None
    settings = folder.settings["datasets"][fold.dataset], methods[fold.method]
    return digest(settings, *map(digest_array, windows))


def settings_of(folds: Sequence[Fold], corpora: Mapping[str, Corpus]) -> dict[str, Any]:
    """Describe the protocol, datasets and methods of folds, to detect changes between two calls.

    Returns
    -------
    dict
        ``protocol``: name of the protocol; ``datasets`` and ``methods``: descriptions by name, see
        :func:`describe_corpus` and :func:`describe_estimator`.

    Warns
    -----
    UserWarning
        If a method cannot be described, for example because a parameter is a lambda. Its folds are
        then not saved.
    """
    methods, reasons = {}, []
    for name, estimator in {fold.method: fold.estimator for fold in folds}.items():
        try:
            methods[name] = describe_estimator(estimator)
        except ValueError as error:
            reasons.append(f"{name} ({error})")
    if reasons:
        checks.warn_user(
            "The folds of some methods are not saved in out and will run again in every call, "
            "because the parameters of these methods cannot be compared between calls: "
            f"{', '.join(reasons)}. Replace each lambda, or other object without a fixed content, "
            "with a function or class that is defined in a module."
        )
    datasets = {name: describe_corpus(corpus) for name, corpus in corpora.items()}
    return dict(protocol=folds[0].protocol, datasets=datasets, methods=methods)


def _file_name(text: str) -> str:
    """Convert a text to the beginning of a file name, cut to a length that file systems allow."""
    return re.sub(r"[^\w.+=-]+", "-", text)[:120]


#: Parameters that do not affect the result of a fit.
_IGNORED_PARAMETERS = ("verbose", "n_jobs", "device")
#: Packages whose versions affect every result.
_PACKAGES = (braindecode_pars, braindecode, torch, sklearn)
#: Classes of random generators. Their state is ignored, as a seed is.
_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator, torch.Generator)
#: Attributes of every torch module that do not affect its output.
_MODULE_ATTRIBUTES = vars(torch.nn.Module()).keys() - {"_parameters", "_buffers", "_modules"}


def describe_estimator(estimator: sklearn.base.BaseEstimator) -> dict[str, Any]:
    """Describe all properties of an estimator that affect its predictions, to detect changes.

    Returns
    -------
    dict
        Class and parameters, also of nested estimators; digests (short hashes) of fitted attributes
        and of parameters that cannot be saved as JSON; and the versions of packages. The values can
        be saved as JSON.

    Raises
    ------
    ValueError
        If no digest of a parameter can be computed, for example because the parameter is a lambda.
    """
    # A protocol sets the seeds that are parameters. Other seeds, as in an augmentation, are part of
    # the description.
    unfitted = with_seed(sklearn.base.clone(estimator), 0)
    return {**_described(unfitted), "versions": versions()}


def versions() -> dict[str, str]:
    """Return the versions of packages that affect results, without CPU and GPU build suffixes."""
    return {package.__name__: package.__version__.split("+")[0] for package in _PACKAGES}


def describe_corpus(corpus: Corpus) -> dict[str, Any]:
    """Describe samples, labels, subjects, channels and recordings of a dataset, to detect changes.

    The description changes if any bit of any sample changes. For example, filtering on another
    machine can change the last digits of samples, and thus the description.

    Returns
    -------
    dict
        Sizes, names, and digests (short hashes) of long entries. There is one digest of the samples
        per subject. The values can be saved as JSON.
    """
    windows, recordings = corpus.X, corpus.X.recordings
    samples: dict[str, Any] = {}
    for i, subject in enumerate(corpus.groups.tolist()):
        window = windows[i]
        subject_hash = samples.setdefault(str(subject), hashlib.blake2b(digest_size=8))
        subject_hash.update(f"{window.dtype.str}{window.shape}".encode())
        subject_hash.update(window)
    descriptions = recordings[["corpus", "session", "split"]].astype(str)
    # Names, types and positions of the channels of each recording, and the bad channels
    sensors = [
        (
            [
                (ch["ch_name"], int(ch.get("kind", -1)), np.asarray(ch.get("loc", ())).tolist())
                for ch in montage.chs_info or ()
            ],
            sorted(montage.bads),
        )
        for montage in recordings["channels"]
    ]
    return {
        "n_windows": len(windows),
        "labels": digest(corpus.y.tolist()),
        "unlabeled_label": repr(corpus.unlabeled_label),
        "subjects": digest(corpus.groups.tolist()),
        "sfreq": windows.sfreq,
        "channels": [ch["ch_name"] for ch in windows.chs_info or ()],
        "sensors": digest(sensors),
        "descriptions": digest(descriptions.to_numpy().tolist()),
        "samples": {subject: hasher.hexdigest() for subject, hasher in samples.items()},
    }


def _described(value: Any) -> Any:
    """Describe a value with types that can be saved as JSON, identically in every process."""
    match value:
        case float() if not np.isfinite(value):
            return repr(value)
        case str() if checks.names_file(value):  # FILE.py:CLASS: file content, not its folder
            file, _, name = value.rpartition(":")
            path = Path(file).expanduser()
            return f"{name} {files.checksum_of_file(path)}" if path.is_file() else value
        case None | bool() | int() | float() | str():
            return value
        case np.generic():
            return _described(value.item())
        case np.ndarray() | torch.Tensor():
            return digest_array(value)
        case Mapping():
            return {str(_described(name)): _described(entry) for name, entry in value.items()}
        case list() | tuple():
            return [_described(entry) for entry in value]
    return _described_object(value)


def _described_object(value: Any) -> Any:
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if hasattr(value, "get_params"):
        return {"class": _described_object(type(value)), **_parameters(value)}
    name = getattr(value, "__name__", type(value).__name__)
    if isinstance(value, _GENERATORS):
        return name
    if isinstance(value, torch.nn.Module):
        state = {k: v for k, v in vars(value).items() if k not in _MODULE_ATTRIBUTES}
        return f"{name} {digest(_described(state))}"
    try:
        checksums = {joblib.hash(value), joblib.hash(copy.deepcopy(value))}
    except Exception as error:  # pickling can raise any exception
        raise ValueError(f"{name} cannot be pickled") from error
    if len(checksums) > 1:  # for example, an object with a torch tensor
        raise ValueError(f"{name} changes when it is copied")
    return f"{name} {checksums.pop()}"


def _parameters(estimator: Any) -> dict[str, Any]:
    """Describe the parameters of an estimator, and its fitted attributes if clone() keeps them."""
    sorted_params = sorted(estimator.get_params(deep=False).items())
    params = {name: value for name, value in sorted_params if name not in _IGNORED_PARAMETERS}
    for name in {"encoder", "weights"} & params.keys():
        if isinstance(params[name], str | Path):
            params[name] = _saved_encoder(params[name])
    learned = {k: v for k, v in vars(estimator).items() if re.fullmatch("[^_].*_", k)}
    net = getattr(estimator, "net_", estimator)
    module = getattr(net, "module_", getattr(estimator, "encoder_", None))
    if isinstance(module, torch.nn.Module):
        # The feature ensemble also has classifiers that use the features of its encoder.
        attributes = ("classes_", "views_", "tangent_space_", "recenter_")
        ensemble = {name: learned[name] for name in attributes if name in learned}
        learned = {"weights": module.state_dict(), **ensemble}
    if learned:
        params["learned"] = digest(_described(learned))
    return _described(params)


def _saved_encoder(encoder: str | Path) -> str:
    """Describe a saved encoder or weights by their content, independent of their path."""
    path = Path(encoder).expanduser()
    if path.is_file():
        return f"{path.name} {files.checksum_of_file(path)}"
    try:
        folder = model_files.model_folder(encoder)
    except (FileNotFoundError, ImportError):
        return str(encoder)  # fit raises the error
    paths = sorted(file for file in folder.rglob("*") if file.is_file())
    content = digest([(str(f.relative_to(folder)), files.checksum_of_file(f)) for f in paths])
    return f"{Path(encoder).name} {content}"


def digest(*parts: Any) -> str:
    """Return a short hash of 12 hexadecimal digits, which changes with the text of any part."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def digest_array(array: np.ndarray | torch.Tensor) -> str:
    """Return dtype, shape and a short hash of an array; the hash changes with every bit."""
    if isinstance(array, torch.Tensor):
        # Convert to bytes, because NumPy has no bfloat16.
        content = array.detach().cpu().to_dense().contiguous().reshape(-1).view(torch.uint8)
        return f"{array.dtype}{tuple(array.shape)} {files.checksum_of(content.numpy())}"
    return f"{array.dtype}{array.shape} {joblib.hash(np.ascontiguousarray(array))}"
