"""Methods of PARSNet that save and load models as safetensors and JSON files, without pickle.

:func:`save_pretrained` and :func:`from_pretrained` replace methods of braindecode that write pickle
files, or that import a class whose name is read from a file.
"""

import inspect
import math
from pathlib import Path
from typing import Any

import torch
from braindecode.models.base import HAS_HF_HUB
from braindecode.version import __version__ as braindecode_version

from braindecode_pars._common import checks, model_files
from braindecode_pars.encoder import activation_name
from braindecode_pars.pretrained import saved

#: Arguments of ``from_pretrained`` for the download from the Hugging Face Hub.
HUB_ARGUMENTS = {"revision", "cache_dir", "force_download", "local_files_only", "token"}


def save_pretrained(
    self: Any,
    save_directory: str | Path,
    *,
    config: Any = None,
    repo_id: str | None = None,
    push_to_hub: bool = False,
    model_card_kwargs: dict[str, Any] | None = None,
    **hub_arguments: Any,
) -> Any:
    """Save the model to a folder, as ``model.safetensors`` and ``config.json``.

    ``model.safetensors`` contains everything that :meth:`from_pretrained` reads: weights,
    configuration and a checksum. ``config.json`` is a copy of the configuration for users and other
    programs. If ``huggingface_hub`` is installed, and the folder does not yet contain a model card
    (``README.md``), a model card is also written.

    Parameters
    ----------
    save_directory : path
        Folder of the model. The folder is created if it does not exist. If it already contains a
        saved PARSNet, the saved PARSNet is overwritten.
    config, repo_id, push_to_hub, model_card_kwargs, **hub_arguments
        As in ``huggingface_hub.PyTorchModelHubMixin.save_pretrained``, except that ``config`` is
        ignored.

    Returns
    -------
    str | None
        URL of the commit if ``push_to_hub=True``, otherwise None.

    Raises
    ------
    ImportError
        If ``push_to_hub=True`` and ``huggingface_hub`` is not installed. The model is saved to the
        folder before this error is raised.
    OSError
        If the folder cannot be written. Each file then has either its previous or its new content.
    ValueError
        If weights are not finite, if the activation of the encoder is not a class of ``torch.nn``,
        if the folder contains a model of a different class, or if the folder contains other files
        but no model (repository files, such as ``README.md`` and ``.git``, are accepted).
    """
    folder = Path(save_directory).expanduser()
    model_files.check_may_save(folder, model_files.NETWORK)
    model_files.write_model(folder, model_files.NETWORK, self.description(), self.state_dict())
    # The method of the mixin deletes the old config.json before it writes the new files. It is
    # therefore not used, and the model card is written and the model is uploaded here.
    card = model_card_kwargs or {}
    if HAS_HF_HUB and not (folder / model_files.README).exists():
        self.generate_model_card(**card).save(folder / model_files.README)
    if not push_to_hub:
        return None
    return self.push_to_hub(repo_id or folder.name, model_card_kwargs=card, **hub_arguments)


def description(self: Any) -> dict[str, Any]:
    """Return the description of the network in a model file: arguments of the constructor."""
    activation_name(self.encoder)  # raises ValueError unless it is a class of torch.nn
    config = {**self.get_config(), "braindecode_version": braindecode_version}
    for ch in config.get("chs_info") or ():
        # JSON has no NaN. Only the first three values of ``loc`` are used: the position of the
        # electrode. The remaining values are often NaN.
        location = [x if math.isfinite(x) else 0.0 for x in ch.pop("loc", None) or ()]
        if any(location[:3]):
            ch["loc"] = location
    return {"network": config}


