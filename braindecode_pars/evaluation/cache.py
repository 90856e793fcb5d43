"""A folder of finished folds, from which an interrupted evaluation resumes.

A saved fold is used again as long as these are the same: the parameters of the estimator, the
samples, labels and subjects of the data, the versions of this package, braindecode, torch and
scikit-learn, and the source of the user's own classes and functions in the estimator.

Modules and other functions that this source uses do not count, nor do files that it reads. Delete
``cache/`` in the folder of the results when a helper of yours changed.
"""

import hashlib
import inspect
import random
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CellType, FunctionType
from typing import Any, Self

import braindecode
import numpy as np
import sklearn.base
import torch

import braindecode_pars
from braindecode_pars._common import checks, files, model_files, tables
from braindecode_pars.evaluation.splitting import Corpus, Fold, with_seed
from braindecode_pars.pretext import base

_FORMAT = {"format": "braindecode_pars scores", "version": 3}
#: Settings to which a later run may add entries.
_GROWING = ("datasets", "methods")


@dataclass(frozen=True)
class FoldStore:
    """Folder of results, with one JSON file for each fold in ``folder/cache``.

    Files are written under a temporary name and then renamed, so that no file is incomplete. Each
    file contains a checksum. Several processes may use the folder at the same time. ``cache`` can
    be deleted: everything is then computed again.

    Attributes
    ----------
    folder : Path
        Folder of results.
    settings : dict
        Protocol, datasets and methods of this run, as described by :func:`describe_corpus` and
        :func:`describe_estimator`.
    """

    folder: Path
    settings: Mapping[str, Any]

    @classmethod
    def open(cls, folder: str | Path, **settings: Any) -> Self:
        """Open a folder of results, or create it.

        Parameters
        ----------
        folder : path
            Folder of results.
        **settings
            Settings that all folds depend on. Once a fold is finished, a later run may add
            ``datasets`` and ``methods``, but must not change existing ones.

        Raises
        ------
        TypeError
            When ``folder`` is not a path.
        ValueError
            When the folder contains results of other data or settings (the message lists the
            differences), results of another version of this package, a settings file that is
            damaged, or files of other programs.
        BlockingIOError
            When another process does not release the folder.
        """
        folder = Path(folder).expanduser()
        file = folder / "cache" / "settings.json"
        # A killed process leaves an empty cache, and the cache of finished scores may be deleted.
        table, header = folder / "scores.csv", ",".join(tables.SCORES)
        is_ours = file.is_file() or (table.is_file() and table.read_text().startswith(header))
        files.check_may_write(folder, "an evaluation", is_ours=is_ours, beside=("cache",))
        # Another process may add its methods at the same moment.
        with files.locked(folder, f"{folder} is locked by another process.", wait=60):
            wanted = files.as_read(_FORMAT | settings)
            if any(fold != file for fold in file.parent.glob("*.json")):
                # Datasets and methods of the earlier and of this run, which must agree
                kept = files.read_json(file) if file.is_file() else {}
                before = {group: {} for group in _GROWING} | kept
                grown = {group: {**before[group], **wanted[group]} for group in _GROWING}
                again = {group: {n: grown[group][n] for n in before[group]} for group in _GROWING}
                if found := files.changed_settings(before, {**wanted, **again}):
                    raise ValueError(
                        f"{file.parent} contains results of other settings or data: "
                        f"{'; '.join(found[:3])}. Use another folder, or restore them to resume "
                        "this one."
                    )
                wanted |= grown
            files.replace_file(file, files.to_json(wanted))
        return cls(folder, settings)

    def file_of(self, fold: Fold) -> Path:
        """Return the file of a fold, whose name has a digest of all that its result depends on."""
        parts = [fold.method, fold.dataset, f"subject-{fold.subject}"]
        parts += [f"n{fold.n_train_subjects}", f"seed{fold.seed}"]
        name = _file_name("_".join(part for part in parts if part))
        content = self.digest_of(fold, fold.train, fold.test, fold.valid, fold.pretrain)
        return self.folder / "cache" / f"{name}_{digest(fold.key, content)}.json"

    def encoder_of(self, fold: Fold) -> Path:
        """Return the folder of the encoder that a fold shares, with a digest of its origin."""
        content = self.digest_of(fold, fold.pretrain)
        return self.folder / "encoders" / f"{_file_name(fold.method)}_{content}"

    def digest_of(self, fold: Fold, *windows: np.ndarray) -> str:
        """Return a digest of the data and method of a fold, and of the numbers of its windows."""
        settings = self.settings["datasets"][fold.dataset], self.settings["methods"][fold.method]
        return digest(settings, *map(digest_array, windows))


