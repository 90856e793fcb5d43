"""Foundation models of braindecode: the input of each, and its published weights.

What a model was pretrained on is in a table with sources. Windows are brought to it inside the
network: channels, reference, sampling rate and scale. What cannot be brought to it is an error.
"""

import inspect
import json
import math
import pickle
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
from braindecode_pars.windows.amplitudes import AmplitudeRange
from braindecode_pars.windows.picking import find_channels

#: Name of the last layer of every classifier of braindecode.
HEAD = "final_layer"


@dataclass(frozen=True, kw_only=True)
class InputFormat:
    """The input that a network was pretrained on, to which windows are brought.

    Parameters
    ----------
    sfreq : float
        Sampling rate in Hz. Windows of another rate are resampled.
    volts : float
        Volts that the number 1 stands for, such as 1e-6 for a network of microvolts.
    percentile : float | None
        If it is given, each channel of a window is then divided by this percentile of its
        absolute values.
    average_reference : bool
        Whether the mean of the channels is subtracted.
    multiple, shortest : int
        Number of samples of which the length of a window is a multiple, and smallest length.
    longest : int | None
        Largest length of a window in samples.
    channels : tuple of str | None
        Channels that the network knows by name; None when it takes any, in any order.
    all_channels : bool
        Whether the network has one input for each of ``channels``, in their order. A bipolar one
        is computed as the difference of two channels, if the windows have not got it.
    network_params : dict
        Arguments of the network.
    corpus : str
        Recordings that the network was pretrained on.
    source : str
        Where this is from.

    Examples
    --------
    >>> from braindecode_pars.models import FOUNDATION_MODELS, InputFormat
    >>> own = InputFormat(sfreq=100.0, volts=1e-6, corpus="our nights")
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
    channels: tuple[str, ...] | None = None
    all_channels: bool = False
    network_params: Mapping[str, Any] = field(default_factory=dict)
    corpus: str = "unknown recordings"
    source: str = "given by the user"


#: Channels of Lee2019 in MOABB, which SignalJEPA knows.
_LEE2019 = (  # noqa: SIM905
    "Fp1 Fp2 F7 F3 Fz F4 F8 FC5 FC1 FC2 FC6 T7 C3 Cz C4 T8 TP9 CP5 CP1 CP2 CP6 TP10 P7 P3 Pz P4 "
    "P8 PO9 O1 Oz O2 PO10 FC3 FC4 C5 C1 C2 C6 CP3 CPz CP4 P1 P2 POz FT9 FTT9h TTP7h TP7 TPP9h "
    "FT10 FTT10h TPP8h TP8 TPP10h F9 F10 AF7 AF3 AF4 AF8 PO3 PO4"
).split()
#: Model of braindecode -> the input of its published weights.
FOUNDATION_MODELS = {
    "BIOT": InputFormat(
        sfreq=200.0,
        volts=1e-6,
        percentile=95.0,
        shortest=200,
        channels=tuple(biot.BIOT_CHANNEL_ORDER),
        all_channels=True,
        corpus="PREST, and some files on SHHS, TUAB, TUEV, CHB-MIT and IIIC too",
        source="github.com/ycq091044/BIOT: README.md, utils.py",
    ),
    "CBraMod": InputFormat(
        sfreq=200.0,
        volts=1e-4,
        multiple=200,
        corpus="TUEG",
        source="arXiv:2412.07236; open-eeg-bench 0.6.0: default_configs/backbones.py",
    ),
    "EEGPT": InputFormat(
        sfreq=256.0,
        volts=1e-3,
        average_reference=True,
        shortest=64,
        channels=tuple(eegpt.EEGPT_CHANNELS),
        network_params={"chan_proj_type": "none"},
        corpus="EEGMMIDB (PhysioNet MI), HGD, TSU, SEED and M3CV",
        source="github.com/BINE022/EEGPT: datasets/pretrain/prepare_pretrain_dataset.py",
    ),
    "Labram": InputFormat(
        sfreq=200.0,
        volts=1e-4,
        multiple=200,
        longest=3000,
        channels=tuple(labram.LABRAM_CHANNEL_ORDER),
        corpus="about 20 data sets",
        source="github.com/935963004/LaBraM: engine_for_finetuning.py, modeling_finetune.py",
    ),
    "SignalJEPA_Contextual": InputFormat(
        sfreq=128.0,
        volts=1e-6,
        shortest=152,
        channels=tuple(_LEE2019),
        network_params={"channel_embedding": "pretrain_aligned"},
        corpus="Lee2019",
        source="braindecode 1.8.1: models/signal_jepa.py, by its authors",
    ),
}


def input_format_of(
    network: type[nn.Module], param: InputFormat | None, tensors: Mapping[str, Tensor] | None = None
) -> InputFormat:
    """Return the input of a pretrained network: the given one, or that of the table.

    ``tensors`` are those of the file: the files of BIOT are for 16 or for 18 channels.

    Raises
    ------
    ValueError
        When none is given and the network is not in the table.
    """
    input_format = param or FOUNDATION_MODELS.get(network.__name__)
    if input_format is None:
        raise ValueError(
            f"The input of pretrained weights is known for {', '.join(FOUNDATION_MODELS)}. For "
            f"{network.__name__}, pass input_format=InputFormat(sfreq=..., volts=...)."
        )
    if input_format.all_channels and tensors and "encoder.channel_tokens.weight" in tensors:
        n_inputs = len(tensors["encoder.channel_tokens.weight"])
        return replace(input_format, channels=(input_format.channels or ())[:n_inputs])
    return input_format


class Prepare(nn.Module):
    """Bring a batch of windows in the unit of a network to the rest of its input.

    Parameters
    ----------
    input_format : InputFormat
        Input of the network.
    sfreq : float | None
        Sampling rate of the windows in Hz.
    names : list of str
        Channels of the windows; empty when they have no names.

    Raises
    ------
    ValueError
        When the rate is unknown or too far from the network's, when channels have no names or the
        network does not know some, or when it needs others.
    """

    def __init__(self, input_format: InputFormat, sfreq: float | None, names: Sequence[str]):
        super().__init__()
        if sfreq is None:
            raise ValueError("Pretrained weights need the rate of the windows; pass sfreq=, in Hz.")
        self.input_format, self.sfreq = input_format, sfreq
        # The kernel of a large denominator has hundreds of megabytes; 1e-4 of a window of half a
        # minute is half a sample. It is made once, and no weight that is saved.
        exact = Fraction(float(input_format.sfreq)) / Fraction(float(sfreq))
        near = (exact.limit_denominator(largest) for largest in (10, 100, 1000, 10_000))
        near_ratio = next((ratio for ratio in near if abs(ratio / exact - 1) < 1e-4), None)
        if near_ratio is None:
            raise ValueError(
                f"Windows at {sfreq:g} Hz cannot be brought to {input_format.sfreq:g} Hz, that of "
                "the network; pass their rate in Hz, or resample them, as raw.resample does."
            )
        self.ratio = near_ratio
        rates = self.ratio.denominator, self.ratio.numerator
        self.resample = torchaudio.transforms.Resample(*rates, dtype=torch.float32)
        for name, kernel in [*self.resample.named_buffers()]:
            self.resample.register_buffer(name, kernel, persistent=False)
        channels, is_fixed = input_format.channels, input_format.all_channels
        if channels is not None and not names:
            raise ValueError("The network knows channels by name, and these windows have none.")
        self.names = [] if channels is None or is_fixed else _own_names(names, channels)
        self.weights: Tensor | None
        weights = _weights(channels or (), names) if is_fixed else None
        self.register_buffer("weights", weights, persistent=False)

    def signal(self, n_chans: int, n_times: int) -> dict[str, Any]:
        """Return the arguments of the network that describe its input, for windows of this shape.

        Raises
        ------
        ValueError
            When the network does not accept windows of this length.
        """
        wanted, numerator, denominator = self.input_format, *self.ratio.as_integer_ratio()
        length = -(-n_times * numerator // denominator)  # as torchaudio rounds it
        low, high = max(wanted.shortest, wanted.multiple), wanted.longest or length
        if length % wanted.multiple or not low <= length <= high:
            least, step = low / wanted.sfreq, wanted.multiple / wanted.sfreq
            most = f" to {wanted.longest / wanted.sfreq:g}" if wanted.longest else " or more"
            raise ValueError(
                f"{n_times / self.sfreq:g} s are {length} samples at {wanted.sfreq:g} Hz; the "
                f"network accepts {least:g}{most} s, in steps of {step:g} s. Cut other windows."
            )
        n_chans = n_chans if self.weights is None else len(self.weights)
        chs_info = [{"ch_name": name} for name in self.names] or None
        return dict(n_chans=n_chans, chs_info=chs_info, n_times=length, sfreq=wanted.sfreq)

    def forward(self, x: Tensor) -> Tensor:
        """Prepare windows: (batch, n_chans, n_times) -> (batch, n_inputs, n_new)."""
        if self.weights is not None:
            x = self.weights @ x
        if self.input_format.average_reference:
            x = x - x.mean(dim=1, keepdim=True)
        x = self.resample(x)
        if self.input_format.percentile is not None:
            # torch.quantile refuses large batches.
            ordered = x.abs().sort(dim=-1).values
            place = self.input_format.percentile / 100 * (x.shape[-1] - 1)
            low, high = ordered[..., int(place)], ordered[..., math.ceil(place)]
            x = x / (torch.lerp(low, high, place % 1)[..., None] + 1e-8)
        return x

    def __str__(self) -> str:
        wanted = self.input_format
        steps = [f"{self.sfreq:g} Hz -> {wanted.sfreq:g} Hz", f"1 stands for {wanted.volts:g} V"]
        steps += [f"channels {', '.join(self.names)}"] if self.names else []
        steps += [f"{len(self.weights)} derivations"] if self.weights is not None else []
        steps += ["average reference"] if wanted.average_reference else []
        steps += [f"divided by percentile {wanted.percentile:g}"] if wanted.percentile else []
        return "; ".join(steps)


def _own_names(names: Sequence[str], channels: Sequence[str]) -> list[str]:
    """Return the names by which a network knows the channels."""
    known = {name.upper(): name for name in channels}
    bare = [channel_names.electrode_name(name) for name in channel_names.system_names(names)]
    # T3 is T7 to a network that knows only one of them.
    matches = [
        known.get(name) or known.get("-".join(filter(None, channel_names.electrode_pair(name))))
        for name in bare
    ]
    if unknown := [name for name, match in zip(names, matches, strict=True) if match is None]:
        raise ValueError(
            f"The network does not know the channels {checks.format_list(unknown)}; pick others with "
            f"channels=[...]. It knows {', '.join(channels)}."
        )
    return [name for name in matches if name is not None]


def _weights(wanted: Sequence[str], names: Sequence[str]) -> Tensor:
    """Return the weights of channels in the inputs of a network: (n_inputs, n_chans)."""
    rows, missing = [], []
    for name, source in zip(wanted, find_channels(wanted, names), strict=True):
        pair = channel_names.electrode_pair
        # A single channel with another reference would be a guess.
        if source and (source.reference or pair(source.channel) == pair(name)):
            rows.append([float(n == source.channel) - (n in source.reference) for n in names])
        else:
            missing.append(name)
    if missing:
        raise ValueError(
            f"The network needs the channels {checks.format_list(missing)}, which these windows neither "
            f"have nor have both electrodes of: they have {checks.format_list(list(names))}."
        )
    return torch.tensor(rows)


def check_volts(amplitudes: AmplitudeRange | None, scale: float) -> None:
    """Check that windows are in volts times ``scale``.

    Raises
    ------
    ValueError
        When nearly all channels vary by more than 1 mV, or by less than 10 nV.
    """
    if amplitudes and (amplitudes.low > 1e-3 * scale or amplitudes.high < 1e-8 * scale):
        low, high = amplitudes.low / scale, amplitudes.high / scale
        raise ValueError(
            f"The standard deviations of channels are {low:.2g} to {high:.2g} V; EEG has 1e-6 to "
            "1e-3 V. In another unit, such as microvolts, pass preprocessing={'scale': 1e6}."
        )


#: Arguments of a network that come from the windows and the labels, or replace the last layer.
_OF_SIGNALS = {
    *("n_outputs", "n_chans", "chs_info", "n_times", "sfreq", "input_window_seconds"),
    *("return_encoder_output", HEAD),
}
#: What published files put around the tensors, and in front of their names.
_CONTAINERS, _PREFIXES = ("state_dict", "model_state_dict", "model"), ("module.", "student.")
_ENDINGS = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")


def read_weights(
    source: str | Path, network: type[nn.Module]
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the weights of a network, and the arguments of its architecture if they are beside.

    Parameters
    ----------
    source : path | str
        File of tensors (``.safetensors``, or one of ``torch.save``), or a folder or a model of the
        Hub with ``model.safetensors`` and ``config.json``, as ``save_pretrained`` writes them.
        ``"hf://owner/name"`` is downloaded, ``"owner/name"`` only if it was downloaded before.
    network : type[nn.Module]
        Class of the network.

    Raises
    ------
    FileNotFoundError
        When there is no such file, folder or model.
    ValueError
        When the file is damaged, or contains more than tensors; for an encoder of this package.
    """
    file = Path(source).expanduser()
    if file.suffix in _ENDINGS and not file.is_file():
        raise FileNotFoundError(f"The file {file} of the weights does not exist.")
    if file.is_file():
        return _tensors_in(file), {}
    folder = model_files.model_folder(source)
    if folder == model_files.bundled_folder(str(source)):
        raise ValueError(
            f"{source!r} is no {network.__name__}; use PARSClassifier(encoder={source!r})."
        )
    if not (folder / "model.safetensors").is_file():
        raise FileNotFoundError(f"{folder} has no model.safetensors; pass the file of the weights.")
    config, params = folder / "config.json", {}
    for name, value in (json.loads(config.read_bytes()) if config.is_file() else {}).items():
        if name in inspect.signature(network).parameters and name not in _OF_SIGNALS:
            is_class = isinstance(value, str) and value.startswith("torch.nn.")
            # By its name alone: braindecode would import any module that a file names.
            params[name] = getattr(nn, value.rpartition(".")[2]) if is_class else value
    return _tensors_in(folder / "model.safetensors"), params


