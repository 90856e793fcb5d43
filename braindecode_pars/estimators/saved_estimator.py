"""Base class of estimators with an encoder: the start of their fit, saving and loading.

A fitted estimator is stored in the model file of its network or encoder (``_common.model_files``),
in a separate entry. Parameters and labels are stored as JSON; pickle is neither read nor written.
"""

import copy
import logging
import os
from abc import abstractmethod
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common import checks, computing, findings, model_files
from braindecode_pars._common.findings import Finding
from braindecode_pars.estimators import encoder_start, windows_estimator
from braindecode_pars.models import PARSNet, network_files
from braindecode_pars.pretext.base import PRETEXT_TASKS, find_task
from braindecode_pars.pretrained import cards, saved
from braindecode_pars.windows import Windows, amplitudes, transitions
from braindecode_pars.windows.preprocessing import Preprocessing

log = logging.getLogger(__name__)


#: Fitted attributes of some estimators: of a regressor, and of a model that a study has saved.
_OPTIONAL = ("target_mean", "target_scale", "expected_score")


class SavedEstimator(windows_estimator.WindowsEstimator):
    """Base class of estimators with an encoder: save, load and from_pretrained."""

    encoder: Any
    verbose: int
    n_chans_: int | None
    n_times_: int | None
    sfreq_: float | None
    chs_info_: list[dict] | None

    #: Kind of the model file.
    _kind = model_files.EMBEDDER

    def _start(self, windows: Windows) -> encoder_start.EncoderStart:
        """Load or build the encoder, and set the attributes of encoder and windows.

        Raises
        ------
        ValueError
            As in :func:`~braindecode_pars.estimators.encoder_start.load_or_build_encoder`.
        """
        start = encoder_start.load_or_build_encoder(self, windows)
        self.n_chans_, self.n_times_ = start.n_chans, start.n_times
        self.chs_info_, self.sfreq_ = windows.chs_info, start.sfreq
        self.encoder_card_ = start.card
        self.pretraining_history_: list[dict[str, Any]] = []
        self.preprocessing_ = windows_estimator.preprocessing_of(self, windows)
        if differing := start.card.differences(self.preprocessing_):
            listing = "; ".join(entry.text("in pretraining") for entry in differing)
            advice = windows_estimator.advice(differing, "preprocessing of the pretraining data")
            checks.warn_user(
                "Preprocessing of these windows differs from the pretraining data of the encoder: "
                f"{listing}. {advice}"
            )
        loaded = start.loaded_encoder
        if loaded is not None and loaded.report is not None:  # None if encoder is an object
            self.load_report_ = loaded.report
            if self.verbose:
                log.info("Encoder from %s: %s.", self.encoder, loaded.report)
        return start

    @abstractmethod
    def _to_save(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """Return the entries of the description that only this kind of model has, and the
        tensors."""

    def _windows_to_save(self) -> dict[str, Any]:
        """Return the attributes of the windows of ``fit``, to save a model without a PARSNet."""
        names = [ch["ch_name"] for ch in self.chs_info_ or ()]
        return dict(n_chans=self.n_chans_, n_times=self.n_times_, sfreq=self.sfreq_, ch_names=names)

    def _restore(
        self, described: dict[str, Any], loaded: Any, tensors: dict[str, torch.Tensor]
    ) -> None:
        """Set the fitted attributes from the description, and from a PARSNet or an encoder."""
        self.sfreq_ = described["windows"]["sfreq"]
        self.preprocessing_ = Preprocessing.of(described["preprocessing"])
        if "amplitudes" in described:
            entry = described["amplitudes"]
            self.amplitudes_ = entry and amplitudes.AmplitudeRange(**entry)
        if "classes" in described:
            classes, names = described["classes"], described["class_names"]
            self.classes_ = np.asarray(classes["values"], classes["dtype"])
            self.class_names_ = names and dict(zip(self.classes_.tolist(), names, strict=True))
            self.transitions_ = transitions.Transitions.from_json(described["transitions"])
        if "expected_score" in described:  # of a model that a study has saved
            self.expected_score_ = described["expected_score"]

    def _fitted_to_json(self) -> dict[str, Any]:
        """Return the fitted attributes and parameters that are saved for all kinds of estimators.

        :meth:`_restore` sets these attributes.
        """
        optional = [name for name in _OPTIONAL if hasattr(self, f"{name}_")]
        entries = {
            "parameters": parameters_to_json(self),
            "preprocessing": self.preprocessing_.known(),
            **{name: getattr(self, f"{name}_") for name in optional},
        }
        if hasattr(self, "amplitudes_"):
            entries["amplitudes"] = self.amplitudes_ and asdict(self.amplitudes_)
        if hasattr(self, "classes_"):
            classes = [c.item() if hasattr(c, "item") else c for c in self.classes_.tolist()]
            if not all(type(label) in (bool, int, float, str) for label in classes):
                raise ValueError(
                    f"Labels of type {type(classes[0]).__name__} cannot be saved. Fit on labels "
                    "that are strings, integers or booleans, or pickle the estimator."
                )
            entries |= {
                "classes": {"values": classes, "dtype": self.classes_.dtype.str},
                "class_names": self.class_names_ and list(self.class_names_.values()),
                "transitions": self.transitions_ and self.transitions_.to_json(),
            }
        return entries

    def __sklearn_clone__(self) -> Self:
        # scikit-learn also clones parameters, which would remove the fitted state of ``encoder``.
        without_encoder = copy.copy(self)
        without_encoder.encoder = None
        cloned = BaseEstimator.__sklearn_clone__(without_encoder)
        cloned.encoder = self.encoder
        return cloned

    def _pretrained_card(self) -> cards.EncoderCard | None:
        """Return the card of the encoder that was passed as ``encoder``; None without an encoder.

        None is also returned if the encoder cannot be loaded; ``fit`` then raises the error.
        """
        try:
            return None if self.encoder is None else saved.load_encoder(self.encoder).card
        except (OSError, TypeError, ValueError):
            return None

    def save(self, folder: str | Path, *, share: bool = False) -> Path:
        """Save the fitted model in a folder, without pickle.

        A single safetensors file contains all data that :meth:`load` reads: weights, labels,
        parameters, history, the encoder card and a checksum. A human-readable copy of the
        description is saved as a JSON file in the same folder. ``PARSClassifier(encoder=folder)``
        uses the encoder of the model, and ``PARSNet.from_pretrained`` reads the folder of a
        classifier. The decoder of the pretext task is not saved.

        Parameters
        ----------
        folder : path
            Folder of the model. It is created if it does not exist. An existing model of the same
            kind in this folder is replaced.
        share : bool
            Whether to save the model for sharing: without the names of subjects, see
            :meth:`~braindecode_pars.pretrained.EncoderCard.without_names`, without paths, and with
            a model card, ``README.md``, unless the folder already contains one.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before ``fit``.
        OSError
            If the folder cannot be written. Its previous content is then unchanged.
        ValueError
            If labels are neither strings nor numbers. Also when the folder contains a model of
            another kind, or files but no model. With ``share=True``, also when it contains any
            other file.
        """
        check_is_fitted(self)
        folder = Path(folder).expanduser()
        description, tensors = self._to_save()
        entry = description[model_files.ENTRIES[self._kind]]
        entry |= self._fitted_to_json()
        if share:  # the text of an object may contain the path of a folder
            left_out = entry["parameters"]["left_out"]
            left_out |= dict.fromkeys(left_out, "...")
        model_files.check_may_save(folder, self._kind, share=share)
        write = saved.write_shared if share else model_files.write_model
        return write(folder, self._kind, description, tensors)

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto", strict: bool = True) -> Self:
        """Load a fitted estimator that was saved with :meth:`save`.

        The loaded estimator yields exactly the same predictions or embeddings as the saved
        estimator.

        Parameters
        ----------
        folder : path | str
            Folder of the model, or ``"hf://owner/name"`` to download it from the Hugging Face Hub.
        device : str
            Device of the loaded model. The saved device is ignored, because it may not be available
            on this machine.
        strict : bool
            Whether to raise an error if the tensors in the file do not match the tensors of the
            model. If False, the matching tensors are loaded, and listed in ``load_report_``.

        Returns
        -------
        estimator
            Fitted estimator. An embedder has no ``task_``.

        Raises
        ------
        FileNotFoundError
            If the folder or its model file does not exist.
        ValueError
            If a file is corrupt or was edited, or when its tensors do not match the model that it
            describes.

        Warns
        -----
        UserWarning
            If parameters were not saved. For security, a file must not determine where a refit
            reads, downloads or writes files. Therefore ``checkpoint_dir`` is never saved, and
            ``encoder`` is saved only if it is the name of a bundled encoder.
        """
        model = model_files.read_model(folder, cls._kind)
        weights: Any = (
            network_files.network_from_file(PARSNet, model, strict=strict)
            if cls._kind in model_files.NETWORKS
            else saved.pretrained_from_file(model, strict=strict)
        )
        computing.find_device(device)
        with model_files.described_in(model.source, cls.__name__):
            described = model.description[model_files.ENTRIES[cls._kind]]
            loaded: Any = parameters_from_json(cls, described["parameters"])
            loaded.device = device
            loaded._restore(described, weights, model.tensors)
        return loaded

    @classmethod
    def from_pretrained(
        cls,
        source: str | Path,
        *,
        device: str = "auto",
        strict: bool = True,
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        force_download: bool = False,
        local_files_only: bool = False,
        token: str | None = None,
    ) -> Self:
        """Load a fitted model from a folder, or download it from the Hugging Face Hub.

        Parameters
        ----------
        source : path | str
            Folder of the model; or ``"hf://owner/name"`` or ``"owner/name"``, which is downloaded
            unless it is in the local cache of the Hub. In contrast, ``load`` searches for
            ``"owner/name"`` only in the local cache.
        device, strict
            As in :meth:`PARSClassifier.load <braindecode_pars.PARSClassifier.load>`.
        revision, cache_dir, force_download, local_files_only, token
            As in ``huggingface_hub.snapshot_download``.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        FileNotFoundError, ValueError
            As in :meth:`PARSClassifier.load <braindecode_pars.PARSClassifier.load>`.
        ImportError
            If a download requires ``huggingface_hub`` and it is not installed.

        Examples
        --------
        >>> from braindecode_pars import PARSEmbedder
        >>> PARSEmbedder.from_pretrained("small").sfreq_
        128.0
        """
        hub: dict[str, Any] = dict(revision=revision, cache_dir=cache_dir, token=token)
        hub |= dict(force_download=force_download, local_files_only=local_files_only)
        folder = model_files.model_folder(source, download=True, **hub)
        return cls._load_folder(folder, source, device=device, strict=strict)

    @classmethod
    def _load_folder(cls, folder: Path, source: str | Path, *, device: str, strict: bool) -> Self:
        return cls.load(folder, device=device, strict=strict)


#: Parameters that are never saved and never read, for security: a file must not determine from
#: where a refit reads or downloads an encoder, where it writes an encoder, or which code is run as
#: a pretext task.
_FOLDERS = ("encoder", "checkpoint_dir")


def _is_in_package(name: str, value: Any) -> bool:
    """Whether a parameter is the name of a bundled encoder, and no folder has the same name."""
    packaged = (
        model_files.bundled_folder(value) if name == "encoder" and isinstance(value, str) else None
    )
    return packaged is not None and model_files.model_folder(value) == packaged


def parameters_to_json(estimator: BaseEstimator) -> dict[str, dict[str, Any]]:
    """Return the constructor arguments of an estimator in three dicts.

    ``kept`` contains the arguments that can be stored in JSON. ``pairs`` contains dicts whose keys
    are not strings, as lists of pairs. ``left_out`` contains the text of all other arguments:
    objects that can be stored only with pickle (a task instance, an augmentation, a callback), and
    folders.
    """
    json_values, pairs, left_out = {}, {}, {}
    for name, value in estimator.get_params(deep=False).items():
        # Convert values that have an equivalent in JSON.
        if name == "pretext":  # the name of a registered task, or of a class in a file
            task = find_task(value) if checks.names_file(value) else value
            task_name = getattr(task, "name", "") if isinstance(task, type) else ""
            value = task_name if task_name and PRETEXT_TASKS.get(task_name) is task else value
        elif isinstance(value, (os.PathLike, torch.device)):
            value = str(value)
        elif isinstance(value, np.generic):
            value = value.item()
        elif name == "preprocessing" and value is not None:
            value = Preprocessing.of(value).known()
        # Assign the value to one of the dicts.
        if name == "checkpoint_dir":
            continue  # does not affect the result of a refit
        if name == "encoder" and value is not None and not _is_in_package(name, value):
            left_out[name] = repr(value)
        elif _is_json(value):
            json_values[name] = value
        elif isinstance(value, dict) and _is_json([*value, *value.values()]):
            pairs[name] = list(map(list, value.items()))  # keys of JSON objects are always strings
        else:
            left_out[name] = repr(value)
    return {"kept": json_values, "pairs": pairs, "left_out": left_out}


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(inner) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_is_json, value))
    return value is None or type(value) in (bool, int, float, str)


def parameters_from_json(cls: type[BaseEstimator], described: dict[str, Any]) -> BaseEstimator:
    """Return an unfitted estimator with the saved parameters; warn about unsaved parameters."""
    parameters, left_out = dict(described["kept"]), dict(described["left_out"])
    code = ["pretext"] if checks.names_file(parameters.get("pretext")) else []
    for name in (*_FOLDERS, *code):
        if parameters.get(name) is not None and not _is_in_package(name, parameters[name]):
            left_out[name] = repr(parameters.pop(name))
    if left_out:
        names = ", ".join(f"{name}={text}" for name, text in left_out.items())
        findings.warn(Finding("unsaved_parameters", dict(parameters=names)))
    pairs = {name: dict(items) for name, items in described["pairs"].items()}
    return cls(**parameters, **pairs)
