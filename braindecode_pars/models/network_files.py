"""PARSNet as a folder: one model file without pickle, and a readable copy of its description."""

import inspect
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import torch
from braindecode.models.base import HAS_HF_HUB
from braindecode.version import __version__ as braindecode_version

from braindecode_pars._common import checks, model_files
from braindecode_pars.encoder import PatchEncoder, activation_name
from braindecode_pars.models.space_time import build_encoder

#: Arguments of ``from_pretrained`` that belong to the download.
HUB_ARGUMENTS = {"revision", "cache_dir", "force_download", "local_files_only", "token"}

# A base class at run time would be the class whose arguments braindecode records.
if TYPE_CHECKING:
    from braindecode.models.base import EEGModuleMixin as _Model
else:
    _Model = object

Network = TypeVar("Network", bound="SavedInFolder")


class SavedInFolder(_Model):
    """Saving and loading of a braindecode model that has an ``encoder`` and a ``final_layer``.

    This class comes before braindecode's mixin in the bases of a model. It replaces the methods
    that write a pickle, and that trust any class which a file names.
    """

    #: Braindecode would tell to import the model from there; the docstring of a model has this.
    _HUB_NOTES_TEMPLATE = ""

    encoder: PatchEncoder
    load_report: model_files.LoadReport | None

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        config: Any = None,
        repo_id: str | None = None,
        push_to_hub: bool = False,
        model_card_kwargs: dict[str, Any] | None = None,
        **hub_arguments: Any,
    ) -> Any:
        """Write ``model.safetensors`` and ``config.json`` into a folder.

        ``model.safetensors`` contains everything that :meth:`from_pretrained` reads: weights,
        configuration and a checksum. ``config.json`` is a copy of the configuration, for people
        and for other programs. If ``huggingface_hub`` is installed, a model card ``README.md`` is
        written too.

        Parameters
        ----------
        save_directory : path
            Folder of the model. It is created if it does not exist. A PARSNet in it is replaced.
        config, repo_id, push_to_hub, model_card_kwargs, **hub_arguments
            As in ``huggingface_hub.PyTorchModelHubMixin.save_pretrained``; ``config`` is ignored.

        Returns
        -------
        str | None
            URL of the commit with ``push_to_hub=True``, else None.

        Raises
        ------
        ImportError
            When ``push_to_hub=True`` and ``huggingface_hub`` is not installed. The folder is
            written before this error.
        OSError
            When the folder cannot be written. Its previous content is then unchanged.
        ValueError
            When weights are not finite, or the activation of the encoder is not one of
            ``torch.nn``. Also when the folder contains another model, or other files.
        """
        folder = Path(save_directory).expanduser()
        if hub_arguments and not push_to_hub:
            raise TypeError(f"{min(hub_arguments)!r} is an argument for push_to_hub=True.")
        model_files.check_may_save(folder, model_files.NETWORK)
        model_files.write_model(folder, model_files.NETWORK, self.description(), self.state_dict())
        # The mixin's save_pretrained deletes the old config.json before it writes the new files,
        # so the model card and the upload are done here.
        card = model_card_kwargs or {}
        if HAS_HF_HUB and not (folder / model_files.README).exists():
            self.generate_model_card(**card).save(folder / model_files.README)
        if not push_to_hub:
            return None
        return self.push_to_hub(repo_id or folder.name, model_card_kwargs=card, **hub_arguments)

    def description(self) -> dict[str, Any]:
        """Return the constructor arguments as the description of a model file."""
        activation_name(self.encoder)  # that of a class in torch.nn
        config = {**self.get_config(), "braindecode_version": braindecode_version}
        for ch in config.get("chs_info") or ():
            # JSON has no NaN. Only the first three values of ``loc``, the electrode position, are
            # needed; the others are often NaN.
            location = [x if math.isfinite(x) else 0.0 for x in ch.pop("loc", None) or ()]
            if any(location[:3]):
                ch["loc"] = location
        return {"network": config}

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        strict: bool = True,
        n_outputs: int | None = None,
        map_location: str | torch.device = "cpu",
        **arguments: Any,
    ) -> Self:
        """Load a model that :meth:`save_pretrained` wrote, or a new one with a pretrained encoder.

        Parameters
        ----------
        pretrained_model_name_or_path : path | str
            Folder of the model, or a model id of the Hugging Face Hub, which is downloaded. An
            encoder alone is loaded as with the argument ``encoder`` of the constructor: it is
            the name of one in the package, such as ``"small"``, a folder or a model id.
        strict : bool
            Whether to raise an error when the tensors in the file differ from those of the model.
            With False, the matching tensors are loaded.
        n_outputs : int | None
            Number of outputs. When it differs from the saved number, ``final_layer`` is replaced
            by a new, untrained layer. With an encoder alone it is needed.
        map_location : str | torch.device
            Device of the model.
        **arguments
            Constructor arguments that replace the saved ones, such as ``n_times`` or
            ``chs_info``. For the download: ``revision``, ``cache_dir``, ``force_download``,
            ``local_files_only`` and ``token``.

        Returns
        -------
        PARSNet
            Model in evaluation mode. Its ``load_report`` is a
            :class:`~braindecode_pars.pretrained.LoadReport`.

        Raises
        ------
        FileNotFoundError
            When the folder, the model or its file does not exist.
        ValueError
            When a file is damaged, the tensors do not match, or ``sfreq`` differs from the saved
            sampling rate.
        """
        # Separate the arguments of the download from those of the constructor.
        download = {name: arguments.pop(name) for name in HUB_ARGUMENTS & arguments.keys()}
        unknown = arguments.keys() - inspect.signature(cls).parameters.keys()
        if unknown:
            raise TypeError(f"from_pretrained() got an unexpected argument {min(unknown)!r}")

        # Load the model, or the encoder for a new one.
        model = model_files.read_model(pretrained_model_name_or_path, download=True, **download)
        if model.kind in model_files.NETWORKS:
            net = network_from_file(cls, model, strict=strict, **arguments)
            if n_outputs not in (None, net.n_outputs):
                net.reset_head(n_outputs)
        else:
            if n_outputs is None:
                raise ValueError(
                    f"{pretrained_model_name_or_path} is an encoder, which has no last layer; pass "
                    "n_outputs, the number of classes."
                )
            loaded = encoder_from_file(cls, model, strict=strict)
            net = cls(n_outputs=n_outputs, encoder=loaded, **arguments)
        return net.to(map_location).eval()