def _file_name(text: str) -> str:
    """Return a text as the beginning of a file's name, whose length file systems limit."""
    return re.sub(r"[^\w.+=-]+", "-", text)[:120]


#: Parameters that do not change what is learned.
_IMMATERIAL = ("verbose", "n_jobs", "device")
#: Packages whose version every result depends on.
_PACKAGES = (braindecode_pars, braindecode, torch, sklearn)
#: Like a seed, the state of these does not count.
_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator, torch.Generator)
#: Attributes of every torch module that do not change what it computes.
_OF_EVERY_MODULE = vars(torch.nn.Module()).keys() - {"_parameters", "_buffers", "_modules"}


def describe_estimator(estimator: sklearn.base.BaseEstimator) -> dict[str, Any]:
    """Describe everything about an estimator that its predictions depend on.

    Returns
    -------
    dict
        Class and parameters, those of inner estimators too; digests of other objects, and of what a
        given estimator has learned; the versions of packages; and a digest of the source of each of
        the user's classes and functions. As JSON takes them.
    """
    walk = _Walk()
    # A protocol sets the seeds among the parameters. Others, as in an augmentation, count.
    described = walk.describe(with_seed(sklearn.base.clone(estimator), 0))
    return {**described, "versions": versions(), "sources": walk.sources}


def versions() -> dict[str, str]:
    """Return the version of each package that counts; builds for CPU and GPU are one version."""
    return {package.__name__: package.__version__.split("+")[0] for package in _PACKAGES}


def describe_corpus(corpus: Corpus) -> dict[str, Any]:
    """Describe all samples, labels, subjects, channels and descriptions of a dataset.

    Every bit of every sample counts. Another machine may filter to other last digits; its windows
    are other windows.

    Returns
    -------
    dict
        Sizes and names as they are, and digests of what is long; of the samples, one for each
        subject. As JSON takes them.
    """
    windows, recordings = corpus.X, corpus.X.recordings
    samples: dict[str, Any] = {}
    for i, subject in enumerate(corpus.groups.tolist()):
        window = windows[i]
        of_subject = samples.setdefault(str(subject), hashlib.blake2b(digest_size=8))
        of_subject.update(f"{window.dtype.str}{window.shape}".encode())
        of_subject.update(window)
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
        "samples": {subject: found.hexdigest() for subject, found in samples.items()},
    }


