"""Save, load and share encoders and fitted estimators.

The format of model files is defined in ``_common.model_files``. PARSNet additionally has the
interface of braindecode, in ``models.network_files``. Cards, parameters and labels are stored as
JSON; pickle is neither read nor written. Shared models contain no names of subjects and no paths.
"""

import copy
import hashlib
import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common import checks, computing, files, findings, model_files
from braindecode_pars._common.findings import Finding
from braindecode_pars.encoder import PatchEncoder, activation_name
from braindecode_pars.models import PARSNet, network_files
from braindecode_pars.pretext.base import PRETEXT_TASKS, find_task
from braindecode_pars.pretrained import cards
from braindecode_pars.windows import amplitudes
from braindecode_pars.windows.preprocessing import Preprocessing


def save_encoder(
    encoder: PatchEncoder, card: cards.EncoderCard, folder: str | Path, *, share: bool = False
) -> Path:
    """Save an encoder and its card in a folder: ``encoder.safetensors`` and ``encoder.json``.

    ``encoder.safetensors`` contains the weights, the card and a checksum. ``encoder.json`` is a
    human-readable copy of the card, and can be used by other programs. Estimators save their
    encoders with ``PARSEmbedder.save`` and ``checkpoint_dir``. Use this function for encoders that
    were pretrained without an estimator.

    Parameters
    ----------
    encoder : PatchEncoder
        Encoder to save.
    card : EncoderCard
        Training data and pretext task of the encoder. Set ``subjects`` to its training subjects,
        or to None if they are unknown. An empty list means that the encoder has no training
        subjects.
    folder : path
        Folder of the encoder. It is created if it does not exist. An existing encoder in this
        folder is replaced.
    share : bool
        Whether to save the encoder for sharing: without the names of subjects, see
        :meth:`EncoderCard.without_names`, and with a model card, ``README.md``, unless the folder
        already contains one.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        When the activation of the encoder is not a class of ``torch.nn``, or its weights are not
        finite. Also when the folder contains another model or other files; with ``share=True``,
        when it contains any additional file.
    OSError
        When the folder cannot be written. Its previous content is then unchanged.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.pretrained import EncoderCard, save_encoder
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> card = EncoderCard(sfreq=100.0, task="pars", subjects=[1, 2], epochs=50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     folder = save_encoder(encoder, card, folder)
    ...     sorted(file.name for file in folder.iterdir())
    ['encoder.json', 'encoder.safetensors']
    """
    folder = Path(folder).expanduser()
    model_files.check_may_save(folder, model_files.ENCODER, share=share)
    write = write_shared if share else model_files.write_model
    return write(folder, model_files.ENCODER, describe_encoder(encoder, card), encoder.state_dict())


def encoder_digest(encoder: PatchEncoder) -> str:
    """Return a digest of the architecture and the weights of an encoder."""
    weights = [tensor.detach().cpu().numpy().tobytes() for tensor in encoder.state_dict().values()]
    return hashlib.sha256(b"".join([repr(encoder.config).encode(), *weights])).hexdigest()


def describe_encoder(encoder: PatchEncoder, card: cards.EncoderCard) -> dict[str, Any]:
    """Return the description of an encoder in a model file.

    Raises
    ------
    ValueError
        When the activation of the encoder is not a class of ``torch.nn``.
    """
    config = {**encoder.config, "activation": activation_name(encoder)}
    return {"encoder": config, "pretraining": asdict(card)}