class LoadedEncoder(NamedTuple):
    """An encoder, the sampling rate of its training in Hz, and the tensors that were loaded.

    The latter two are None for an encoder that comes from no file.
    """

    encoder: PatchEncoder
    sfreq: float | None
    report: model_files.LoadReport | None


def read_encoder(network: type[SavedInFolder], source: Any) -> LoadedEncoder:
    """Return the encoder that the constructor of a network is given; see ``encoder`` there."""
    if isinstance(source, LoadedEncoder):
        return source
    if isinstance(source, PatchEncoder):
        return LoadedEncoder(source, None, None)
    if not isinstance(source, (str, Path)):
        raise TypeError(
            "encoder must be a name, a folder or a PatchEncoder, such as encoder_ of a fitted "
            f"estimator; got {type(source).__name__}."
        )
    return encoder_from_file(network, model_files.read_model(source))


def encoder_from_file(
    network: type[SavedInFolder], model: model_files.ModelFile, *, strict: bool = True
) -> LoadedEncoder:
    """Return the encoder of a model file of any kind; ``network`` is the class of its networks."""
    if model.kind in model_files.NETWORKS:
        net = network_from_file(network, model, strict=strict)
        report = net.load_report
        if report is None or not any(name.startswith("encoder.") for name in report.loaded):
            raise ValueError(f"{model.source} contains no weights of an encoder: {report}.")
        return LoadedEncoder(net.encoder, model.description["network"].get("sfreq"), report)

    def build() -> PatchEncoder:
        config = model.description["encoder"]
        return build_encoder(**{**config, "activation": getattr(torch.nn, config["activation"])})

    tensors = model.tensors
    if model.kind == model_files.FEW_LABELS:  # next to the tensors of its feature sets
        prefix = "encoder."
        tensors = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    encoder, report = model_files.build_and_load(build, tensors, model.source, strict=strict)
    return LoadedEncoder(encoder, model.description["pretraining"].get("sfreq"), report)


def network_from_file(
    network: type[Network], model: model_files.ModelFile, *, strict: bool = True, **arguments: Any
) -> Network:
    """Return the network of a model file.

    ``network`` is its class; the other arguments are those of its ``from_pretrained``.
    """
    config = dict(model.description["network"])
    sfreq, expected = arguments.get("sfreq"), config.get("sfreq")
    checks.check_same_rate(
        sfreq, expected, "The windows are", f"the model in {model.source} was trained"
    )
    config["chs_info"] = network._deserialize_chs_info(config.get("chs_info"))
    # By its name alone: braindecode would import any module that a file names.
    config["activation"] = getattr(torch.nn, config["activation"].rpartition(".")[2], None)

    # An argument also replaces the saved values of its alternatives: n_chans and chs_info describe
    # the same channels, for example.
    for alternatives in (("n_chans", "chs_info"), ("n_times", "input_window_seconds")):
        if arguments.keys() & set(alternatives):
            config |= dict.fromkeys(alternatives)
    config |= arguments
    net, report = model_files.build_and_load(
        lambda: network.from_config(config), model.tensors, model.source, strict=strict
    )
    net.load_report = report
    return net
