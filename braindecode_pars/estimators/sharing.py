"""Fitted estimators as folders: for their owners, and for others without names.

Parameters and labels are stored as JSON, without pickle.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from braindecode_pars._common.checks import warn_user
from braindecode_pars._common.computing import find_device
from braindecode_pars._common.model_files import (
    EMBEDDER,
    ENTRIES,
    NETWORKS,
    check_may_save,
    described_in,
    model_folder,
    packaged_folder,
    read_model,
    write_model,
)
from braindecode_pars._common.settings import names_file
from braindecode_pars.estimators.transitions import Transitions
from braindecode_pars.models import PARSNet
from braindecode_pars.models.network_files import network_from_file
from braindecode_pars.pretext.base import PRETEXT_TASKS, find_task
from braindecode_pars.pretrained.cards import EncoderCard, read_card
from braindecode_pars.pretrained.model_card import write_shared
from braindecode_pars.pretrained.saved import pretrained_from_file
from braindecode_pars.recordings.preprocessing import Preprocessing
from braindecode_pars.windows.amplitudes import AmplitudeRange


class SavedEstimator:
    """Saving, loading and download of an estimator with an encoder."""

    encoder_card_: EncoderCard
    preprocessing_: Preprocessing
    n_chans_: int | None
    n_times_: int | None

    #: Kind of the model.
    _kind = EMBEDDER

    @abstractmethod
    def _to_save(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the description of the model, without what all kinds have, and its tensors."""

    @abstractmethod
    def _restore(self, described: dict[str, Any], loaded: Any, tensors: dict[str, Tensor]) -> None:
        """Set the further fitted attributes: from a PARSNet, or from an encoder with its card."""

    def save(self, folder: str | Path, *, share: bool = False) -> Path:
        """Write the fitted model into a folder, without pickle.

        One safetensors file contains everything that :meth:`load` reads: weights, labels,
        parameters, history, the card of the encoder and a checksum. A JSON file beside it is a copy
        of the arguments of the network, for people. ``PARSClassifier(encoder=folder)`` uses the
        encoder of the model, and ``PARSNet.from_pretrained`` reads the folder of a classifier. The
        decoder of the pretext task is not saved.

        Parameters
        ----------
        folder : path
            Folder of the model. It is created if it does not exist. A model of the same kind in it
            is replaced.
        share : bool
            Whether the folder is for others: without the names of subjects, see
            :meth:`~braindecode_pars.pretrained.EncoderCard.without_names`, without paths, and with
            a model card, ``README.md``, if there is none.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before ``fit``.
        OSError
            When the folder cannot be written. Its previous content is then unchanged.
        ValueError
            When labels are neither strings nor numbers. Also when the folder contains another
            model, or other files; with ``share``, any further file.
        """
        check_is_fitted(self)
        folder = Path(folder).expanduser()
        description, tensors = self._to_save()
        own = description[ENTRIES[self._kind]]
        own |= fitted_to_json(self)
        if share:
            # The text of an object may be the path of a folder.
            left_out = own["parameters"]["left_out"]
            left_out |= dict.fromkeys(left_out, "...")
            part = own if self._kind in NETWORKS else description
            part["pretraining"] = asdict(read_card(part["pretraining"]).without_names())
        check_may_save(folder, self._kind, share=share)
        write = write_shared if share else write_model
        return write(folder, self._kind, description, tensors)

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto", strict: bool = True) -> Self:
        """Load an estimator that :meth:`save` wrote.

        The loaded estimator makes exactly the same predictions or embeddings as the saved one.

        Parameters
        ----------
        folder : path | str
            Folder of the model, or ``"hf://owner/name"`` to download it from the Hugging Face Hub.
        device : str
            Device of the loaded model. The saved device is ignored, because this machine may not
            have it.
        strict : bool
            Whether to raise an error when the tensors in the file differ from those of the model.
            With False, the matching tensors are loaded and ``load_report_`` lists them.

        Returns
        -------
        estimator
            A fitted estimator. An embedder has no ``task_``.

        Raises
        ------
        FileNotFoundError
            When the folder or its model file does not exist.
        ValueError
            When a file is damaged or was edited, or when its tensors do not match the model it
            describes.

        Warns
        -----
        UserWarning
            When parameters were not saved. ``checkpoint_dir`` never is, and of ``encoder`` only the
            name of one in the package: a file must not decide where a refit reads, downloads or
            writes.
        """
        model = read_model(folder, cls._kind)
        weights: Any = (
            network_from_file(PARSNet, model, strict=strict)
            if cls._kind in NETWORKS
            else pretrained_from_file(model, strict=strict)
        )
        find_device(device)
        with described_in(model.source, cls.__name__):
            described = model.description[ENTRIES[cls._kind]]
            loaded: Any = parameters_from_json(cls, described["parameters"])
            loaded.device = device
            loaded.sfreq_ = described["windows"]["sfreq"]
            vars(loaded).update(fitted_from_json(described))
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
            unless it is in the local cache of the Hub. ``load`` searches only there for
            ``"owner/name"``.
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
            When a download needs ``huggingface_hub`` and it is not installed.

        Examples
        --------
        >>> from braindecode_pars import PARSEmbedder
        >>> PARSEmbedder.from_pretrained("small").sfreq_
        128.0
        """
        hub: dict[str, Any] = dict(revision=revision, cache_dir=cache_dir, token=token)
        hub |= dict(force_download=force_download, local_files_only=local_files_only)
        folder = model_folder(source, download=True, **hub)
        return cls._of_folder(folder, source, device=device, strict=strict)

    @classmethod
    def _of_folder(cls, folder: Path, source: str | Path, *, device: str, strict: bool) -> Self:
        return cls.load(folder, device=device, strict=strict)


#: Parameters that are never saved and never read: a file must not decide from where a refit reads
#: or downloads an encoder, and where it writes one. Neither which code it runs, as a pretext task.
_FOLDERS = ("encoder", "checkpoint_dir")


def _is_in_package(name: str, value: Any) -> bool:
    """Whether a parameter is the name of an encoder in the package, which no folder hides."""
    packaged = packaged_folder(value) if name == "encoder" and isinstance(value, str) else None
    return packaged is not None and model_folder(value) == packaged


_TARGETS = ("target_mean", "target_scale")


def fitted_to_json(estimator: Any) -> dict[str, Any]:
    """Return what is kept of every kind of estimator, and of its classes or targets."""
    targets = [name for name in _TARGETS if hasattr(estimator, f"{name}_")]
    entries = {
        "parameters": parameters_to_json(estimator),
        "preprocessing": estimator.preprocessing_.known(),
        **{name: getattr(estimator, f"{name}_") for name in targets},
    }
    if hasattr(estimator, "amplitudes_"):
        entries["amplitudes"] = estimator.amplitudes_ and asdict(estimator.amplitudes_)
    if hasattr(estimator, "classes_"):
        entries |= {
            "classes": labels_to_json(estimator.classes_),
            "class_names": estimator.class_names_ and list(estimator.class_names_.values()),
            "transitions": estimator.transitions_ and estimator.transitions_.to_json(),
        }
    return entries


def fitted_from_json(described: dict[str, Any]) -> dict[str, Any]:
    """Return the fitted attributes that :func:`fitted_to_json` has described."""
    fitted: dict[str, Any] = {f"{name}_": described[name] for name in _TARGETS if name in described}
    fitted["preprocessing_"] = Preprocessing.of(described["preprocessing"])
    if "amplitudes" in described:
        usual = described["amplitudes"]
        fitted["amplitudes_"] = usual and AmplitudeRange(**usual)
    if "classes" in described:
        names = described["class_names"]
        classes = np.asarray(described["classes"]["values"], described["classes"]["dtype"])
        fitted["classes_"] = classes
        fitted["class_names_"] = names and dict(zip(classes.tolist(), names, strict=True))
        fitted["transitions_"] = Transitions.from_json(described["transitions"])
    return fitted


def parameters_to_json(estimator: BaseEstimator) -> dict[str, dict[str, Any]]:
    """Return the constructor arguments of an estimator in three dicts.

    ``kept`` contains the arguments that JSON can store. ``pairs`` contains dicts whose keys are
    not strings, as lists of pairs. ``left_out`` contains the text of all other arguments. These
    are objects (a task instance, an augmentation, a callback) that only a pickle could store, and
    folders.
    """
    kept, pairs, left_out = {}, {}, {}
    for name, value in estimator.get_params(deep=False).items():
        # Convert what has an equivalent in JSON.
        if name == "pretext":
            value = _name_of(value)
        elif isinstance(value, (os.PathLike, torch.device)):
            value = str(value)
        elif isinstance(value, np.generic):
            value = value.item()
        elif name == "preprocessing" and value is not None:
            value = Preprocessing.of(value).known()
        # Choose the dict it belongs to.
        has_other_keys = isinstance(value, dict) and not _is_json(value)
        if name == "checkpoint_dir":
            continue  # does not change what a refit learns
        if name == "encoder" and value is not None and not _is_in_package(name, value):
            left_out[name] = repr(value)
        elif has_other_keys and _is_json([*value, *value.values()]):
            pairs[name] = list(map(list, value.items()))  # keys in JSON are always strings
        elif _is_json(value):
            kept[name] = value
        else:
            left_out[name] = repr(value)
    return {"kept": kept, "pairs": pairs, "left_out": left_out}


def _name_of(task: Any) -> Any:
    """Return the name of a registered task or of one in a file; another one as it is."""
    if names_file(task):
        return find_task(task).name
    name = getattr(task, "name", "") if isinstance(task, type) else ""
    return name if name and PRETEXT_TASKS.get(name) is task else task


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(inner) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_is_json, value))
    return value is None or type(value) in (bool, int, float, str)


def parameters_from_json(cls: type[BaseEstimator], described: dict[str, Any]) -> BaseEstimator:
    """Return an unfitted estimator with the saved parameters; warn about those not saved."""
    kept, left_out = dict(described["kept"]), dict(described["left_out"])
    if "recenter" not in cls().get_params(deep=False):  # of the PARS estimators up to 0.2.0
        kept.pop("recenter", None)
    code = ["pretext"] if names_file(kept.get("pretext")) else []
    for name in (*_FOLDERS, *code):
        if kept.get(name) is not None and not _is_in_package(name, kept[name]):
            left_out[name] = repr(kept.pop(name))
    if left_out:
        names = ", ".join(f"{name}={text}" for name, text in left_out.items())
        warn_user(
            f"These parameters are not saved, and have their defaults in another fit: {names}."
        )
    pairs = {name: dict(items) for name, items in described["pairs"].items()}
    return cls(**kept, **pairs)


def labels_to_json(labels: np.ndarray) -> dict[str, Any]:
    """Return labels and their dtype.

    Raises
    ------
    ValueError
        When labels are neither strings nor numbers.
    """
    values = [value.item() if hasattr(value, "item") else value for value in labels.tolist()]
    if not all(type(value) in (bool, int, float, str) for value in values):
        raise ValueError(
            f"Labels of type {type(values[0]).__name__} cannot be saved; fit on strings, integers "
            "or booleans, or pickle the estimator."
        )
    return {"values": values, "dtype": labels.dtype.str}