def load_encoder(source: Any, *, strict: bool = True) -> cards.Pretrained:
    """Load a pretrained encoder from a folder, the package, the Hugging Face Hub or an object.

    Parameters
    ----------
    source : str | Path | object
        Source of the encoder, one of the following:

        - A folder written by :func:`save_encoder`, ``PARSEmbedder.save``, ``PARSClassifier.save``,
          ``PARSNet.save_pretrained`` or :func:`runs.pretrain <braindecode_pars.runs.pretrain>`, or
          the ``.safetensors`` file in this folder.
        - The name of a bundled encoder, such as ``"small"``; :func:`packaged_encoders` lists the
          names. If a folder with this name exists, the folder is used.
        - A model on the Hugging Face Hub: ``"hf://owner/name"`` downloads it, ``"owner/name"`` uses
          a previous download.
        - A PatchEncoder.
        - A fitted object with an encoder: an estimator (``.encoder_``), a skorch net
          (``.module_.encoder``) or a model (``.encoder``).
    strict : bool
        Whether to raise an error if the tensors in the file do not match the tensors of the
        encoder. If False, the matching tensors are loaded, and listed in ``report``.

    Returns
    -------
    encoder : PatchEncoder
        Encoder: a new object if it was loaded from a folder, otherwise the encoder of the object
        that was passed, not a copy.
    card : EncoderCard
        Training data of the encoder. Its subjects are None (unknown) if the source has no card.
    report : LoadReport | None
        Tensors that were loaded; None if an object was passed.

    Raises
    ------
    FileNotFoundError
        When the folder or its model file does not exist. For an unknown name, the message lists the
        names of the bundled encoders.
    ValueError
        When a file is corrupt, or when its tensors do not match the encoder that it describes. The
        message contains the number of matching tensors.
    TypeError
        When the source has another type.
    ImportError
        When a download requires ``huggingface_hub`` and it is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.pretrained import (
    ...     EncoderCard, load_encoder, save_encoder
    ... )
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> card = EncoderCard(sfreq=100.0, subjects=[1, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     folder = save_encoder(encoder, card, folder)
    ...     loaded, card, report = load_encoder(folder)
    >>> card.subjects, str(report)
    ([1, 2], '20 of 20 tensors loaded')
    """
    # The folder or the name of an encoder, an embedder, a classifier or a PARSNet
    if isinstance(source, (str, Path)):
        return pretrained_from_file(model_files.read_model(source), strict=strict)

    # An object that contains an encoder, or an encoder
    for owner in (source, getattr(source, "module_", None)):
        for name in ("encoder_", "encoder"):
            encoder = getattr(owner, name, None)
            if isinstance(encoder, PatchEncoder):
                card = getattr(source, "encoder_card_", None) or cards.unknown_card(owner)
                return cards.Pretrained(encoder, card, None)
    if isinstance(source, PatchEncoder):
        return cards.Pretrained(source, cards.unknown_card(source), None)
    is_unfitted = hasattr(source, "fit") and not hasattr(source, "module_")
    raise TypeError(
        f"encoder must contain a pretrained encoder, got {type(source).__name__}"
        + (", which may not be fitted" if is_unfitted else "")
        + ". Pass a folder, a PatchEncoder, or a fitted estimator, net or model with an encoder."
    )


def packaged_encoders() -> dict[str, cards.EncoderCard]:
    """Return the encoder cards of the bundled encoders.

    Returns
    -------
    dict of str to EncoderCard
        Encoder cards by name. The name consists of pretext task and corpus, and can be passed to
        ``encoder`` of the estimators and to :func:`load_encoder`.

    Raises
    ------
    ValueError
        When a file of the package is corrupt.

    Examples
    --------
    >>> from braindecode_pars.pretrained import packaged_encoders
    >>> cards = packaged_encoders()
    >>> all(card.about["license"] for card in cards.values())
    True
    """
    return {
        name: load_encoder(model_files.bundled_folder(name)).card
        for name in model_files.bundled_names()
    }


def pretrained_from_file(model: model_files.ModelFile, *, strict: bool = True) -> cards.Pretrained:
    """Return the encoder of a model file of any kind, with its card and load report."""
    encoder, sfreq, report = network_files.encoder_from_file(PARSNet, model, strict=strict)
    if model.kind == model_files.NETWORK:  # a PARSNet without an estimator has no card
        return cards.Pretrained(encoder, replace(cards.unknown_card(encoder), sfreq=sfreq), report)
    with model_files.described_in(model.source):
        return cards.Pretrained(encoder, cards.card_of(model.kind, model.description), report)


def write_shared(
    folder: Path, kind: str, description: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]
) -> Path:
    """Write a model for sharing, without names of subjects and with a model card.

    An existing ``README.md`` in the folder is not changed.

    Parameters
    ----------
    folder, kind, description, tensors
        As in :func:`~braindecode_pars._common.model_files.write_model`.

    Returns
    -------
    Path
        The folder.
    """
    entry = description.get(model_files.ENTRIES.get(kind, ""), {})
    part = {"pretraining": asdict(cards.card_of(kind, description).without_names())}
    shared = {**description, **part}
    if "pretraining" in entry:  # the card of a fine-tuned encoder
        shared = {**description, model_files.ENTRIES[kind]: {**entry, **part}}
    model_files.write_model(folder, kind, shared, tensors)
    if not (folder / model_files.README).exists():
        files.replace_file(folder / model_files.README, cards.model_card(kind, shared))
    return folder


