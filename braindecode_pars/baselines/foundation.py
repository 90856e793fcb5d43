"""Foundation models of braindecode: input format of each model, and loading of published weights.

The table FOUNDATION_MODELS contains the input format in which each model was pretrained. Windows
are converted to this format (channels, reference, sampling rate and scale). If the conversion is
not possible, an error is raised.
"""

import inspect
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import torchaudio.functional
from braindecode.models import biot, eegpt, labram
from torch import Tensor, nn

from braindecode_pars._common import channel_names, checks, model_files
from braindecode_pars.baselines.window_features import known_rate
from braindecode_pars.windows.amplitudes import AmplitudeRange
from braindecode_pars.windows.picking import find_channels

#: Name of the last layer of every classifier of braindecode.
HEAD = "final_layer"


@dataclass(frozen=True, kw_only=True)
class InputFormat:
    """Input format of a pretrained network, to which windows are converted.

    Parameters
    ----------
    sfreq : float
        Sampling rate in Hz. Windows with a different sampling rate are resampled.
    volts : float
        Unit of the input, in volts: for example, 1e-6 for a network that expects microvolts.
    percentile : float | None
        After conversion to the unit, each channel of a window is divided by this percentile of the
        absolute values of the channel. If None, channels are not divided.
    average_reference : bool
        Whether to re-reference the channels to their average.
    multiple : int
        The length of a window, in samples at the rate ``sfreq``, must be a multiple of this number.
    shortest : int
        Minimum length of a window, in samples at the rate ``sfreq``.
    longest : int | None
        Maximum length of a window, in samples at the rate ``sfreq``. If None, there is no maximum.
    channels : tuple of str | None
        Names of the channels that the network supports. If None, the network accepts any channels,
        in any order.
    all_channels : bool
        Whether the network requires all of ``channels``, in this order. If a bipolar channel is
        missing in the windows, it is computed as the difference of two channels. If False, the
        windows may contain any of ``channels``.
    network_params : dict
        Arguments with which the network is built.

    Examples
    --------
    >>> from braindecode_pars.models import FOUNDATION_MODELS, InputFormat
    >>> input_format = InputFormat(sfreq=100.0, volts=1e-6)  # 100 Hz, in microvolts
    >>> FOUNDATION_MODELS["CBraMod"].sfreq
    200.0
    """

    sfreq: float
    volts: float
    percentile: float | None = None
    average_reference: bool = False
    multiple: int = 1
    shortest: int = 1
    longest: int | None = None
    channels: tuple[str, ...] | None = field(default=None, repr=False)
    all_channels: bool = False
    network_params: Mapping[str, Any] = field(default_factory=dict)


#: Channels of the dataset Lee2019 in MOABB, which SignalJEPA supports.
_LEE2019 = (  # noqa: SIM905
    "Fp1 Fp2 F7 F3 Fz F4 F8 FC5 FC1 FC2 FC6 T7 C3 Cz C4 T8 TP9 CP5 CP1 CP2 CP6 TP10 P7 P3 Pz P4 "
    "P8 PO9 O1 Oz O2 PO10 FC3 FC4 C5 C1 C2 C6 CP3 CPz CP4 P1 P2 POz FT9 FTT9h TTP7h TP7 TPP9h "
    "FT10 FTT10h TPP8h TP8 TPP10h F9 F10 AF7 AF3 AF4 AF8 PO3 PO4"
).split()
#: Input format of the published weights of each braindecode model. The comments name the sources.
FOUNDATION_MODELS = {
    # github.com/ycq091044/BIOT: README.md, utils.py
    "BIOT": InputFormat(
        sfreq=200.0,
        volts=1e-6,
        percentile=95.0,
        shortest=200,
        channels=tuple(biot.BIOT_CHANNEL_ORDER),
        all_channels=True,
    ),
    # arXiv:2412.07236; open-eeg-bench 0.6.0: default_configs/backbones.py
    "CBraMod": InputFormat(
        sfreq=200.0,
        volts=1e-4,
        multiple=200,
    ),
    # github.com/BINE022/EEGPT: datasets/pretrain/prepare_pretrain_dataset.py
    "EEGPT": InputFormat(
        sfreq=256.0,
        volts=1e-3,
        average_reference=True,
        shortest=64,
        channels=tuple(eegpt.EEGPT_CHANNELS),
        network_params={"chan_proj_type": "none"},
    ),
    # github.com/935963004/LaBraM: engine_for_finetuning.py, modeling_finetune.py
    "Labram": InputFormat(
        sfreq=200.0,
        volts=1e-4,
        multiple=200,
        longest=3000,
        channels=tuple(labram.LABRAM_CHANNEL_ORDER),
    ),
    # braindecode 1.8.1: models/signal_jepa.py, by its authors
    "SignalJEPA_Contextual": InputFormat(
        sfreq=128.0,
        volts=1e-6,
        shortest=152,
        channels=tuple(_LEE2019),
        network_params={"channel_embedding": "pretrain_aligned"},
    ),
}


