"""PARSNet: one shared encoder for every channel, one learnable query over the channels."""

from __future__ import annotations

import braindecode_pars._hosts  # noqa: F401  before braindecode

# isort: split
import inspect
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import torch
from braindecode.models.base import HAS_HF_HUB, EEGModuleMixin
from braindecode.models.util import models_dict
from braindecode.version import __version__ as braindecode_version
from torch import Tensor, nn

from braindecode_pars._sampling_rate import check_same_rate
from braindecode_pars.electrodes import ElectrodeCode, electrode_positions
from braindecode_pars.encoder import MultiHeadAttention, PatchEncoder, check_activation
from braindecode_pars.storage import LoadReport
from braindecode_pars.storage._hub import model_folder
from braindecode_pars.storage._json import read_json
from braindecode_pars.storage._tensors import load_tensors, read_tensors, write_folder
from braindecode_pars.tokens import grid_patches, instance_norm, sinusoidal_positions

__all__ = ["PARSNet", "embed_signals", "patch_size_for"]

#: A patch is this share of the window when nothing tells the sampling rate: 1 s of 30 s.
PATCHES_PER_WINDOW = 30

#: Arguments of :meth:`PARSNet.from_pretrained` that are for the download.
HUB_ARGUMENTS = {"revision", "cache_dir", "force_download", "local_files_only", "token"}

#: Arguments of :meth:`PARSNet.save_pretrained` beside those of ``push_to_hub``.
SAVE_ARGUMENTS = {"config", "model_card_kwargs", "push_to_hub", "repo_id"}


def patch_size_for(patch_seconds: float, sfreq: float | None, n_times: int | None) -> int:
    """Samples in a patch.

    Parameters
    ----------
    patch_seconds : float
        Length of a patch in seconds.
    sfreq : float | None
        Sampling rate in Hz. None makes a patch a thirtieth of the window, as one second is of the
        paper's windows.
    n_times : int | None
        Samples of a window, where known.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    ValueError
        When the window is shorter than the patch, or neither ``sfreq`` nor ``n_times`` is known.

    Examples
    --------
    >>> from braindecode_pars.models import patch_size_for
    >>> patch_size_for(1.0, 200.0, 6000), patch_size_for(1.0, None, 6000)
    (200, 200)
    """
    if not 0 < patch_seconds < float("inf"):
        raise ValueError(f"patch_seconds must be positive, got {patch_seconds}.")
    if sfreq is None:
        if n_times is None:
            raise ValueError(
                "The length of a patch needs sfreq, or the window's n_times to take a share of; "
                "neither is specified or can be inferred."
            )
        return max(1, round(n_times / PATCHES_PER_WINDOW))
    if not 0 < sfreq < float("inf"):
        raise ValueError(f"sfreq must be a positive number of Hz, got {sfreq}.")
    patch_size = max(1, round(patch_seconds * sfreq))
    if n_times is not None and n_times < patch_size:
        raise ValueError(
            f"A window of {n_times} samples is shorter than one patch of {patch_size} samples "
            f"({patch_seconds:g} s at {sfreq:g} Hz); use longer windows or a smaller patch_seconds."
        )
    return patch_size


def _inferred(signal_argument: Callable[[], Any]) -> Any:
    """One of EEGModuleMixin's signal arguments; None where it can not be inferred."""
    try:
        return signal_argument()
    except ValueError:
        return None


def embed_signals(encoder: PatchEncoder, x: Tensor) -> Tensor:
    """Embed single channels: grid patches, positions, encoder, mean over time (section 2.4).

    Parameters
    ----------
    encoder : PatchEncoder
        With or without gradients, and in the mode it is in.
    x : Tensor, shape (batch, n_times)
        At least one patch long, in any unit and of any floating type.

    Returns
    -------
    Tensor, shape (batch, embed_dim)
        One vector for each signal.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.models import embed_signals
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> embed_signals(encoder, torch.randn(8, 3000)).shape
    torch.Size([8, 32])
    """
    normed = instance_norm(x).to(encoder.norm.weight.dtype)
    tokens = encoder.tokenize(grid_patches(normed, encoder.patch_size))
    dtype = torch.promote_types(tokens.dtype, torch.float32)  # for the angles
    times = torch.arange(tokens.shape[1], device=x.device, dtype=dtype)
    positions = sinusoidal_positions(times, encoder.embed_dim).to(tokens.dtype)
    return encoder(tokens + positions).mean(dim=1)


