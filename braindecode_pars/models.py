"""PARSNet: one encoder shared by all channels, then cross-attention over the channels."""

from __future__ import annotations

import braindecode_pars._hosts  # noqa: F401  before braindecode

# isort: split
import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from braindecode.models.base import HAS_HF_HUB, EEGModuleMixin
from braindecode.models.util import models_dict
from braindecode.version import __version__ as braindecode_version
from torch import Tensor, nn

from braindecode_pars._parameters import (
    boolean,
    check_parameters,
    instance,
    integer,
    optional,
    positive,
    share,
)
from braindecode_pars._sampling_rate import check_same_rate
from braindecode_pars._warnings import warn_user
from braindecode_pars.electrodes import ElectrodeCode, electrode_positions
from braindecode_pars.encoder import MultiHeadAttention, PatchEncoder, check_activation
from braindecode_pars.storage import LoadReport
from braindecode_pars.storage._hub import model_folder
from braindecode_pars.storage._model_file import ModelFile
from braindecode_pars.storage._model_folder import (
    CLASSIFIER,
    NETWORK,
    check_may_save,
    read_model,
    write_model,
)
from braindecode_pars.storage._tensors import build_and_load
from braindecode_pars.tokens import grid_patches, instance_norm, sinusoidal_positions
from braindecode_pars.training._seeding import seeded

__all__ = ["PARSNet", "embed_signals", "patch_size_for"]

#: Argument of PARSNet -> rule. The encoder checks its own arguments.
_RULES = dict(
    **dict.fromkeys(("n_outputs", "n_chans", "n_times", "patch_size"), optional(integer(1))),
    **dict.fromkeys(("sfreq", "input_window_seconds"), optional(positive())),
    chs_info=optional(instance("a list of channels as in mne.Info['chs']", list, tuple)),
    patch_seconds=positive(),
    channel_drop_prob=share(),
    electrode_position=boolean(),
)

#: Patches per window when the sampling rate is unknown: 1 s of the 30 s windows of the paper.
PATCHES_PER_WINDOW = 30

#: Arguments of :meth:`PARSNet.from_pretrained` that belong to the download.
HUB_ARGUMENTS = {"revision", "cache_dir", "force_download", "local_files_only", "token"}

#: Arguments of :meth:`PARSNet.save_pretrained`, apart from those of ``push_to_hub``.
SAVE_ARGUMENTS = {"config", "model_card_kwargs", "push_to_hub", "repo_id"}