class _Walk:
    """One walk over an estimator, everything that it holds, and the user's code in it.

    Attributes
    ----------
    sources : dict
        Digest of the source of each of the user's classes, with their base classes, and functions.
    """

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        # By identity; the objects are kept, so that no other object gets their identity.
        self._met: dict[int, tuple[Any, Any]] = {}

    def describe(self, value: Any) -> Any:
        """Describe a value as JSON takes it."""
        match value:
            case float() if not np.isfinite(value):
                return repr(value)
            case None | bool() | int() | float() | str():
                return value
            case np.generic():
                return self.describe(value.item())
            case np.ndarray() | torch.Tensor():
                return digest_array(value)
            case bytes():
                return digest(value)
            case Mapping():
                return {str(name): self.describe(each) for name, each in value.items()}
            case set() | frozenset():
                return sorted(map(self.describe, value), key=repr)
            case list() | tuple():
                return [self.describe(each) for each in value]
        if id(value) not in self._met:
            self._met[id(value)] = value, "itself"
            self._met[id(value)] = value, self._object(value)
        return self._met[id(value)][1]

    def _object(self, value: Any) -> Any:
        if isinstance(value, type | FunctionType):
            return self._code(value)
        kind = self.describe(type(value))
        if isinstance(value, _GENERATORS):
            return kind
        if hasattr(value, "get_params"):
            return {"class": kind, **self._parameters(value)}
        if isinstance(value, torch.nn.Module):  # also one that cannot be pickled
            state: Any = {k: v for k, v in vars(value).items() if k not in _OF_EVERY_MODULE}
        else:
            try:
                state = value.__reduce_ex__(4)  # what pickle would store
            except Exception:  # an object that cannot be pickled, such as a lock
                state = ()
            state = [list(part) if isinstance(part, Iterator) else part for part in state]
        return f"{type(value).__name__} {digest(kind, self.describe(state))}"

    def _code(self, thing: Any) -> str:
        """Return the name of a class or function, and a digest of what a function was made with."""
        for each in getattr(thing, "__mro__", [thing]):
            if is_own(each.__module__ or ""):
                self.sources[f"{each.__module__}.{each.__qualname__}"] = digest(_source_of(each))
        name = f"{thing.__module__}.{thing.__qualname__}"
        if not isinstance(thing, FunctionType):
            return name
        held = [cell.cell_contents for cell in thing.__closure__ or () if cell != CellType()]
        made_with: list[Any] = [thing.__defaults__, thing.__kwdefaults__, held]
        if "<lambda>" in name:  # several in a module have one name
            made_with += _source_of(thing)
        return f"{name} {digest(self.describe(made_with))}" if any(made_with) else name

    def _parameters(self, estimator: Any) -> dict[str, Any]:
        """Describe parameters, and what clone() does not remove of a fitted estimator."""
        given = sorted(estimator.get_params(deep=False).items())
        params = {name: value for name, value in given if name not in _IMMATERIAL}
        for name in {"encoder", "weights"} & params.keys():
            if isinstance(params[name], str | Path):
                params[name] = _saved_encoder(params[name])
        # Tasks of the user that are given by name or file, also as parts of a sum
        settings = params.get("pretext_params")
        parts = settings.get("tasks") if isinstance(settings, Mapping) else None
        own: list[type] = []
        for name in (params.get("pretext"), *(parts if isinstance(parts, Mapping) else ())):
            with suppress(ValueError):  # the fit will say so
                own += [base.find_task(name)] if isinstance(name, str) else []
        if own := [each for each in own if is_own(each.__module__)]:
            params["own_tasks"] = own  # their source counts
            if checks.names_file(params["pretext"]):
                params["pretext"] = own[0]  # wherever the file is
        learned = {k: v for k, v in vars(estimator).items() if re.fullmatch("[^_].*_", k)}
        net = getattr(estimator, "net_", estimator)
        module = getattr(net, "module_", getattr(estimator, "encoder_", None))
        if isinstance(module, torch.nn.Module):
            # The vote also has classifiers on the features of its encoder.
            kept = ("classes_", "views_", "tangent_space_", "recenter_")
            of_vote = {name: learned[name] for name in kept if name in learned}
            learned = {"weights": module.state_dict(), **of_vote}
        if learned:
            params["learned"] = digest(self.describe(learned))
        return self.describe(params)


def _source_of(thing: Any) -> list[str]:
    """Return the source of a class or function; of what was typed in, the code of its functions."""
    try:
        return [inspect.getsource(thing)]
    except (OSError, TypeError):
        if isinstance(thing, FunctionType):
            code = thing.__code__
            return [code.co_code.hex(), repr(code.co_names), repr(code.co_consts)]
        parts = vars(thing).values() if isinstance(thing, type) else ()
        functions = [part for part in parts if isinstance(part, FunctionType)]
        return [text for function in functions for text in _source_of(function)]


def _saved_encoder(encoder: str | Path) -> str:
    """Describe a saved encoder, or weights, by the content, not by the place."""
    if Path(encoder).expanduser().is_file():
        return f"{Path(encoder).name} {files.checksum_of_file(Path(encoder).expanduser())}"
    try:
        folder = model_files.model_folder(encoder)
    except (FileNotFoundError, ImportError):
        return str(encoder)  # the fit will say so
    found = sorted(file for file in folder.rglob("*") if file.is_file())
    content = digest([(str(f.relative_to(folder)), files.checksum_of_file(f)) for f in found])
    return f"{Path(encoder).name} {content}"


def is_own(module: str) -> bool:
    """Whether a module is the user's: not Python's, this package's or another installed one's."""
    top = module.partition(".")[0]
    if top == "__main__":  # a script or a notebook, whichever program runs it
        return True
    if top in sys.stdlib_module_names or top in ("", "builtins", "braindecode_pars"):
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return not (file and {"site-packages", "dist-packages"} & {*Path(file).parts})


def digest(*parts: Any) -> str:
    """Return twelve hexadecimal digits that change with the text of any part."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def digest_array(array: np.ndarray | torch.Tensor) -> str:
    """Return type, shape, and hexadecimal digits that change with every bit of the content."""
    if isinstance(array, torch.Tensor):
        # As bytes, because NumPy has no bfloat16.
        content = array.detach().cpu().to_dense().contiguous().reshape(-1).view(torch.uint8)
        return f"{array.dtype}{tuple(array.shape)} {files.checksum_of(content.numpy())}"
    if array.dtype.hasobject:
        return f"{array.dtype}{array.shape} {digest(array.tolist())}"
    return f"{array.dtype}{array.shape} {files.checksum_of(np.ascontiguousarray(array))}"