class SavedEstimator:
    """Base class of estimators with an encoder: save, load and from_pretrained."""

    encoder: Any
    encoder_card_: cards.EncoderCard
    preprocessing_: Preprocessing
    n_chans_: int | None
    n_times_: int | None
    sfreq_: float | None
    chs_info_: list[dict] | None

    #: Kind of the model file.
    _kind = model_files.EMBEDDER

    @abstractmethod
    def _to_save(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """Return the tensors and the description, without the entries that all kinds have."""

    def _windows_to_save(self) -> dict[str, Any]:
        """Return the attributes of the windows of ``fit`` that are saved without a PARSNet."""
        names = [ch["ch_name"] for ch in self.chs_info_ or ()]
        return dict(n_chans=self.n_chans_, n_times=self.n_times_, sfreq=self.sfreq_, ch_names=names)

    @abstractmethod
    def _restore(
        self, described: dict[str, Any], loaded: Any, tensors: dict[str, torch.Tensor]
    ) -> None:
        """Set the remaining fitted attributes, from a PARSNet or from an encoder with its card."""

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
            return None if self.encoder is None else load_encoder(self.encoder).card
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
            When the folder cannot be written. Its previous content is then unchanged.
        ValueError
            When labels are neither strings nor numbers. Also when the folder contains another
            model or other files; with ``share=True``, when it contains any additional file.
        """
        check_is_fitted(self)
        folder = Path(folder).expanduser()
        description, tensors = self._to_save()
        entry = description[model_files.ENTRIES[self._kind]]
        entry |= fitted_to_json(self)
        if share:  # the text of an object may contain the path of a folder
            left_out = entry["parameters"]["left_out"]
            left_out |= dict.fromkeys(left_out, "...")
        model_files.check_may_save(folder, self._kind, share=share)
        write = write_shared if share else model_files.write_model
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
            When the folder or its model file does not exist.
        ValueError
            When a file is corrupt or was edited, or when its tensors do not match the model that it
            describes.

        Warns
        -----
        UserWarning
            When parameters were not saved. For security, a file must not determine where a refit
            reads, downloads or writes files. Therefore ``checkpoint_dir`` is never saved, and
            ``encoder`` is saved only if it is the name of a bundled encoder.
        """
        model = model_files.read_model(folder, cls._kind)
        weights: Any = (
            network_files.network_from_file(PARSNet, model, strict=strict)
            if cls._kind in model_files.NETWORKS
            else pretrained_from_file(model, strict=strict)
        )
        computing.find_device(device)
        with model_files.described_in(model.source, cls.__name__):
            described = model.description[model_files.ENTRIES[cls._kind]]
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
            When a download requires ``huggingface_hub`` and it is not installed.

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
#: where a refit reads or downloads an encoder, or where it writes an encoder. A file must not
#: determine either which code is run as a pretext task.
_FOLDERS = ("encoder", "checkpoint_dir")


def _is_in_package(name: str, value: Any) -> bool:
    """Whether a parameter is the name of a bundled encoder, and no folder has the same name."""
    packaged = (
        model_files.bundled_folder(value) if name == "encoder" and isinstance(value, str) else None
    )
    return packaged is not None and model_files.model_folder(value) == packaged


#: Fitted attributes of some estimators: of a regressor, and of a model that a study has saved.
_OPTIONAL = ("target_mean", "target_scale", "expected_score")


def fitted_to_json(estimator: Any) -> dict[str, Any]:
    """Return the fitted attributes and parameters that are saved for all kinds of estimators."""
    optional = [name for name in _OPTIONAL if hasattr(estimator, f"{name}_")]
    entries = {
        "parameters": parameters_to_json(estimator),
        "preprocessing": estimator.preprocessing_.known(),
        **{name: getattr(estimator, f"{name}_") for name in optional},
    }
    if hasattr(estimator, "amplitudes_"):
        entries["amplitudes"] = estimator.amplitudes_ and asdict(estimator.amplitudes_)
    if hasattr(estimator, "classes_"):
        classes = [c.item() if hasattr(c, "item") else c for c in estimator.classes_.tolist()]
        if not all(type(label) in (bool, int, float, str) for label in classes):
            raise ValueError(
                f"Labels of type {type(classes[0]).__name__} cannot be saved. Fit on labels that "
                "are strings, integers or booleans, or pickle the estimator."
            )
        entries |= {
            "classes": {"values": classes, "dtype": estimator.classes_.dtype.str},
            "class_names": estimator.class_names_ and list(estimator.class_names_.values()),
            "transitions": estimator.transitions_ and estimator.transitions_.to_json(),
        }
    return entries


def fitted_from_json(described: dict[str, Any]) -> dict[str, Any]:
    """Return the fitted attributes from the entries of :func:`fitted_to_json`."""
    optional = [name for name in _OPTIONAL if name in described]
    fitted: dict[str, Any] = {f"{name}_": described[name] for name in optional}
    fitted["preprocessing_"] = Preprocessing.of(described["preprocessing"])
    if "amplitudes" in described:
        entry = described["amplitudes"]
        fitted["amplitudes_"] = entry and amplitudes.AmplitudeRange(**entry)
    if "classes" in described:
        names = described["class_names"]
        classes = np.asarray(described["classes"]["values"], described["classes"]["dtype"])
        fitted["classes_"] = classes
        fitted["class_names_"] = names and dict(zip(classes.tolist(), names, strict=True))
    return fitted


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