def patch_size_for(patch_seconds: float, sfreq: float | None, n_times: int | None) -> int:
    """Return the number of samples in a patch.

    Parameters
    ----------
    patch_seconds : float
        Length of a patch in seconds.
    sfreq : float | None
        Sampling rate in Hz. With None, a patch is a thirtieth of the window. This is one second
        of the 30 s windows of the paper.
    n_times : int | None
        Number of samples in a window; None when it is unknown.

    Returns
    -------
    int
        Number of samples, at least 1.

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
    # Unknown sampling rate: a share of the window.
    if sfreq is None:
        if n_times is None:
            raise ValueError(
                "The patch size needs sfreq, or n_times of a window; neither is specified or can "
                "be inferred."
            )
        return max(1, round(n_times / PATCHES_PER_WINDOW))
    if not 0 < sfreq < float("inf"):
        raise ValueError(f"sfreq must be a positive number of Hz, got {sfreq}.")

    # Known sampling rate: seconds to samples.
    patch_size = max(1, round(patch_seconds * sfreq))
    if n_times is not None and n_times < patch_size:
        raise ValueError(
            f"A window of {n_times} samples is shorter than one patch of {patch_size} samples "
            f"({patch_seconds:g} s at {sfreq:g} Hz); use longer windows or a smaller patch_seconds."
        )
    return patch_size


def _inferred(signal_argument: Callable[[], Any]) -> Any:
    """Return a signal argument of EEGModuleMixin; None when it cannot be inferred."""
    try:
        return signal_argument()
    except ValueError:
        return None


def embed_signals(encoder: PatchEncoder, x: Tensor, layer: int = -1) -> Tensor:
    """Return one vector per single-channel signal.

    The steps are grid patches, positions, encoder and mean over time (section 2.4).

    Parameters
    ----------
    encoder : PatchEncoder
        Encoder of the patches. Its training or evaluation mode is not changed.
    x : Tensor, shape (batch, n_times)
        Signals of at least one patch, in any unit and of any floating-point type.
    layer : int
        Layer of the encoder whose features are averaged over time: 0 for the tokens with their
        positions, k for the output of block k, -1 for the last block and the final norm. See
        :meth:`PatchEncoder.features_at <braindecode_pars.PatchEncoder.features_at>`.

    Returns
    -------
    Tensor, shape (batch, embed_dim)
        One vector per signal.

    Raises
    ------
    ValueError
        When the encoder has no such layer.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.models import embed_signals
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> embed_signals(encoder, torch.randn(8, 3000)).shape
    torch.Size([8, 32])
    """
    # Patches to tokens: (batch, n_times) -> (batch, n_patches, embed_dim).
    normed = instance_norm(x).to(encoder.norm.weight.dtype)
    tokens = encoder.tokenize(grid_patches(normed, encoder.patch_size))

    # Add positions, computed in at least float32: bfloat16 cannot represent large positions.
    dtype = torch.promote_types(tokens.dtype, torch.float32)
    times = torch.arange(tokens.shape[1], device=x.device, dtype=dtype)
    positions = sinusoidal_positions(times, encoder.embed_dim).to(tokens.dtype)
    return encoder.features_at(tokens + positions, layer).mean(dim=1)  # (batch, embed_dim)


def _activation(name: str) -> type[nn.Module]:
    """Return the activation class for a name such as ``torch.nn.modules.activation.GELU``.

    Only classes of torch are accepted. braindecode would import any module that an untrusted
    ``config.json`` names.
    """
    if not name.startswith("torch.nn.") or not hasattr(nn, name.rpartition(".")[2]):
        raise ValueError(f"activation {name!r} is not one of torch.nn")
    return getattr(nn, name.rpartition(".")[2])


class PARSNet(EEGModuleMixin, nn.Module):
    r"""PARSNet: multi-channel fine-tuning of a single-channel encoder (Sandino et al. 2025).

    The encoder embeds the patches of each channel separately, and the mean over time gives one
    spatial token per channel. A cross-attention layer with one learnable query pools the spatial
    tokens. A linear layer predicts the logits (section 2.4). No learnable shape depends on the
    number of channels or samples, so one model works with any montage and window length.

    Parameters
    ----------
    n_outputs : int
        Number of classes.
    n_chans : int | None
        Number of channels. :meth:`forward` accepts other numbers.
    chs_info : list of dict | None
        Channels as in ``mne.Info["chs"]``. Electrode positions are looked up by channel name.
    n_times : int | None
        Number of samples in a window. :meth:`forward` accepts other numbers.
    input_window_seconds : float | None
        Length of a window in seconds. Any two of ``input_window_seconds``, ``n_times`` and
        ``sfreq`` determine the third.
    sfreq : float | None
        Sampling rate in Hz.
    patch_seconds : float
        Length of a patch in seconds. When ``sfreq`` is neither passed nor inferred, a patch is a
        thirtieth of the window (1 s of the 30 s windows of the paper), and PARSNet warns.
    patch_size : int | None
        Length of a patch in samples. It replaces ``patch_seconds``, and ``sfreq`` is then not
        needed.
    channel_drop_prob : float
        Probability of dropping a spatial token in training. At least one token is always kept.
        Channels are dropped before the encoder; the result is the same and the cost is lower.
    electrode_position : bool
        Whether a code of the 3-D electrode position is added to each spatial token. Without it,
        as in the paper, the model cannot distinguish C3 from C4. Positions come from the channel
        names in ``chs_info``, or from ``pos`` in :meth:`forward`.
    embed_dim, num_layers, num_heads, mlp_dim : int
        Sizes of the encoder, see :class:`~braindecode_pars.PatchEncoder`. The spatial attention
        also has ``num_heads`` heads.
    drop_prob : float
        Dropout probability of the encoder.
    activation : type[nn.Module]
        Activation in the feed-forward layers of the encoder.

    Attributes
    ----------
    encoder : PatchEncoder
        Encoder of single channels, the part that is pretrained.
    final_layer : torch.nn.Linear
        Last layer, from the pooled token to the logits. No learnable layer follows it.
    load_report : LoadReport | None
        Tensors that :meth:`from_pretrained` loaded; None in a model that was not loaded.

    Raises
    ------
    TypeError
        When an argument has the wrong type.
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
        signal = dict(
            n_outputs=n_outputs,
            n_chans=n_chans,
            chs_info=chs_info,
            n_times=n_times,
            input_window_seconds=input_window_seconds,
            sfreq=sfreq,
        )
        given = dict(
            patch_seconds=patch_seconds,
            patch_size=patch_size,
            channel_drop_prob=channel_drop_prob,
            electrode_position=electrode_position,
        )
        check_parameters({**signal, **given}, _RULES, type(self).__name__)
        super().__init__(**signal)
        # The mixin has inferred and stored these; its properties are used from here on.
        del n_outputs, n_chans, chs_info, n_times, input_window_seconds, sfreq, signal

        if patch_size is None:
            patch_size = patch_size_for(
                patch_seconds, _inferred(lambda: self.sfreq), _inferred(lambda: self.n_times)
            )
            self._warn_of_unknown_rate(patch_size)
        self.load_report: LoadReport | None = None
        self.channel_drop_prob = channel_drop_prob
        self.electrode_position = electrode_position

        # Build the layers.
        self.encoder = PatchEncoder(
            patch_size, embed_dim, num_layers, num_heads, mlp_dim, drop_prob, activation
        )
        if electrode_position:
            positions = None
            if self._chs_info is not None:
                positions = torch.from_numpy(electrode_positions(self._chs_info))
            # Not in the state_dict: saved weights must load with any montage.
            self.register_buffer("positions", positions, persistent=False)
            self.electrode_code = ElectrodeCode(embed_dim)
        self.query_token = nn.Parameter(torch.empty(embed_dim).normal_(std=0.02))
        self.spatial_attention = MultiHeadAttention(embed_dim, num_heads)
        self.final_layer = nn.Linear(embed_dim, self.n_outputs)

    def _warn_of_unknown_rate(self, patch_size: int) -> None:
        if _inferred(lambda: self.sfreq) is None:
            warn_user(
                f"PARSNet: sampling rate unknown; a patch is {patch_size} samples long, a "
                "thirtieth of the window. Pass sfreq (Hz) to PARSNet, or module__sfreq to "
                "EEGClassifier."
            )

    def save_pretrained(self, save_directory: str | Path, **hub_arguments: Any) -> Any:
        """Write ``model.safetensors`` and ``config.json`` into a folder.

        ``model.safetensors`` contains everything that :meth:`from_pretrained` reads: weights,
        configuration and a checksum. ``config.json`` is a copy of the configuration, for people
        and for other programs. If ``huggingface_hub`` is installed, a model card ``README.md`` is
        written too.

        Parameters
        ----------
        save_directory : path
            Folder of the model. It is created if it does not exist. A PARSNet in it is replaced.
        **hub_arguments
            Arguments of ``huggingface_hub.PyTorchModelHubMixin.save_pretrained``.

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
        self._save_pretrained(folder)
        unknown = hub_arguments.keys() - SAVE_ARGUMENTS
        if unknown and not hub_arguments.get("push_to_hub"):
            raise TypeError(f"save_pretrained() got an unexpected argument {min(unknown)!r}")
        if not HAS_HF_HUB:
            if hub_arguments.get("push_to_hub"):
                raise ImportError(
                    f"{folder} is saved, but pushing it needs huggingface_hub; install it with: "
                    "pip install huggingface_hub"
                )
            return None
        # The mixin's save_pretrained deletes the old config.json before it writes the new files,
        # so the model card and the upload are done here.
        card = hub_arguments.pop("model_card_kwargs", None) or {}
        if not (folder / "README.md").exists():
            self.generate_model_card(**card).save(folder / "README.md")
        if not hub_arguments.pop("push_to_hub", False):
            return None
        repo_id = hub_arguments.pop("repo_id", None) or folder.name
        return self.push_to_hub(repo_id, model_card_kwargs=card, **hub_arguments)

    def _save_pretrained(self, save_directory: Path) -> None:
        # This replaces braindecode's method, which also writes a pickle.
        check_may_save(save_directory, NETWORK)
        write_model(save_directory, NETWORK, self.description(), self.state_dict())

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor, as values that JSON supports."""
        # braindecode leaves out NumPy's numbers.
        given = self._braindecode_init_kwargs.items()
        numbers = {name: value.item() for name, value in given if isinstance(value, np.generic)}
        return {**super().get_config(), **numbers}

    def description(self) -> dict[str, Any]:
        """Return the constructor arguments as the description of a model file."""
        activation = self.encoder.config["activation"]
        check_activation(activation)
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
    ) -> PARSNet:
        """Load a model that :meth:`save_pretrained` wrote.

        Parameters
        ----------
        pretrained_model_name_or_path : path | str
            Folder of the model, or a model id of the Hugging Face Hub, which is downloaded.
        strict : bool
            Whether to raise an error when the tensors in the file differ from those of the model.
            With False, the matching tensors are loaded.
        n_outputs : int | None
            Number of outputs. When it differs from the saved number, ``final_layer`` is replaced
            by a new, untrained layer.
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
            :class:`~braindecode_pars.storage.LoadReport`.

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

        # Find the folder and load the model in it.
        folder = model_folder(pretrained_model_name_or_path, download=True, **download)
        model = read_model(folder, NETWORK, CLASSIFIER)
        net = network_from_file(model, folder, strict=strict, **arguments)
        if n_outputs not in (None, net.n_outputs):
            net.reset_head(n_outputs)
        return net.to(map_location).eval()

    def get_torchinfo_statistics(self, *arguments: Any, **options: Any) -> Any:
        """Return the summary of braindecode.

        When ``n_times`` is unknown, the summary is that of a window of at least one patch.
        """
        n_times = self._n_times
        if _inferred(lambda: self.n_times) is None:
            self._n_times = max(200, self.encoder.patch_size)
        try:
            return super().get_torchinfo_statistics(*arguments, **options)
        finally:
            self._n_times = n_times

    def reset_head(self, n_outputs: int) -> None:
        """Replace ``final_layer`` by a new, untrained layer.

        Parameters
        ----------
        n_outputs : int
            Number of classes.
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
        """Return the logits of windows.

        Parameters
        ----------
        x : Tensor, shape (batch, n_chans, n_times)
            Windows of at least one patch, with any number of channels and in any unit.
        pos : Tensor, shape (n_chans, 3) or (batch, n_chans, 3) | None
            Electrode positions in metres in the head frame; NaN for unknown positions. With
            ``electrode_position=True``, they replace those of ``chs_info``. Otherwise they are
            ignored.
        ch_mask : Tensor of bool, shape (batch, n_chans) | None
            Mask of the channels: False marks a missing channel, whose samples are ignored.
        return_features : bool
            Whether to return ``{"features": (batch, n_chans, embed_dim), "cls_token": (batch,
            embed_dim)}`` instead of logits: the spatial tokens (zeros for missing channels) and
            the pooled token.

        Returns
        -------
        Tensor, shape (batch, n_outputs)
            Logits.

        Raises
        ------
        TypeError
            When ``x`` is not a tensor.
        ValueError
            When shapes do not match, a window is shorter than a patch, every channel of a window
            is missing, or electrode positions are needed but missing.
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
        """Return the attention weights of the learnable query for each channel.

        Parameters
        ----------
        x, pos, ch_mask
            As in :meth:`forward`.

        Returns
        -------
        Tensor, shape (batch, num_heads, n_chans)
            Weights that sum to one over channels; 0 for missing channels. No channel is dropped,
            even in training mode.
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
        """Return the query (batch, 1, embed_dim), the spatial tokens and the mask of channels."""
        self._check_windows(x)
        keep = self._kept_channels(x, ch_mask)
        spatial = self._spatial_tokens(x, keep)  # (batch, n_chans, embed_dim)
        if self.electrode_position:
            spatial = spatial + self.electrode_code(self._positions(x, pos)).to(spatial.dtype)
        return self.query_token.expand(x.shape[0], 1, -1), spatial, keep

    def _check_windows(self, x: Tensor) -> None:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"x is a {type(x).__name__}; PARSNet takes a torch tensor of shape (batch, "
                "n_chans, n_times), for example torch.from_numpy(x).float()."
            )
        if x.ndim != 3 or 0 in x.shape[:2]:
            raise ValueError(
                f"x has shape {tuple(x.shape)}; windows have shape (batch, n_chans, n_times)."
            )
        if not x.is_floating_point():
            raise ValueError(
                f"x has dtype {x.dtype}; EEG samples are real numbers. Convert integers with "
                "x.float()."
            )
        if x.shape[-1] < self.encoder.patch_size:
            raise ValueError(
                f"A window of {x.shape[-1]} samples is shorter than the model's patch of "
                f"{self.encoder.patch_size} samples."
            )

    def _kept_channels(self, x: Tensor, ch_mask: Tensor | None) -> Tensor | None:
        """Return the mask of the channels that are used, (batch, n_chans); None for all."""
        # Check the mask of missing channels.
        if ch_mask is not None:
            ch_mask = torch.as_tensor(ch_mask, device=x.device)
            if ch_mask.shape != x.shape[:2]:
                raise ValueError(
                    f"ch_mask has shape {tuple(ch_mask.shape)}; these windows need shape (batch, "
                    f"n_chans) = {tuple(x.shape[:2])}."
                )
            ch_mask = ch_mask.bool()
            # torch.compile cannot trace a branch that depends on tensor values.
            if not torch.compiler.is_compiling() and not ch_mask.any(dim=1).all():
                raise ValueError("ch_mask marks every channel of a window as missing.")
        if not (self.training and self.channel_drop_prob):
            return ch_mask

        # Drop channels at random. The channel with the largest draw is always kept, so that every
        # window keeps at least one; missing channels get a negative draw and are never the largest.
        draw = torch.rand(x.shape[:2], device=x.device)
        if ch_mask is not None:
            draw = draw.masked_fill(~ch_mask, -1.0)
        keep = (draw >= self.channel_drop_prob) | (draw == draw.amax(dim=1, keepdim=True))
        return keep if ch_mask is None else keep & ch_mask

    def _spatial_tokens(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """Return one token per channel: zeros for dropped channels, which are not encoded."""
        if keep is None:
            # (batch, n_chans, n_times) -> (batch * n_chans, embed_dim) -> (batch, n_chans, ...)
            return embed_signals(self.encoder, x.flatten(0, 1)).unflatten(0, x.shape[:2])
        tokens = embed_signals(self.encoder, x[keep])  # (n_kept, embed_dim)
        spatial = tokens.new_zeros(*x.shape[:2], tokens.shape[-1])
        return spatial.index_put((keep,), tokens)

    def _positions(self, x: Tensor, pos: Tensor | None) -> Tensor:
        # ``pos`` replaces the positions from chs_info.
        positions = self.positions
        if pos is not None:
            positions = torch.as_tensor(pos, dtype=torch.float32, device=x.device)
            batch = positions.shape[0] if positions.ndim == 3 else 1
            if positions.ndim not in (2, 3) or positions.shape[-1] != 3 or batch not in (1, len(x)):
                raise ValueError(
                    f"pos has shape {tuple(positions.shape)}; these windows need shape "
                    f"(n_chans, 3) or (batch, n_chans, 3), with batch = {len(x)}."
                )

        # Check that every channel has a row of coordinates.
        if positions is None:
            raise ValueError(
                "electrode_position=True needs positions: pass chs_info with channel names to "
                "PARSNet, or pos to forward."
            )
        if positions.shape[-2] != x.shape[1]:
            raise ValueError(
                f"There are positions for {positions.shape[-2]} channels, but the windows have "
                f"{x.shape[1]} channels; pass pos of shape (n_chans, 3) to forward."
            )
        return positions


def network_from_file(
    model: ModelFile, source: Path, *, strict: bool = True, **arguments: Any
) -> PARSNet:
    """Return the network of a model file; ``source`` is its folder, for error messages.

    The other arguments are those of :meth:`PARSNet.from_pretrained`.
    """
    config = model.description.get("network")
    if not isinstance(config, dict):
        raise ValueError(f"{source} does not describe a PARSNet.")
    check_same_rate(
        arguments.get("sfreq"), config.get("sfreq"), "The windows are", f"the model in {source}"
    )

    # An argument also replaces the saved values of its alternatives: n_chans and chs_info describe
    # the same channels, for example.
    config = dict(config)
    if arguments.keys() & {"n_chans", "chs_info"}:
        config.update(n_chans=None, chs_info=None)
    if arguments.keys() & {"n_times", "input_window_seconds"}:
        config.update(n_times=None, input_window_seconds=None)
    config.update(arguments)

    def build() -> PARSNet:
        named = dict(config)
        if isinstance(named.get("chs_info"), list):
            named["chs_info"] = PARSNet._deserialize_chs_info(named["chs_info"])
        if isinstance(named.get("activation"), str):
            named["activation"] = _activation(named["activation"])
        return PARSNet.from_config(named)

    num_layers = config.get("num_layers")
    with seeded(0):  # the initial weights are replaced; they must not change the caller's draws
        net, report = build_and_load(
            build, model.tensors, source, num_layers=num_layers, strict=strict
        )
    net.load_report = report
    return net


# Register the name, so that EEGClassifier("PARSNet") works.
models_dict.setdefault(PARSNet.__name__, PARSNet)
