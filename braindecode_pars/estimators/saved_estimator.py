"""Save and load fitted estimators with an encoder, without pickle.

The estimators use the functions :func:`save`, :func:`load`, :func:`from_pretrained`,
:func:`clone_with_encoder` and :func:`pretrained_card` as methods. A fitted estimator is stored as
an additional entry in the model file of its network or encoder (``_common.model_files``).
Parameters and labels are stored as JSON.
"""

import copy
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common import checks, computing, findings, model_files
from braindecode_pars._common.findings import Finding
from braindecode_pars.models import PARSNet, network_files
from braindecode_pars.pretext.base import PRETEXT_TASKS, find_task
from braindecode_pars.pretrained import cards, saved
from braindecode_pars.windows import amplitudes, transitions
from braindecode_pars.windows.preprocessing import Preprocessing


def save(self: Any, folder: str | Path, *, share: bool = False) -> Path:
    """Save the fitted model in a folder, without pickle.

    A single safetensors file contains all data that :meth:`load` reads: weights, labels,
    parameters, training history, the encoder card (metadata of the encoder) and a checksum. A
    JSON file in the same folder is for reading by humans: for PARSClassifier and PARSRegressor, it
    contains the arguments of the network; for other models, everything except the weights. The
    decoder of the pretext task is not saved. To use only the encoder of a saved model, pass the
    folder as ``encoder``, as in ``PARSClassifier(encoder=folder)``. ``PARSNet.from_pretrained``
    loads the network of a saved PARSClassifier.

    Parameters
    ----------
    folder : path
        Folder in which the model is saved. It is created if it does not exist. If the folder
        contains a model of the same kind (such as another PARSClassifier), this model is replaced.
    share : bool
        Whether to save the model for sharing. If True, the names of subjects (see
        :meth:`~braindecode_pars.pretrained.EncoderCard.without_names`) and paths are omitted, and a
        model card (``README.md``) is written if the folder contains none. If False, names and paths
        are saved, and no model card is written.

    Returns
    -------
    Path
        Path of the folder.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.
    OSError
        If the folder cannot be written. Each file then has either its previous or its new content.
    ValueError
        If a label is not a string, a number or a boolean. If the folder contains a model of a
        different kind, or contains files but no model. With ``share=True``, also if the folder
        contains files that do not belong to the model.
    """
    check_is_fitted(self)
    folder = Path(folder).expanduser()
    description, tensors = self._to_save()
    entry = description[model_files.ENTRIES[self._kind]]
    entry |= _fitted_to_json(self)
    if share:  # the text of a parameter may contain the path of a folder
        left_out = entry["parameters"]["left_out"]
        left_out |= dict.fromkeys(left_out, "...")
    model_files.check_may_save(folder, self._kind, share=share)
    write = saved.write_shared if share else model_files.write_model
    return write(folder, self._kind, description, tensors)


def load(cls: Any, folder: str | Path, *, device: str = "auto", strict: bool = True) -> Any:
    """Load a fitted estimator that was saved with :meth:`save`.

    The predictions or embeddings of the loaded estimator are identical to those of the saved
    estimator.

    Parameters
    ----------
    folder : path | str
        Folder of the model, or ``"hf://owner/name"`` to download it from the Hugging Face Hub.
    device : str
        Name of the torch device of the loaded model. The device of the saved model is ignored,
        because it may not be available on this machine.
    strict : bool
        Whether to raise an error if the tensors in the file differ from the tensors of the model in
        name or shape. If False, only the matching tensors are loaded, and ``load_report_`` lists
        the loaded and the missing tensors.

    Returns
    -------
    estimator
        The fitted estimator. A loaded PARSEmbedder has no attribute ``task_``.

    Raises
    ------
    FileNotFoundError
        If the folder or its model file does not exist.
    ValueError
        If a file is corrupt or was edited, or if the tensors in the file do not match the model
        that is described in the file.

    Warns
    -----
    UserWarning
        If parameters of the saved estimator cannot be restored, and therefore have their default
        values: objects that JSON cannot store, such as callbacks, and an ``encoder`` that is not
        the name of a bundled encoder. For security, a file must not determine which files a later
        ``fit`` reads, downloads, writes or executes. For the same reason, ``checkpoint_dir`` is
        never saved (without a warning), and a pretext task in a Python file is saved only by its
        short name: set ``pretext`` again before you refit the estimator.
    """
    model = model_files.read_model(folder, cls._kind)
    weights: Any = (
        network_files.network_from_file(PARSNet, model, strict=strict)
        if cls._kind in model_files.NETWORKS
        else saved.encoder_from_file(model, strict=strict)
    )
    computing.find_device(device)
    with model_files.described_in(model.source, cls.__name__):
        described = model.description[model_files.ENTRIES[cls._kind]]
        loaded: Any = _estimator_from_json(cls, described["parameters"])
        loaded.device = device
        loaded._restore(described, weights, model.tensors)
    return loaded