def from_pretrained(
    cls: Any,
    pretrained_model_name_or_path: str | Path,
    *,
    strict: bool = True,
    n_outputs: int | None = None,
    map_location: str | torch.device = "cpu",
    **arguments: Any,
) -> Any:
    """Load a saved model, or build a new model with a pretrained encoder.

    Parameters
    ----------
    pretrained_model_name_or_path : path | str
        Folder written by :meth:`save_pretrained`, or a model id on the Hugging Face Hub, from which
        the model is downloaded. To build a new model with a pretrained encoder, pass the name of an
        encoder that is part of the package (such as ``"small"``), or the folder or the model id of
        an encoder.
    strict : bool
        Whether to raise an error if the tensors in the file do not match the tensors of the model.
        If False, only matching tensors are loaded.
    n_outputs : int | None
        Number of outputs. Required if the source is an encoder. If the source is a saved model with
        a different number of outputs, ``final_layer`` is replaced with a new layer with random
        weights. If None, a saved model keeps its number of outputs.
    map_location : str | torch.device
        Device of the model.
    **arguments
        Arguments of the constructor (such as ``n_times`` or ``chs_info``), which take precedence
        over the saved arguments, and arguments of the download: ``revision``, ``cache_dir``,
        ``force_download``, ``local_files_only`` and ``token``.

    Returns
    -------
    PARSNet
        Model in evaluation mode. Its attribute ``load_report``, a
        :class:`~braindecode_pars.pretrained.LoadReport`, lists the loaded tensors.

    Raises
    ------
    FileNotFoundError
        If the folder, the model or its file does not exist.
    ValueError
        If a file is damaged, the tensors in the file do not match the tensors of the model,
        ``sfreq`` differs from the sampling rate of the saved model or encoder, or ``n_outputs`` is
        required but missing.
    TypeError
        If an argument is unknown.
    """
    # Separate the arguments of the download from the arguments of the constructor.
    download = {name: arguments.pop(name) for name in HUB_ARGUMENTS & arguments.keys()}
    unknown = arguments.keys() - inspect.signature(cls).parameters.keys()
    if unknown:
        raise TypeError(f"from_pretrained() got an unexpected keyword argument {min(unknown)!r}")

    # Load the model, or build a new model with the encoder.
    model = model_files.read_model(pretrained_model_name_or_path, download=True, **download)
    if model.kind in model_files.NETWORKS:
        net = network_from_file(cls, model, strict=strict, **arguments)
        if n_outputs not in (None, net.n_outputs):
            net.reset_head(n_outputs)
    else:
        if n_outputs is None:
            raise ValueError(
                f"{pretrained_model_name_or_path} is an encoder, which has no output layer, so "
                "n_outputs is required. Pass the number of classes as n_outputs."
            )
        loaded = saved.encoder_from_file(model, strict=strict)
        net = cls(n_outputs=n_outputs, encoder=loaded, **arguments)
    return net.to(map_location).eval()


def network_from_file(
    network: Any, model: model_files.ModelFile, *, strict: bool = True, **arguments: Any
) -> Any:
    """Load a network of the class ``network`` from a model file.

    The other arguments are the same as in ``from_pretrained`` of this class.
    """
    config = dict(model.description["network"])
    sfreq, expected = arguments.get("sfreq"), config.get("sfreq")
    expected_of = f"the model in {model.source} was trained at"
    checks.check_same_rate(sfreq, expected, "The windows are", expected_of)
    config["chs_info"] = network._deserialize_chs_info(config.get("chs_info"))
    # Look up the class in torch.nn by name. Braindecode would import any module named in a file.
    config["activation"] = getattr(torch.nn, config["activation"].rpartition(".")[2], None)

    # An argument also replaces saved arguments that describe the same thing. For example, n_chans
    # and chs_info both describe the channels.
    for alternatives in (("n_chans", "chs_info"), ("n_times", "input_window_seconds")):
        if arguments.keys() & set(alternatives):
            config |= dict.fromkeys(alternatives)
    config |= arguments
    net, report = model_files.build_and_load(
        lambda: network.from_config(config), model.tensors, model.source, strict=strict
    )
    net.load_report = report
    return net