def _activation(name: str) -> type[nn.Module]:
    """The class behind a name such as ``torch.nn.modules.activation.GELU``, of torch only.

    braindecode would import whatever a file from somebody else names.
    """
    if not name.startswith("torch.nn.") or not hasattr(nn, name.rpartition(".")[2]):
        raise ValueError(f"activation {name!r} is not one of torch.nn")
    return getattr(nn, name.rpartition(".")[2])


class PARSNet(EEGModuleMixin, nn.Module):
    r"""PARSNet: multi-channel fine-tuning of a single-channel encoder (Sandino et al. 2025).

    Every channel is cut into adjacent patches, embedded by the pretrained encoder and averaged
    over time; a cross-attention layer with one learnable query collapses these spatial tokens;
    a linear layer predicts (section 2.4). No learnable shape depends on the number of channels
    or samples, so one model serves any montage and window length.

    Parameters
    ----------
    n_outputs : int
        Classes; so many logits come out.
    n_chans : int | None
        Channels. They may be others in :meth:`forward`.
    chs_info : list of dict | None
        As in ``mne.Info["chs"]``; names of channels are what electrode positions come from.
    n_times : int | None
        Samples of a window. They may be others in :meth:`forward`.
    input_window_seconds : float | None
        Length of a window in seconds; of this, ``n_times`` and ``sfreq`` two tell the third.
    sfreq : float | None
        Sampling rate in Hz.
    patch_seconds : float
        Length of a patch in seconds. Where ``sfreq`` is neither given nor inferable, a patch is
        a thirtieth of the window, as one second is of the paper's windows, and a warning says so.
    patch_size : int | None
        Length of a patch in samples, instead of ``patch_seconds``; ``sfreq`` is not needed then.
    channel_drop_prob : float
        Probability to drop a spatial token in training; at least one is kept. Dropped before
        the encoder, which costs less and changes nothing.
    electrode_position : bool
        Add a code of the electrode's 3-D position to its spatial token. Without it (the paper)
        the model cannot tell C3 from C4. Positions come from the names in ``chs_info``, or from
        ``pos`` in :meth:`forward`.
    embed_dim, num_layers, num_heads, mlp_dim : int
        Of the encoder, see :class:`~braindecode_pars.PatchEncoder`. The spatial attention has
        ``num_heads`` heads too.
    drop_prob : float
        Dropout of the encoder.
    activation : type[nn.Module]
        Of the encoder's feed-forward parts.

    Attributes
    ----------
    encoder : PatchEncoder
        What pretraining trains.
    final_layer : torch.nn.Linear
        From the pooled token to logits; nothing that is learned comes after it.
    load_report : LoadReport | None
        What :meth:`from_pretrained` found; None in a model that was not loaded.

    Raises
    ------
    ValueError
        When ``n_outputs`` is missing, a size is out of range, a window is shorter than a patch, or
        signal arguments contradict each other.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars import PARSNet
    >>> net = PARSNet(
    ...     n_outputs=5, n_chans=6, n_times=3000, sfreq=100, embed_dim=32, num_layers=1
    ... )
    >>> net(torch.randn(2, 6, 3000)).shape
    torch.Size([2, 5])
    >>> net.channel_attention(torch.randn(2, 6, 3000)).shape  # of 8 heads
    torch.Size([2, 8, 6])

    References
    ----------
    .. [pars] Sandino, C. M., et al. (2025). Learning the relative composition of EEG signals
       using pairwise relative shift pretraining. arXiv:2511.11940.
    """

    def __init__(
        self,
        n_outputs: int | None = None,
        n_chans: int | None = None,
        chs_info: list[dict] | None = None,
        n_times: int | None = None,
        input_window_seconds: float | None = None,
        sfreq: float | None = None,
        *,
        patch_seconds: float = 1.0,
        patch_size: int | None = None,
        channel_drop_prob: float = 0.5,
        electrode_position: bool = False,
        embed_dim: int = 512,
        num_layers: int = 8,
        num_heads: int = 8,
        mlp_dim: int = 512,
        drop_prob: float = 0.0,
        activation: type[nn.Module] = nn.GELU,
    ):
        super().__init__(
            n_outputs=n_outputs,
            n_chans=n_chans,
            chs_info=chs_info,
            n_times=n_times,
            input_window_seconds=input_window_seconds,
            sfreq=sfreq,
        )
        del n_outputs, n_chans, chs_info, n_times, input_window_seconds, sfreq
        for name, value in (("n_outputs", self._n_outputs), ("n_times", self._n_times)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}.")
        if not 0 <= channel_drop_prob < 1:
            raise ValueError(f"channel_drop_prob must be in [0, 1), got {channel_drop_prob}.")
        if patch_size is None:
            patch_size = patch_size_for(
                patch_seconds, _inferred(lambda: self.sfreq), _inferred(lambda: self.n_times)
            )
            self._warn_of_unknown_rate(patch_size)
        self.load_report: LoadReport | None = None
        self.channel_drop_prob = channel_drop_prob
        self.electrode_position = electrode_position

        self.encoder = PatchEncoder(
            patch_size, embed_dim, num_layers, num_heads, mlp_dim, drop_prob, activation
        )
        if electrode_position:
            known = None
            if self._chs_info is not None:
                known = torch.from_numpy(electrode_positions(self._chs_info))
            # Not in the state_dict: weights must fit any montage.
            self.register_buffer("positions", known, persistent=False)
            self.electrode_code = ElectrodeCode(embed_dim)
        self.query_token = nn.Parameter(torch.empty(embed_dim).normal_(std=0.02))
        self.spatial_attention = MultiHeadAttention(embed_dim, num_heads)
        self.final_layer = nn.Linear(embed_dim, self.n_outputs)

    def _warn_of_unknown_rate(self, patch_size: int) -> None:
        if _inferred(lambda: self.sfreq) is None:
            warnings.warn(
                f"PARSNet was not told the sampling rate; a patch is {patch_size} samples long, a "
                "thirtieth of the window. Pass sfreq (in Hz); to EEGClassifier, module__sfreq.",
                stacklevel=4,  # braindecode wraps __init__
            )

    #: Files of :meth:`save_pretrained`, named as the Hugging Face Hub expects them.
    CONFIG: ClassVar[str] = "config.json"
    WEIGHTS: ClassVar[str] = "model.safetensors"

    def save_pretrained(self, save_directory: str | Path, **hub_arguments: Any) -> Any:
        """Write ``config.json`` and ``model.safetensors`` into a folder.

        Works without ``huggingface_hub``; where it is installed, a model card is written too.

        Parameters
        ----------
        save_directory : path
            The folder, made when it does not exist.
        **hub_arguments
            As in ``huggingface_hub.PyTorchModelHubMixin.save_pretrained``, which takes them.

        Returns
        -------
        str | None
            The commit's address with ``push_to_hub=True``, else None.

        Raises
        ------
        ImportError
            When ``push_to_hub=True`` and ``huggingface_hub`` is not installed; the folder is
            written first.
        OSError
            When the folder cannot be written; what it held before is unchanged.
        ValueError
            When weights are not finite, or the encoder's activation is not one of ``torch.nn``.
        """
        folder = Path(save_directory)
        self._save_pretrained(folder)
        unknown = hub_arguments.keys() - SAVE_ARGUMENTS
        if unknown and not hub_arguments.get("push_to_hub"):
            raise TypeError(f"save_pretrained() got an unexpected argument {min(unknown)!r}")
        if not HAS_HF_HUB:
            if hub_arguments.get("push_to_hub"):
                raise ImportError(
                    f"{folder} is written, but pushing it needs huggingface_hub; install it with: "
                    "pip install huggingface_hub"
                )
            return None
        # Not the mixin's, which deletes the old config.json before anything new is written.
        card = hub_arguments.pop("model_card_kwargs", None) or {}
        if not (folder / "README.md").exists():
            self.generate_model_card(**card).save(folder / "README.md")
        if not hub_arguments.pop("push_to_hub", False):
            return None
        repo_id = hub_arguments.pop("repo_id", None) or folder.name
        return self.push_to_hub(repo_id, model_card_kwargs=card, **hub_arguments)

    def _save_pretrained(self, save_directory: Path) -> None:
        # Not braindecode's, which writes a pickle beside them.
        write_folder(save_directory, **self.files())

    def files(self) -> dict[str, dict[str, Any]]:
        """What :meth:`save_pretrained` writes, as arguments of ``write_folder``."""
        activation = self.encoder.config["activation"]
        check_activation(activation)
        config = {**self.get_config(), "braindecode_version": braindecode_version}
        for ch in config.get("chs_info") or ():
            # JSON has no NaN. What follows the electrode's own three coordinates is not needed.
            location = [x if math.isfinite(x) else 0.0 for x in ch.pop("loc", None) or ()]
            if any(location[:3]):
                ch["loc"] = location
        return {"tensors": {self.WEIGHTS: self.state_dict()}, "described": {self.CONFIG: config}}

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        strict: bool = True,
        n_outputs: int | None = None,
        map_location: str | torch.device = "cpu",
        **arguments: Any,
    ) -> PARSNet:
        """Load what :meth:`save_pretrained` wrote.

        Parameters
        ----------
        pretrained_model_name_or_path : path | str
            A folder, or a model id of the Hugging Face Hub, which is downloaded.
        strict : bool
            Refuse a file that does not hold exactly this model. False loads what fits.
        n_outputs : int | None
            Another number of outputs than the saved one gives a fresh ``final_layer``.
        map_location : str | torch.device
            Device of the model.
        **arguments
            Other values for the constructor, such as another ``n_times`` or ``chs_info``; and
            ``revision``, ``cache_dir``, ``force_download``, ``local_files_only`` and ``token``
            for the download.

        Returns
        -------
        PARSNet
            In evaluation mode, with the :class:`~braindecode_pars.storage.LoadReport` in
            ``load_report``.

        Raises
        ------
        FileNotFoundError
            When there is no such folder or model, or a file is missing in it.
        ValueError
            When a file is damaged, the tensors do not match, or another ``sfreq`` is asked for.
        """
        download = {name: arguments.pop(name) for name in HUB_ARGUMENTS & arguments.keys()}
        unknown = arguments.keys() - inspect.signature(cls).parameters.keys()
        if unknown:
            raise TypeError(f"from_pretrained() got an unexpected argument {min(unknown)!r}")
        folder = model_folder(pretrained_model_name_or_path, download=True, **download)
        for name in (cls.CONFIG, cls.WEIGHTS):
            if not (folder / name).is_file():
                raise FileNotFoundError(f"{folder} holds no {cls.__name__}: it has no {name}.")
        config = read_json(folder / cls.CONFIG)
        check_same_rate(
            arguments.get("sfreq"), config.get("sfreq"), "The windows are", f"the model in {folder}"
        )
        # An argument that is given replaces all that say the same thing in other words.
        if arguments.keys() & {"n_chans", "chs_info"}:
            config.update(n_chans=None, chs_info=None)
        if arguments.keys() & {"n_times", "input_window_seconds"}:
            config.update(n_times=None, input_window_seconds=None)
        config.update(arguments)
        if isinstance(config.get("chs_info"), list):
            config["chs_info"] = cls._deserialize_chs_info(config["chs_info"])
        try:
            if isinstance(config.get("activation"), str):
                config["activation"] = _activation(config["activation"])
            net = cls.from_config(config)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"{folder / cls.CONFIG} does not describe a {cls.__name__}: {error}"
            ) from error
        tensors = read_tensors(folder / cls.WEIGHTS)
        net.load_report = load_tensors(net, tensors, folder / cls.WEIGHTS, strict=strict)
        if n_outputs not in (None, net.n_outputs):
            net.reset_head(n_outputs)
        return net.to(map_location).eval()

    def get_torchinfo_statistics(self, *arguments: Any, **options: Any) -> Any:
        """As in braindecode, with a window of at least one patch where ``n_times`` is unknown."""
        n_times = self._n_times
        if _inferred(lambda: self.n_times) is None:
            self._n_times = max(200, self.encoder.patch_size)
        try:
            return super().get_torchinfo_statistics(*arguments, **options)
        finally:
            self._n_times = n_times

    def reset_head(self, n_outputs: int) -> None:
        """Replace ``final_layer`` by a fresh one for another number of outputs.

        Parameters
        ----------
        n_outputs : int
            Classes.
        """
        self._set_n_outputs(n_outputs)
        old = self.final_layer
        self.final_layer = nn.Linear(old.in_features, n_outputs).to(old.weight)

    def forward(
        self,
        x: Tensor,
        pos: Tensor | None = None,
        ch_mask: Tensor | None = None,
        return_features: bool = False,
    ) -> Tensor | dict[str, Tensor]:
        """Classify windows.

        Parameters
        ----------
        x : Tensor, shape (batch, n_chans, n_times)
            In any unit; any number of channels, at least one patch long.
        pos : Tensor, shape (n_chans, 3) or (batch, n_chans, 3) | None
            Electrode positions in metres in the head frame, NaN where unknown; used when
            ``electrode_position`` is on, instead of those of ``chs_info``.
        ch_mask : Tensor of bool, shape (batch, n_chans) | None
            False where a channel is missing; what stands there then changes nothing.
        return_features : bool
            Return ``{"features": (batch, n_chans, embed_dim), "cls_token": (batch, embed_dim)}``,
            the spatial tokens (zeros where missing) and the pooled token, instead of logits.

        Returns
        -------
        Tensor, shape (batch, n_outputs)
            Logits.

        Raises
        ------
        TypeError
            When ``x`` is not a tensor.
        ValueError
            When shapes do not fit, a window is shorter than a patch, every channel of a window is
            missing, or electrode positions are needed and not there.
        """
        query, spatial, keep = self._query_and_keys(x, pos, ch_mask)
        pooled = self.spatial_attention(query, spatial, keep).squeeze(1)  # (batch, embed_dim)
        if return_features:
            if keep is not None:
                spatial = spatial.masked_fill(~keep[..., None], 0.0)
            return {"features": spatial, "cls_token": pooled}
        return self.final_layer(pooled)

    @torch.no_grad()
    def channel_attention(
        self, x: Tensor, pos: Tensor | None = None, ch_mask: Tensor | None = None
    ) -> Tensor:
        """How much the classification token attends to each channel.

        Parameters
        ----------
        x, pos, ch_mask
            As in :meth:`forward`.

        Returns
        -------
        Tensor, shape (batch, num_heads, n_chans)
            Sums to one over channels; 0 where a channel is missing. All channels take part, also
            in training mode.
        """
        training = self.training
        try:
            query, spatial, keep = self.eval()._query_and_keys(x, pos, ch_mask)
            return self.spatial_attention.weights(query, spatial, keep).squeeze(2)
        finally:
            self.train(training)

    def _query_and_keys(
        self, x: Tensor, pos: Tensor | None, ch_mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The query (batch, 1, embed_dim), the spatial tokens, and which of them take part."""
        self._check_windows(x)
        keep = self._kept_channels(x, ch_mask)
        spatial = self._spatial_tokens(x, keep)  # (batch, n_chans, embed_dim)
        if self.electrode_position:
            spatial = spatial + self.electrode_code(self._positions(x, pos)).to(spatial.dtype)
        return self.query_token.expand(x.shape[0], 1, -1), spatial, keep

    def _check_windows(self, x: Tensor) -> None:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"x is a {type(x).__name__}; PARSNet takes a torch tensor (batch, n_chans, "
                "n_times), for example torch.from_numpy(x).float()."
            )
        if x.ndim != 3 or 0 in x.shape[:2]:
            raise ValueError(
                f"x has shape {tuple(x.shape)}; windows have shape (batch, n_chans, n_times)."
            )
        if not x.is_floating_point():
            raise ValueError(
                f"x holds {x.dtype} samples; EEG samples are real numbers (integers: x.float())."
            )
        if x.shape[-1] < self.encoder.patch_size:
            raise ValueError(
                f"A window of {x.shape[-1]} samples is shorter than the model's patch of "
                f"{self.encoder.patch_size} samples."
            )

    def _kept_channels(self, x: Tensor, ch_mask: Tensor | None) -> Tensor | None:
        """Which channels take part, (batch, n_chans); None for all of them."""
        if ch_mask is not None:
            ch_mask = torch.as_tensor(ch_mask, device=x.device)
            if ch_mask.shape != x.shape[:2]:
                raise ValueError(
                    f"ch_mask has shape {tuple(ch_mask.shape)}, the windows need (batch, n_chans) "
                    f"= {tuple(x.shape[:2])}."
                )
            ch_mask = ch_mask.bool()
            if not torch.compiler.is_compiling() and not ch_mask.any(dim=1).all():
                raise ValueError("ch_mask marks every channel of a window as missing.")
        if not (self.training and self.channel_drop_prob):
            return ch_mask
        luck = torch.rand(x.shape[:2], device=x.device)
        if ch_mask is not None:
            luck = luck.masked_fill(~ch_mask, -1.0)
        # The luckiest channel always stays: an example keeps at least one.
        keep = (luck >= self.channel_drop_prob) | (luck == luck.amax(dim=1, keepdim=True))
        return keep if ch_mask is None else keep & ch_mask

    def _spatial_tokens(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """One token for each channel; channels that are not kept never enter the encoder."""
        if keep is None:
            return embed_signals(self.encoder, x.flatten(0, 1)).unflatten(0, x.shape[:2])
        tokens = embed_signals(self.encoder, x[keep])  # (n_kept, embed_dim)
        spatial = tokens.new_zeros(*x.shape[:2], tokens.shape[-1])
        return spatial.index_put((keep,), tokens)

    def _positions(self, x: Tensor, pos: Tensor | None) -> Tensor:
        positions = self.positions
        if pos is not None:
            positions = torch.as_tensor(pos, dtype=torch.float32, device=x.device)
            batch = positions.shape[0] if positions.ndim == 3 else 1
            if positions.ndim not in (2, 3) or positions.shape[-1] != 3 or batch not in (1, len(x)):
                raise ValueError(
                    f"pos has shape {tuple(positions.shape)}; positions of these windows have "
                    f"shape (n_chans, 3) or (batch, n_chans, 3), batch {len(x)}."
                )
        if positions is None:
            raise ValueError(
                "electrode_position=True needs positions: give chs_info with channel names to the "
                "model, or pos to forward."
            )
        if positions.shape[-2] != x.shape[1]:
            raise ValueError(
                f"There are positions for {positions.shape[-2]} channels, the windows have "
                f"{x.shape[1]}; pass pos of shape (n_chans, 3) to forward."
            )
        return positions


# So that braindecode finds it by name, as in EEGClassifier("PARSNet").
models_dict.setdefault(PARSNet.__name__, PARSNet)