def from_pretrained(
    cls: Any, source: str | Path, *, device: str = "auto", strict: bool = True, **download: Any
) -> Any:
    """Load a fitted model from a folder, or download it from the Hugging Face Hub.

    Parameters
    ----------
    source : path | str
        Folder of the model, or model id on the Hub: ``"hf://owner/name"`` or ``"owner/name"``. With
        both forms of the id, a model that is not in the local cache is downloaded, whereas ``load``
        downloads only with the form ``"hf://owner/name"``. PARSEmbedder also accepts the name of a
        bundled encoder, such as ``"small"``.
    device, strict
        As in :meth:`PARSClassifier.load <braindecode_pars.PARSClassifier.load>`.
    **download
        Options of ``huggingface_hub.snapshot_download``: ``revision``, ``cache_dir``,
        ``force_download``, ``local_files_only`` and ``token``.

    Returns
    -------
    estimator
        The fitted estimator. If ``source`` contains only an encoder,
        ``PARSEmbedder.from_pretrained`` returns an embedder with this encoder.

    Raises
    ------
    FileNotFoundError, ValueError
        As in :meth:`PARSClassifier.load <braindecode_pars.PARSClassifier.load>`.
    ImportError
        If the model must be downloaded, but ``huggingface_hub`` is not installed.

    Examples
    --------
    >>> from braindecode_pars import PARSEmbedder
    >>> PARSEmbedder.from_pretrained("small").sfreq_
    128.0
    """
    if unknown := download.keys() - network_files.HUB_ARGUMENTS:
        raise TypeError(f"from_pretrained() got an unexpected keyword argument {min(unknown)!r}.")
    folder = model_files.model_folder(source, download=True, **download)
    if cls._kind == model_files.EMBEDDER and cls._kind not in model_files.kinds_in(folder):
        return cls._with_encoder(source, saved.load_encoder(folder, strict=strict), device)
    return cls.load(folder, device=device, strict=strict)


def clone_with_encoder(self: Any) -> Any:
    """Return an unfitted clone for scikit-learn that keeps the parameter ``encoder`` as is.

    By default, scikit-learn also clones the parameters of an estimator. An estimator passed as
    ``encoder`` would then no longer be fitted.
    """
    without_encoder = copy.copy(self)
    without_encoder.encoder = None
    cloned = BaseEstimator.__sklearn_clone__(without_encoder)
    cloned.encoder = self.encoder
    return cloned


def pretrained_card(self: Any) -> cards.EncoderCard | None:
    """Return the encoder card (metadata) of the parameter ``encoder``, or None without an encoder.

    None is also returned if the encoder cannot be loaded; ``fit`` then raises the error.
    """
    try:
        return None if self.encoder is None else saved.load_encoder(self.encoder).card
    except (OSError, TypeError, ValueError):
        return None


def windows_to_json(estimator: Any) -> dict[str, Any]:
    """Return the shape, sampling rate and channel names of the training windows, as JSON values.

    Models that contain no PARSNet save them; a PARSNet stores them itself.
    """
    return {
        "n_chans": estimator.n_chans_,
        "n_times": estimator.n_times_,
        "sfreq": estimator.sfreq_,
        "ch_names": [ch["ch_name"] for ch in estimator.chs_info_ or ()],
    }


#: Fitted numbers that only some estimators have: a regressor, and a model that a study has saved.
_NUMBERS = ("target_mean", "target_scale", "expected_score")


def _fitted_to_json(estimator: Any) -> dict[str, Any]:
    """Return the parameters and fitted attributes that all kinds of estimators save."""
    entries = {
        "parameters": _parameters_to_json(estimator),
        "preprocessing": estimator.preprocessing_.known(),
    }
    entries |= {n: getattr(estimator, f"{n}_") for n in _NUMBERS if hasattr(estimator, f"{n}_")}
    if hasattr(estimator, "amplitudes_"):
        entries["amplitudes"] = estimator.amplitudes_ and asdict(estimator.amplitudes_)
    if hasattr(estimator, "classes_"):
        classes = [c.item() if hasattr(c, "item") else c for c in estimator.classes_.tolist()]
        if not all(isinstance(label, (bool, int, float, str)) for label in classes):
            raise ValueError(
                f"Labels of type {type(classes[0]).__name__} cannot be saved. Refit with labels "
                "that are strings, numbers or booleans, or pickle the estimator."
            )
        names, matrix = estimator.class_names_, estimator.transitions_
        entries["classes"] = {"values": classes, "dtype": estimator.classes_.dtype.str}
        entries["class_names"] = names and list(names.values())
        entries["transitions"] = matrix and matrix.to_json()
    return entries