def input_format_of(
    network: type[nn.Module], param: InputFormat | None, tensors: Mapping[str, Tensor]
) -> InputFormat:
    """Return the input format of a network: ``param`` or, if it is None, the known format.

    ``tensors`` contains the tensors of the weights file. They determine the number of channels of
    BIOT, whose published weights are for either 16 or 18 channels.

    Raises
    ------
    ValueError
        If ``param`` is None and the network is not in FOUNDATION_MODELS.
    """
    input_format = param or FOUNDATION_MODELS.get(network.__name__)
    if input_format is None:
        raise ValueError(
            f"The input format of pretrained weights of {network.__name__} is unknown; it is known "
            f"only for {', '.join(FOUNDATION_MODELS)}. Pass the format in which the weights were "
            "pretrained as input_format=InputFormat(sfreq=..., volts=...)."
        )
    tokens = tensors.get("encoder.channel_tokens.weight")
    if input_format.channels is None or tokens is None:
        return input_format
    return replace(input_format, channels=input_format.channels[: len(tokens)])


class Prepare(nn.Module):
    """Convert windows to the input format of a network: channels, reference and sampling rate.

    The signals must already be in the unit of the network. If the input format has a
    ``percentile``, each channel is also divided by this percentile of its absolute values.

    Parameters
    ----------
    input_format : InputFormat
        Input format of the network.
    sfreq : float | None
        Sampling rate of the windows in Hz.
    names : list of str
        Channel names of the windows; empty for windows without channel names.

    Raises
    ------
    ValueError
        If the sampling rate is unknown or cannot be converted. If the network requires channel
        names, but the windows have none. If a channel of the windows is not supported by the
        network, or a channel that the network requires is missing.
    """

    def __init__(self, input_format: InputFormat, sfreq: float | None, names: Sequence[str]):
        super().__init__()
        self.input_format, self.sfreq = input_format, known_rate(sfreq)
        # Approximate the ratio of the sampling rates, because a ratio with a large denominator
        # requires a resampling kernel of hundreds of megabytes. A relative error of 1e-4 is about
        # half a sample in a window of 30 s.
        exact = Fraction(float(input_format.sfreq)) / Fraction(float(self.sfreq))
        candidates = (exact.limit_denominator(maximum) for maximum in (10, 100, 1000, 10_000))
        ratio = next((ratio for ratio in candidates if abs(ratio / exact - 1) < 1e-4), None)
        if ratio is None:
            raise ValueError(
                f"Windows sampled at {self.sfreq:g} Hz cannot be resampled to "
                f"{input_format.sfreq:g} Hz, the sampling rate of the network. Check that sfreq is "
                f"in Hz, or resample the recordings with raw.resample({input_format.sfreq:g})."
            )
        self.ratio = ratio
        channels, is_fixed = input_format.channels, input_format.all_channels
        if channels is not None and not names:
            raise ValueError(
                "The network requires channel names, but the windows have none. Pass windows with "
                "channel names, such as a braindecode dataset or mne.Epochs."
            )
        self.names = [] if channels is None or is_fixed else _network_names(names, channels)
        self.weights: Tensor | None
        weights = _channel_weights(channels or (), names) if is_fixed else None
        self.register_buffer("weights", weights, persistent=False)

    def signal(self, n_chans: int, n_times: int) -> dict[str, Any]:
        """Return the arguments of the network that describe its input.

        The result is a dict with the keys ``n_chans``, ``chs_info``, ``n_times`` and ``sfreq``, for
        windows after conversion. The parameters ``n_chans`` and ``n_times`` are the shape of the
        windows before conversion.

        Raises
        ------
        ValueError
            If the network does not accept windows of this length.
        """
        required, numerator, denominator = self.input_format, *self.ratio.as_integer_ratio()
        length = -(-n_times * numerator // denominator)  # rounded up, as in torchaudio
        low, high = max(required.shortest, required.multiple), required.longest or math.inf
        if length % required.multiple or not low <= length <= high:
            longest = required.longest
            maximum = f" to {longest / required.sfreq:g} s" if longest else " s or longer"
            raise ValueError(
                f"The network does not accept windows of {n_times / self.sfreq:g} s ({length} "
                f"samples at {required.sfreq:g} Hz). It accepts lengths of "
                f"{low / required.sfreq:g}{maximum}, in steps of "
                f"{required.multiple / required.sfreq:g} s. Create windows with an accepted length."
            )
        n_chans = n_chans if self.weights is None else len(self.weights)
        chs_info = [{"ch_name": name} for name in self.names] or None
        return dict(n_chans=n_chans, chs_info=chs_info, n_times=length, sfreq=required.sfreq)

    def forward(self, x: Tensor) -> Tensor:
        """Convert windows: (batch, n_chans, n_times) -> (batch, n_input_chans, n_resampled)."""
        if self.weights is not None:
            x = self.weights @ x
        if self.input_format.average_reference:
            x = x - x.mean(dim=1, keepdim=True)
        x = torchaudio.functional.resample(x, self.ratio.denominator, self.ratio.numerator)
        if self.input_format.percentile is not None:
            # torch.quantile does not support large batches, so it is called for each window.
            level = self.input_format.percentile / 100
            scale = [window.abs().quantile(level, dim=-1, keepdim=True) for window in x]
            x = x / (torch.stack(scale) + 1e-8)
        return x


def _network_names(names: Sequence[str], channels: Sequence[str]) -> list[str]:
    """Return the names of the windows' channels in the spelling that a network uses."""
    supported = {name.upper(): name for name in channels}
    electrodes = [channel_names.electrode_name(n) for n in channel_names.system_names(names)]
    # A network may support only one of the two names of an electrode, such as T3 and T7.
    matches = [
        supported.get(name)
        or supported.get("-".join(filter(None, channel_names.electrode_pair(name))))
        for name in electrodes
    ]
    if unsupported := [name for name, match in zip(names, matches, strict=True) if match is None]:
        raise ValueError(
            f"The network does not support the channels {checks.format_list(unsupported)}. Select "
            "only supported channels with channels=[...]. The network supports "
            f"{', '.join(channels)}."
        )
    return [name for name in matches if name is not None]


def _channel_weights(inputs: Sequence[str], names: Sequence[str]) -> Tensor:
    """Return the weights of the channels of windows in each input channel of a network.

    The shape is (n_input_chans, n_chans).
    """
    rows, missing = [], []
    for name, source in zip(inputs, find_channels(inputs, names), strict=True):
        pair = channel_names.electrode_pair
        # A single channel with a different reference is not equivalent to a bipolar input.
        if source and (source.reference or pair(source.channel) == pair(name)):
            rows.append([float(n == source.channel) - (n in source.reference) for n in names])
        else:
            missing.append(name)
    if missing:
        raise ValueError(
            f"The network requires the channels {checks.format_list(missing)}, but the windows "
            "contain neither these channels nor, for bipolar channels, both electrodes of the "
            f"channel. The windows contain the channels {checks.format_list(list(names))}. Add the "
            "missing channels or electrodes, or use a different network."
        )
    return torch.tensor(rows)


def check_volts(amplitudes: AmplitudeRange | None, scale: float) -> None:
    """Check for a unit mismatch: after division by ``scale``, the windows must be in volts.

    Raises
    ------
    ValueError
        If the standard deviations of nearly all channels are above 1 mV or below 10 nV, which is
        implausible for EEG in volts.
    """
    if amplitudes and (amplitudes.low > 1e-3 * scale or amplitudes.high < 1e-8 * scale):
        low, high = amplitudes.low / scale, amplitudes.high / scale
        raise ValueError(
            f"The standard deviations of the channels are between {low:.2g} and {high:.2g} V, but "
            "amplitudes of EEG are between 1e-6 and 1e-3 V, so the unit is probably not volts. "
            "Pass windows in volts. If the windows are in microvolts, pass preprocessing={'scale': "
            "1e6}."
        )


#: Arguments of a network that depend on the windows and labels, or that change its last layer. They
#: are not read from a configuration file.
_OF_SIGNALS = {
    *("n_outputs", "n_chans", "chs_info", "n_times", "sfreq", "input_window_seconds"),
    *("return_encoder_output", HEAD),
}
#: Keys of the state dict in published files of weights.
_CONTAINERS = ("state_dict", "model_state_dict", "model")
#: File name extensions of files of weights.
_ENDINGS = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")


def read_weights(
    source: str | Path, network: type[nn.Module]
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the weights of a network, and its arguments if ``source`` is a folder or model.

    Parameters
    ----------
    source : path | str
        A file of tensors (``.safetensors``, or written by ``torch.save``), or a folder or a model
        of the Hugging Face Hub that contains ``model.safetensors`` and ``config.json``, as written
        by ``save_pretrained``. ``"hf://owner/name"`` downloads the model, and ``"owner/name"`` uses
        a previous download.
    network : type[nn.Module]
        Class of the network.

    Returns
    -------
    tensors : dict of str to Tensor
        Weights.
    params : dict of str to Any
        Arguments of the network; empty if ``source`` is a file.

    Raises
    ------
    FileNotFoundError
        If the file, folder or model does not exist, or the folder contains no
        ``model.safetensors``.
    pickle.UnpicklingError
        If a file that was written by ``torch.save`` contains objects other than tensors.

    Notes
    -----
    ``from_pretrained`` of braindecode is not used for three reasons. It loads most models only for
    windows with the shape in the configuration file. If tensors are missing in the file, these
    weights remain random, and no warning is issued. It imports and calls any function that is named
    in the configuration file.
    """
    file = Path(source).expanduser()
    if file.suffix in _ENDINGS or file.is_file():
        return _tensors_in(file), {}
    folder = model_files.model_folder(source)
    config, params = folder / "config.json", {}
    for name, value in (json.loads(config.read_bytes()) if config.is_file() else {}).items():
        if name in inspect.signature(network).parameters and name not in _OF_SIGNALS:
            is_class = isinstance(value, str) and value.startswith("torch.nn.")
            # Accept only classes of torch.nn; braindecode would import any module that a file
            # names.
            params[name] = getattr(nn, value.rpartition(".")[2]) if is_class else value
    return _tensors_in(folder / "model.safetensors"), params


def _tensors_in(file: Path) -> dict[str, Tensor]:
    if file.suffix == ".safetensors":
        return safetensors.torch.load_file(file)
    content = torch.load(file, map_location="cpu", weights_only=True)
    tensors = next((content[name] for name in _CONTAINERS if name in content), content)
    return {name: tensor for name, tensor in tensors.items() if isinstance(tensor, Tensor)}


def load_network(
    network: nn.Module, tensors: Mapping[str, Tensor], source: Any
) -> model_files.LoadReport:
    """Load weights into a network, except for its last layer, which is initialized randomly.

    Parameters
    ----------
    network : nn.Module
        Model of braindecode, whose weights are replaced.
    tensors : dict of str to Tensor
        Tensors of the weights file.
    source : Any
        File, folder or model that contains the tensors, for the error message.

    Returns
    -------
    LoadReport
        Report of the tensors that were loaded.

    Raises
    ------
    ValueError
        If a tensor of a layer before the last layer is missing in the file, or has a different
        shape in the file.

    Warns
    -----
    UserWarning
        If the file contains tensors that are not used.
    """
    mapping, state = getattr(network, "mapping", None) or {}, network.state_dict()
    new_prefixes = (f"{HEAD}.", "chans_id")  # EEGPT computes chans_id from the channels
    used_tensors: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        name = name.removeprefix("module.").removeprefix("student.")  # prefixes in published files
        name = mapping.get(name, name)
        if name == "temporal_embedding" and name in state:
            # A shorter window uses the embeddings of the first patches, as in the authors' code.
            tensor = tensor[:, : state[name].shape[1]]
        if not name.startswith(new_prefixes):
            used_tensors[name] = tensor
    report = model_files.load_tensors(network, used_tensors, source, strict=False)
    missing = [
        name for name in (*report.missing, *report.reshaped) if not name.startswith(new_prefixes)
    ]
    if missing:
        raise ValueError(
            f"The weights in {source} do not match the network {type(network).__name__}: {report}. "
            "Tensors of layers before the last layer are missing or have a different shape in the "
            f"file: {checks.format_list(missing)}. If the weights were trained with different "
            "network_params, pass those network_params."
        )
    if report.unexpected:
        checks.warn_user(
            f"Some tensors in {source} ({len(report.unexpected)}) do not exist in this network and "
            f"are not used: {checks.format_list(report.unexpected, 3)}. This is expected if they "
            "belong to a pretraining head. Otherwise, pass the network_params with which the "
            "weights were trained."
        )
    return report