def _tensors_in(file: Path) -> dict[str, Tensor]:
    try:
        if file.suffix == ".safetensors":
            return safetensors.torch.load_file(file)
        content = torch.load(file, map_location="cpu", weights_only=True)
    except (safetensors.SafetensorError, pickle.UnpicklingError, EOFError, RuntimeError) as error:
        raise ValueError(
            f"{file} is damaged, or has more than tensors; save the state_dict() of the network."
        ) from error
    if isinstance(content, Mapping):
        content = next((content[name] for name in _CONTAINERS if name in content), content)
    if not isinstance(content, Mapping):
        raise ValueError(
            f"{file} holds a {type(content).__name__}, not tensors by name; save the state_dict() "
            "of the network."
        )
    return {str(name): tensor for name, tensor in content.items() if isinstance(tensor, Tensor)}


def load_network(
    network: nn.Module, tensors: Mapping[str, Tensor], source: Any
) -> model_files.LoadReport:
    """Load weights into a network, except its last layer, which is new.

    Parameters
    ----------
    network : nn.Module
        Model of braindecode.
    tensors : dict of str to Tensor
        Tensors of the file.
    source : Any
        Origin of the tensors, for the error message.

    Raises
    ------
    ValueError
        When a tensor before the last layer is not in the file, has another shape there, or is not
        of finite real numbers.

    Warns
    -----
    UserWarning
        When the file has tensors that are not used.
    """
    mapping, state = getattr(network, "mapping", None) or {}, network.state_dict()
    used_tensors: dict[str, Tensor] = {}
    broken = []
    starts = (f"{HEAD}.", "chans_id")  # EEGPT computes the latter from the channels
    for name, tensor in tensors.items():
        name = name.removeprefix(_PREFIXES[0]).removeprefix(_PREFIXES[1])
        name = mapping.get(name, name)
        if name == "temporal_embedding" and name in state:
            # The patches of a shorter window are the first ones, as in the authors' code.
            tensor = tensor[:, : state[name].shape[1]]
        if name.startswith(starts):
            continue
        used_tensors[name] = tensor
        is_real = name not in state or tensor.is_floating_point() >= state[name].is_floating_point()
        has_values = tensor.layout is torch.strided and not tensor.is_meta
        if not (is_real and has_values and tensor.isfinite().all()):
            broken.append(name)
    if broken:
        raise ValueError(
            f"{source} has tensors that are not of finite real numbers: {checks.format_list(broken)}."
        )
    report = model_files.load_tensors(network, used_tensors, source, strict=False)
    lacking = [name for name in (*report.missing, *report.reshaped) if not name.startswith(starts)]
    if lacking:
        raise ValueError(
            f"{source} is not a file of this {type(network).__name__}: {report}. Before the last "
            f"layer it lacks {checks.format_list(lacking)}; for another architecture, pass its "
            "network_params."
        )
    if report.unexpected:
        checks.warn_user(
            f"{len(report.unexpected)} tensors of {source} have no place in this network and are "
            f"not used: {checks.format_list(report.unexpected, max_items=3)}. If these are no parts of a "
            "pretraining head, pass the network_params of the file."
        )
    return report