def fitted_from_json(described: dict[str, Any]) -> dict[str, Any]:
    """Return the fitted attributes from a model file, by name, as ``save`` stored them.

    Only the attributes that all kinds of estimators save are returned, such as ``classes_``.
    """
    fitted: dict[str, Any] = {f"{n}_": described[n] for n in _NUMBERS if n in described}
    fitted["sfreq_"] = described["windows"]["sfreq"]
    fitted["preprocessing_"] = Preprocessing.of(described["preprocessing"])
    if "amplitudes" in described:
        limits = described["amplitudes"]
        fitted["amplitudes_"] = limits and amplitudes.AmplitudeRange(**limits)
    if "classes" in described:
        classes, names = described["classes"], described["class_names"]
        labels = np.asarray(classes["values"], classes["dtype"])
        fitted["classes_"] = labels
        fitted["class_names_"] = names and dict(zip(labels.tolist(), names, strict=True))
        fitted["transitions_"] = transitions.Transitions.from_json(described["transitions"])
    return fitted


def _is_bundled(encoder: Any) -> bool:
    """Whether ``encoder`` is the name of a bundled encoder, and not also the name of a folder."""
    bundled = model_files.bundled_folder(encoder) if isinstance(encoder, str) else None
    return bundled is not None and model_files.model_folder(encoder) == bundled


def _parameters_to_json(estimator: BaseEstimator) -> dict[str, dict[str, Any]]:
    """Return the constructor arguments of an estimator in three dicts.

    The dict ``kept`` contains the arguments that can be stored as JSON. ``pairs`` contains
    arguments that are dicts with keys other than strings, as lists of pairs. ``left_out`` contains
    the text of all other arguments: objects that can be stored only with pickle (such as a task
    instance, an augmentation or a callback), and folders.
    """
    json_values, pairs, left_out = {}, {}, {}
    for name, value in estimator.get_params(deep=False).items():
        if name in ("checkpoint_dir", "device"):
            continue  # these parameters do not affect the result of a refit
        # Convert values that have an equivalent in JSON.
        if name == "pretext":  # the name of a registered task, or of a class in a file
            task = find_task(value) if checks.names_file(value) else value
            task_name = getattr(task, "name", "") if isinstance(task, type) else ""
            value = task_name if task_name and PRETEXT_TASKS.get(task_name) is task else value
        elif name == "preprocessing" and value is not None:
            value = Preprocessing.of(value).known()
        elif isinstance(value, np.generic):
            value = value.item()
        # Assign the value to one of the dicts.
        has_other_keys = isinstance(value, dict) and not all(isinstance(key, str) for key in value)
        stored = [*map(list, value.items())] if has_other_keys else value
        is_unsafe = name == "encoder" and value is not None and not _is_bundled(value)
        if is_unsafe or not _is_json(stored):
            left_out[name] = repr(value)
        elif has_other_keys:
            pairs[name] = stored
        else:
            json_values[name] = stored
    return {"kept": json_values, "pairs": pairs, "left_out": left_out}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _estimator_from_json(cls: type[BaseEstimator], described: dict[str, Any]) -> BaseEstimator:
    """Return an unfitted estimator with the saved parameters; warn about unsaved parameters.

    For security, a file must not determine what a later ``fit`` reads, downloads, writes or
    executes. Therefore, the folder of an encoder, ``checkpoint_dir`` and the file of a pretext task
    are ignored.
    """
    parameters, left_out = dict(described["kept"]), dict(described["left_out"])
    unsafe = {
        "encoder": not _is_bundled(parameters.get("encoder")),
        "checkpoint_dir": True,
        "pretext": checks.names_file(parameters.get("pretext")),
    }
    for name, is_unsafe in unsafe.items():
        if is_unsafe and parameters.get(name) is not None:
            left_out[name] = repr(parameters.pop(name))
    if left_out:
        names = ", ".join(f"{name}={text}" for name, text in left_out.items())
        findings.warn(Finding("unsaved_parameters", dict(parameters=names)))
    pairs = {name: dict(items) for name, items in described["pairs"].items()}
    return cls(**parameters, **pairs)
