"""PARSNet: an encoder that is applied to each channel, and a head that pools the channels."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from braindecode.models.base import EEGModuleMixin
from braindecode.models.util import models_dict
from torch import Tensor, nn

from braindecode_pars._common import checks, model_files
from braindecode_pars.encoder import MultiHeadAttention, PatchEncoder
from braindecode_pars.models import electrodes, network_files, space_time
from braindecode_pars.pretrained import saved

#: Methods with which PARSNet pools the channels of a window.
HEADS = ("attention", "spatial_filter", "both")

#: Argument of PARSNet -> rule. The encoder checks its own arguments.
RULES = dict(
    **dict.fromkeys(
        ("n_outputs", "n_chans", "n_times", "patch_size"), checks.optional(checks.integer(1))
    ),
    **dict.fromkeys(("sfreq", "input_window_seconds"), checks.optional(checks.positive())),
    chs_info=checks.optional(
        checks.instance("a list of channels as in mne.Info['chs']", list, tuple)
    ),
    patch_seconds=checks.positive(),
    channel_drop_prob=checks.proportion(),
    electrode_position=checks.ParameterRule(
        "'auto', True or False", (str, bool), {"auto", True, False}.__contains__
    ),
    amplitude=checks.boolean(),
    head=checks.choice(checks.AUTO, *HEADS),
    encoder_kind=checks.choice("patch", space_time.SPACE_TIME),
    channel_strategy=checks.choice("native"),
    channel_strategy_kwargs=checks.choice(None),
)


def _inferred(signal_argument: Callable[[], Any]) -> Any:
    """Return a signal argument of EEGModuleMixin, or None if it cannot be inferred."""
    try:
        return signal_argument()
    except ValueError:
        return None


class Channels(NamedTuple):
    """Encoded channels of windows, the input of the head.

    Attributes
    ----------
    tokens : Tensor, shape (batch, n_chans, embed_dim)
        Spatial tokens: features of each channel from the encoder, averaged over time. Zeros for
        channels that are missing from the window or dropped at random in training.
    amplitudes : Tensor, shape (batch, n_chans, 1) or (batch, n_chans, 0)
        Amplitudes relative to the other channels of the window. The last dimension is 0 if the
        network does not use amplitudes.
    positions : Tensor, shape (n_chans, 3) or (batch, n_chans, 3) | None
        Electrode positions. None if the network does not use positions.
    keep : Tensor of bool, shape (batch, n_chans) | None
        Mask that is True for channels that are pooled. If None, all channels are pooled.
    """

    tokens: Tensor
    amplitudes: Tensor
    positions: Tensor | None
    keep: Tensor | None


class PARSNet(EEGModuleMixin, nn.Module):
    r"""PARSNet: braindecode model for fine-tuning a pretrained encoder (Sandino et al. 2025).

    The encoder processes each channel separately, and the features of a channel are averaged over
    time, which results in one vector per channel, called spatial token. A cross-attention layer
    with one learnable query pools the spatial tokens of all channels, and a linear layer predicts
    the logits (section 2.4 of the paper). The shapes of the weights do not depend on the number of
    channels or samples, so one model can be used with any montage and any window length.

    Parameters
    ----------
    n_outputs : int
        Number of classes.
    n_chans : int | None
        Number of channels. :meth:`forward` also accepts windows with a different number of
        channels.
    chs_info : list of dict | None
        Channels as in ``mne.Info["chs"]``. Electrode positions are looked up by channel name.
    n_times : int | None
        Number of samples in a window. :meth:`forward` also accepts windows with a different number
        of samples.
    input_window_seconds : float | None
        Length of a window in seconds. Any two of ``input_window_seconds``, ``n_times`` and
        ``sfreq`` determine the third.
    sfreq : float | None
        Sampling rate in Hz.
    encoder : str | path | PatchEncoder | fitted estimator | None
        Pretrained encoder, whose weights are copied: the name of an encoder that is part of the
        package (such as ``"small"``, see :func:`~braindecode_pars.pretrained.packaged_encoders`),
        the folder of a saved encoder, ``"hf://owner/name"`` on the Hugging Face Hub, a
        PatchEncoder, or a fitted estimator. The sizes, the patch length, the patch embedding and
        the activation of the encoder take precedence over the arguments below. The windows must
        have the sampling rate of the encoder. If None, a new encoder is built with random weights.
    patch_seconds : float
        Length in seconds of a patch (a short segment that the encoder represents by one vector). If
        the sampling rate is unknown, ``patch_seconds`` is ignored: a patch is then 1/30 as long as
        the window (1 s for the 30 s windows of the paper), and a warning is issued.
    patch_size : int | None
        Length of a patch in samples. If ``patch_size`` is set, ``patch_seconds`` is ignored, and
        ``sfreq`` is not required.
    channel_drop_prob : float
        Probability of dropping the spatial token of a channel in training, as a regularization. At
        least one token per window is always retained. An encoder of single channels does not
        process dropped channels, which saves time.
    electrode_position : "auto" | bool
        Whether to add a learned encoding of the 3-D electrode position to each spatial token before
        the attention. Without positions, as in the paper, attention cannot distinguish C3 from C4.
        ``"auto"`` adds the encoding if ``chs_info`` contains several channels and the position of
        at least one channel is known. Positions are looked up by the channel names in ``chs_info``,
        which can be passed here or to :meth:`forward`. Alternatively, pass the positions themselves
        to :meth:`forward` as ``pos``.
    amplitude : bool
        Whether the head uses the amplitude of each channel relative to the other channels of the
        window (:func:`~braindecode_pars.models.relative_amplitude`). The encoder does not use
        amplitudes, because each channel is normalized. If True, a learned encoding of the amplitude
        is added to each spatial token before the attention, and the amplitude is an additional
        input of the spatial filters. The model in the paper does not use amplitudes.
    head : "attention" | "spatial_filter" | "both" | "auto"
        How the channels are pooled. ``"attention"`` uses the cross-attention of the paper.
        ``"spatial_filter"`` uses a :class:`~braindecode_pars.models.SpatialFilter`, which computes
        weighted means over channels. The weights are a function of the electrode position, even if
        ``electrode_position=False``. ``"both"`` concatenates the outputs of attention and filter.
        ``"auto"`` selects ``"spatial_filter"`` if ``chs_info`` contains several channels and the
        position of at least one channel is known, and ``"attention"`` otherwise.
    embed_dim, num_layers, num_heads, mlp_dim : int
        Sizes of the encoder, see :class:`~braindecode_pars.PatchEncoder`. The cross-attention over
        channels also has ``num_heads`` heads. The defaults are the same as in
        :class:`~braindecode_pars.PARSClassifier`; ``paper.MODEL`` contains the published sizes.
    drop_prob : float
        Dropout probability of the encoder.
    activation : type[nn.Module]
        Activation in the feed-forward networks of the encoder.
    tokenizer : "linear" | "spectral"
        Patch embedding, which maps patches to tokens, see :class:`~braindecode_pars.PatchEncoder`.
    encoder_kind : "patch" | "space_time"
        Kind of a new encoder: ``"patch"`` encodes single channels, as in the paper;
        ``"space_time"`` encodes all channels jointly
        (:class:`~braindecode_pars.models.SpaceTimeEncoder`).
    channel_strategy, channel_strategy_kwargs : "native", None
        In versions of braindecode after 1.8, these arguments control how a pretrained model maps
        the channels of windows to the channels of pretraining. PARSNet accepts windows with any
        channels, so only the default values are accepted.

    Attributes
    ----------
    encoder : PatchEncoder
        The encoder, which can be pretrained with a pretext task.
    final_layer : torch.nn.Linear
        Last layer with learnable weights, which maps the pooled features to the logits.
    positions : Tensor, shape (n_chans, 3) | None
        Electrode positions from ``chs_info``. None if the model does not use positions, or if no
        position is known.
    load_report : LoadReport | None
        Report on which tensors were loaded from a file, by :meth:`from_pretrained` or for the
        argument ``encoder``. None if no tensors were loaded.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        In any of these cases:

        - ``n_outputs`` is missing, a size is out of range, or arguments that describe the windows
          (such as ``n_times``, ``sfreq`` and ``input_window_seconds``) contradict each other.
        - A window is shorter than a patch.
        - The sampling rates of the windows and of ``encoder`` differ.
        - The file of ``encoder`` is damaged.
    FileNotFoundError
        If ``encoder`` is the name or the folder of an encoder that does not exist.

    Warns
    -----
    UserWarning
        If the sampling rate is unknown, or if the model uses electrode positions but no position
        is known.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars import PARSNet
    >>> net = PARSNet(
    ...     n_outputs=5, n_chans=6, n_times=3000, sfreq=100, embed_dim=32, num_layers=1
    ... )
    >>> net(torch.randn(2, 6, 3000)).shape
    torch.Size([2, 5])
    >>> net.channel_attention(torch.randn(2, 6, 3000)).shape  # 4 attention heads
    torch.Size([2, 4, 6])

    A network for two classes with the pretrained encoder ``"small"``, which is part of the package,
    and a braindecode classifier with the same encoder:

    >>> net = PARSNet.from_pretrained("small", n_outputs=2, n_chans=6)
    >>> print(net.load_report)  # tensors of the encoder
    69 of 69 tensors loaded
    >>> from braindecode import EEGClassifier
    >>> clf = EEGClassifier(PARSNet, module__encoder="small", train_split=None)

    References
    ----------
    .. [pars] Sandino, C. M., et al. (2025). Learning the relative composition of EEG signals
       using pairwise relative shift pretraining. arXiv:2511.11940.

    .. rubric:: Saving, loading and the Hugging Face Hub

    .. code-block:: python

        from braindecode_pars import PARSNet

        model = PARSNet(n_chans=22, n_outputs=4, n_times=1000, sfreq=250)
        model.save_pretrained("model")
        model = PARSNet.from_pretrained("model", n_outputs=2)  # with a new last layer

        # with the extra "hub" of this package
        model.push_to_hub("username/my-model")
        model = PARSNet.from_pretrained("username/my-model")
    """

    encoder: PatchEncoder
    _braindecode_init_kwargs: dict[str, Any]
    _chs_info: list[dict[str, Any]] | None
    _n_times: int | None
    _set_n_outputs: Callable[[int], None]
    n_outputs: int

    #: Empty, because the notes that braindecode adds to docstrings import the model from
    #: braindecode. The docstring of this class contains the correct import.
    _HUB_NOTES_TEMPLATE = ""

    save_pretrained = network_files.save_pretrained
    from_pretrained = classmethod(network_files.from_pretrained)
    description = network_files.description

    def __init__(
        self,
        n_outputs: int | None = None,
        n_chans: int | None = None,
        chs_info: list[dict] | None = None,
        n_times: int | None = None,
        input_window_seconds: float | None = None,
        sfreq: float | None = None,
        *,
        encoder: Any = None,
        patch_seconds: float = 1.0,
        patch_size: int | None = None,
        channel_drop_prob: float = 0.5,
        electrode_position: str | bool = "auto",
        amplitude: bool = True,
        head: str = "attention",
        embed_dim: int = 64,
        num_layers: int = 2,
        num_heads: int = 4,
        mlp_dim: int = 128,
        drop_prob: float = 0.0,
        activation: type[nn.Module] = nn.GELU,
        tokenizer: str = "spectral",
        encoder_kind: str = "patch",
        channel_strategy: str = "native",
        channel_strategy_kwargs: dict[str, Any] | None = None,
    ):
        checks.check_parameters(locals(), RULES, type(self).__name__)
        loaded = None if encoder is None else saved.load_encoder(encoder)
        if loaded is not None and None in (n_times, input_window_seconds):
            sfreq = loaded.card.sfreq if sfreq is None else sfreq
        super().__init__(n_outputs, n_chans, chs_info, n_times, input_window_seconds, sfreq)
        # The mixin has inferred and stored these arguments. From here on, its properties are used.
        del n_outputs, n_chans, chs_info, n_times, input_window_seconds, sfreq

        self.load_report: model_files.LoadReport | None = None if loaded is None else loaded.report
        self.channel_drop_prob = channel_drop_prob
        self.amplitude = amplitude
        # The position of the only channel of a window contains no information.
        channels = self._chs_info or []
        has_positions = len(channels) > 1 and electrodes.n_known_electrodes(channels) > 0
        if head == checks.AUTO:
            head = "spatial_filter" if has_positions else "attention"
        self.head = head
        attention, spatial_filter = head != "spatial_filter", head != "attention"
        # The encoding of electrode positions is only added to the inputs of the attention.
        if electrode_position == checks.AUTO:
            electrode_position = has_positions
        self.electrode_position = bool(electrode_position) and attention

        # Build the layers. A loaded encoder determines its sizes.
        if loaded is None:
            config: dict[str, Any] = dict(
                encoder_kind=encoder_kind,
                patch_size=self._patch_size(patch_seconds) if patch_size is None else patch_size,
                embed_dim=embed_dim,
                num_layers=num_layers,
                num_heads=num_heads,
                mlp_dim=mlp_dim,
                drop_prob=drop_prob,
                activation=activation,
                tokenizer=tokenizer,
            )
            self.encoder = space_time.build_encoder(**config)
        else:
            what, expected_of = "The windows are", "the encoder was pretrained at"
            window_sfreq = _inferred(lambda: self.sfreq)
            checks.check_same_rate(window_sfreq, loaded.card.sfreq, what, expected_of)
            config = loaded.encoder.config | {"drop_prob": drop_prob}
            self.encoder = space_time.build_encoder(**config)
            self.encoder.load_state_dict(loaded.encoder.state_dict())
        embed_dim, num_heads = config["embed_dim"], config["num_heads"]
        # The spatial filter and the SpaceTimeEncoder always use electrode positions.
        is_spatial = isinstance(self.encoder, space_time.SpaceTimeEncoder)
        self._uses_positions = self.electrode_position or spatial_filter or is_spatial
        # Not in the state_dict, because saved weights can be used with any montage.
        self.positions: Tensor | None
        self.register_buffer("positions", self._find_positions(), persistent=False)
        n_pooled = 0
        if self.electrode_position:
            self.electrode_code = electrodes.ElectrodeCode(embed_dim)
        if amplitude and attention:
            self.amplitude_code = electrodes.AmplitudeCode(embed_dim)
        if spatial_filter:
            self.spatial_filter = electrodes.SpatialFilter(embed_dim + int(amplitude))
            n_pooled += self.spatial_filter.out_features
        if attention:
            self.query_token = nn.Parameter(torch.empty(embed_dim).normal_(std=0.02))
            self.spatial_attention = MultiHeadAttention(embed_dim, num_heads)
            n_pooled += embed_dim
        self.final_layer = nn.Linear(n_pooled, self.n_outputs)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor, by name.

        For ``electrode_position="auto"`` and ``head="auto"``, the dict contains the selected
        values. Instead of ``encoder``, it contains the sizes of the encoder. ``channel_strategy``
        and ``channel_strategy_kwargs`` are not included, because each has only one accepted value.
        """
        # The method of braindecode omits NumPy numbers.
        arguments = self._braindecode_init_kwargs.items()
        numbers = {name: value.item() for name, value in arguments if isinstance(value, np.generic)}
        config = super().get_config() | numbers | self.encoder.config
        for name in ("encoder", "channel_strategy", "channel_strategy_kwargs"):
            config.pop(name, None)
        activation = config["activation"]
        config["activation"] = f"{activation.__module__}.{activation.__qualname__}"
        config |= {"head": self.head, "electrode_position": self.electrode_position}
        config["sfreq"] = _inferred(lambda: self.sfreq)
        return config

    def _patch_size(self, patch_seconds: float) -> int:
        """Return the number of samples in a patch; warn if the sampling rate is unknown."""
        sfreq = _inferred(lambda: self.sfreq)
        patch_size = patch_size_for(patch_seconds, sfreq, _inferred(lambda: self.n_times))
        if sfreq is None:
            checks.warn_user(
                f"The sampling rate is unknown, so PARSNet uses patches of {patch_size} samples "
                "(1/30 of the window) instead of patch_seconds. Pass sfreq in Hz (module__sfreq in "
                "EEGClassifier)."
            )
        return patch_size

    def _find_positions(self) -> Tensor | None:
        """Return the positions from ``chs_info``, if they are used and at least one is known."""
        if not self._uses_positions:
            return None
        names = [ch["ch_name"] for ch in self._chs_info or ()]
        positions = torch.from_numpy(electrodes.electrode_positions(self._chs_info or []))
        if positions.isfinite().any():
            return positions
        # Without chs_info, positions may be passed to forward, which raises an error otherwise.
        if names or not self.electrode_position:
            channels = checks.format_list(names, max_items=3) or "without names"
            checks.warn_user(
                "This PARSNet uses electrode positions, but no position is known (channels: "
                f"{channels}). Pass chs_info with channel names of the 10-05 system or with "
                "electrode positions of a montage, or pass pos to forward."
            )
        return None

    def get_torchinfo_statistics(self, *arguments: Any, **options: Any) -> Any:
        """Return the model summary of braindecode.

        If ``n_times`` is unknown, the summary is computed for a window of 200 samples or one patch,
        whichever is longer.
        """
        n_times = self._n_times
        if _inferred(lambda: self.n_times) is None:
            self._n_times = max(200, self.encoder.patch_size)
        try:
            return super().get_torchinfo_statistics(*arguments, **options)
        finally:
            self._n_times = n_times

    def reset_head(self, n_outputs: int) -> None:
        """Replace ``final_layer`` with a new layer with random weights.

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
        chs_info: list[dict] | None = None,
    ) -> Tensor | dict[str, Tensor]:
        """Return the logits of windows.

        Parameters
        ----------
        x : Tensor, shape (batch, n_chans, n_times)
            Windows of at least one patch, with any number of channels and in any unit.
        pos : Tensor, shape (n_chans, 3) or (batch, n_chans, 3) | None
            Electrode positions in meters in the head frame; NaN for unknown positions. If None, the
            attribute ``positions`` of the model is used. Models that do not use electrode positions
            ignore ``pos``.
        ch_mask : Tensor of bool, shape (batch, n_chans) | None
            Mask that is False for missing channels, whose samples are ignored. If None, no channel
            is missing.
        return_features : bool
            Whether to return a dict of features instead of the logits. Its entry ``"features"``,
            shape (batch, n_chans, embed_dim), contains the spatial tokens plus the encodings of
            amplitude and electrode position, with zeros for missing channels. Its entry
            ``"cls_token"``, shape (batch, final_layer.in_features), contains the pooled features,
            which are the input of ``final_layer``.
        chs_info : list of dict | None
            Channels of ``x``, as in ``mne.Info["chs"]``, if they differ from the channels for which
            the model was built. Use it instead of ``pos`` to pass electrode positions by name.

        Returns
        -------
        Tensor, shape (batch, n_outputs), or dict of str to Tensor
            Logits, or features if ``return_features=True``.

        Raises
        ------
        TypeError
            If ``x`` is not a tensor, or ``chs_info`` is not a list of channels.
        ValueError
            In any of these cases:

            - Shapes do not match, or a window is shorter than a patch.
            - Every channel of a window is missing.
            - Both ``pos`` and ``chs_info`` are passed.
            - Electrode positions are required but missing.
        """
        channels = self.encode_channels(x, pos, ch_mask, chs_info)
        if not return_features:
            return self.pool_channels(channels)
        tokens = self._coded_tokens(channels)
        pooled = self._pool(tokens, channels)
        if channels.keep is not None:
            tokens = tokens.masked_fill(~channels.keep[..., None], 0.0)
        return {"features": tokens, "cls_token": pooled}

    def pool_channels(self, channels: Channels) -> Tensor:
        """Return the logits of encoded channels; the second part of :meth:`forward`."""
        return self.final_layer(self._pool(self._coded_tokens(channels), channels))

    @torch.no_grad()
    def channel_attention(
        self,
        x: Tensor,
        pos: Tensor | None = None,
        ch_mask: Tensor | None = None,
        chs_info: list[dict] | None = None,
    ) -> Tensor:
        """Return the weight of each channel in the cross-attention that pools the channels.

        Parameters
        ----------
        x, pos, ch_mask, chs_info
            As in :meth:`forward`.

        Returns
        -------
        Tensor, shape (batch, num_heads, n_chans)
            Weights that sum to 1 over channels; 0 for missing channels. Channels are not dropped at
            random, even in training mode.

        Raises
        ------
        ValueError
            If ``head="spatial_filter"``, or in the same cases as in :meth:`forward`.
        """
        if self.head == "spatial_filter":
            raise ValueError(
                "channel_attention requires a PARSNet with attention over channels, but this "
                "PARSNet has head='spatial_filter'. Build a PARSNet with head='attention' or "
                "head='both'."
            )
        training = self.training
        try:
            channels = self.eval().encode_channels(x, pos, ch_mask, chs_info)
            tokens = self._coded_tokens(channels)
            query = self.query_token.expand(tokens.shape[0], 1, -1)
            return self.spatial_attention.weights(query, tokens, channels.keep).squeeze(2)
        finally:
            self.train(training)

    def encode_channels(
        self,
        x: Tensor,
        pos: Tensor | None = None,
        ch_mask: Tensor | None = None,
        chs_info: list[dict] | None = None,
    ) -> Channels:
        """Encode the channels of windows; the first part of :meth:`forward`.

        The arguments are the same as in :meth:`forward`. The result, a :class:`Channels`, contains
        all inputs of the head: spatial tokens, amplitudes, electrode positions and channel mask.
        """
        check_windows(x, self.encoder.patch_size)
        if ch_mask is not None:
            ch_mask = _tensor_of("ch_mask", ch_mask, x.device, tuple(x.shape[:2])).bool()
            # torch.compile cannot trace a branch that depends on tensor values.
            if not torch.compiler.is_compiling() and not ch_mask.any(dim=1).all():
                raise ValueError(
                    "ch_mask is False for all channels of at least one window. Remove the windows "
                    "in which all channels are missing."
                )
        positions = self._positions(x, pos, chs_info)
        keep = self._kept_channels(x, ch_mask)
        # (batch, n_chans, embed_dim)
        tokens = space_time.embed_channels(self.encoder, x, positions, keep)
        amplitudes = tokens.new_empty(*x.shape[:2], 0)
        if self.amplitude:
            # Amplitudes are relative to all channels that are not missing, so that dropping
            # channels in training does not change the amplitudes of the remaining channels.
            amplitudes = electrodes.relative_amplitude(x, ch_mask)[..., None].to(tokens.dtype)
        return Channels(tokens, amplitudes, positions, keep)

    def _coded_tokens(self, channels: Channels) -> Tensor:
        """Return the spatial tokens plus the encodings of amplitude and electrode position."""
        tokens = channels.tokens
        if self.amplitude and self.head != "spatial_filter":
            tokens = tokens + self.amplitude_code(channels.amplitudes)
        if self.electrode_position:
            tokens = tokens + self.electrode_code(channels.positions).to(tokens.dtype)
        return tokens

    def _pool(self, tokens: Tensor, channels: Channels) -> Tensor:
        """Return the pooled features, (batch, final_layer.in_features)."""
        pooled = []
        if self.head != "spatial_filter":
            query = self.query_token.expand(tokens.shape[0], 1, -1)
            pooled.append(self.spatial_attention(query, tokens, channels.keep).squeeze(1))
        if self.head != "attention":
            # A filter multiplies features by functions of the position, so the encoding of the
            # position is not added. Shape: (batch, n_chans, embed_dim or embed_dim + 1).
            features = torch.cat([channels.tokens, channels.amplitudes], dim=-1)
            pooled.append(self.spatial_filter(features, channels.positions, channels.keep))
        return torch.cat(pooled, dim=-1)

    def _kept_channels(self, x: Tensor, ch_mask: Tensor | None) -> Tensor | None:
        """Return the mask of the channels that are used, (batch, n_chans); None for all."""
        if not (self.training and self.channel_drop_prob):
            return ch_mask
        # Drop channels at random. The channel with the largest random number is never dropped, so
        # every window has at least one channel. Missing channels get a negative number, which is
        # never the largest.
        draw = torch.rand(x.shape[:2], device=x.device)
        if ch_mask is not None:
            draw = draw.masked_fill(~ch_mask, -1.0)
        keep = (draw >= self.channel_drop_prob) | (draw == draw.amax(dim=1, keepdim=True))
        return keep if ch_mask is None else keep & ch_mask

    def _positions(
        self, x: Tensor, pos: Tensor | None, chs_info: list[dict] | None
    ) -> Tensor | None:
        """Return the electrode positions, with one row per channel; None if they are not used."""
        if pos is not None and chs_info is not None:
            raise ValueError("Both pos and chs_info were passed. Pass only one of them.")
        if not self._uses_positions:
            return None
        positions = self.positions if pos is None else pos
        if chs_info is not None:
            positions = torch.from_numpy(electrodes.electrode_positions(chs_info))
        if positions is not None:
            shape = (x.shape[1], 3)
            shapes = (shape, (1, *shape), (len(x), *shape))
            name = "The array of electrode positions"
            return _tensor_of(name, positions, x.device, *shapes).float()
        if self.electrode_position and self._chs_info is None:
            raise ValueError(
                "electrode_position=True requires electrode positions. Pass chs_info with channel "
                "names (to PARSNet or to forward), or pass pos to forward."
            )
        return electrodes.positions_of(None, x)


# Register the name in braindecode, so that EEGClassifier("PARSNet") works.
models_dict.setdefault(PARSNet.__name__, PARSNet)


def check_windows(x: Any, patch_size: int) -> None:
    """Check that windows are a floating-point tensor of valid shape, at least one patch long.

    Raises
    ------
    TypeError
        If ``x`` is not a floating-point tensor.
    ValueError
        If the shape of ``x`` is not valid, or a window is shorter than a patch.
    """
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise TypeError(
            f"x must be a floating-point torch tensor, got {type(x).__name__} of dtype "
            f"{getattr(x, 'dtype', None)}. Convert x, for example with torch.as_tensor(x).float()."
        )
    if x.ndim != 3 or 0 in x.shape[:2] or x.shape[-1] < patch_size:
        raise ValueError(
            f"x must have shape (batch, n_chans, n_times) with at least {patch_size} samples (one "
            f"patch) per window, got shape {tuple(x.shape)}. Add missing dimensions, or use longer "
            "windows."
        )


def _tensor_of(name: str, values: Any, device: torch.device, *shapes: tuple[int, ...]) -> Tensor:
    """Convert values to a tensor, and check that it has one of the shapes."""
    tensor = torch.as_tensor(values, device=device)
    if (shape := tuple(tensor.shape)) not in shapes:
        expected = " or ".join(map(str, dict.fromkeys(shapes)))
        raise ValueError(f"{name} must have shape {expected} to match x, got shape {shape}.")
    return tensor


def check_length(n_times: int | None, patch_size: int) -> None:
    """Check that windows of ``n_times`` samples (None if unknown) contain at least one patch."""
    if n_times is not None and n_times < patch_size:
        raise ValueError(
            f"The windows have {n_times} samples, but one patch has {patch_size} samples. Use "
            "longer windows, or build a new encoder with shorter patches (patch_seconds)."
        )


#: Number of patches per window if the sampling rate is unknown. In the 30 s windows of the paper, a
#: patch is then 1 s long.
PATCHES_PER_WINDOW = 30


def patch_size_for(patch_seconds: float, sfreq: float | None, n_times: int | None) -> int:
    """Convert the length of a patch from seconds to samples.

    Parameters
    ----------
    patch_seconds : float
        Length of a patch in seconds.
    sfreq : float | None
        Sampling rate in Hz. If None, a patch is 1/30 as long as the window (1 s for the 30 s
        windows of the paper).
    n_times : int | None
        Number of samples in a window. None if unknown.

    Returns
    -------
    int
        Number of samples, at least 1.

    Raises
    ------
    ValueError
        If the window is shorter than the patch, or both ``sfreq`` and ``n_times`` are None.

    Examples
    --------
    >>> from braindecode_pars.models import patch_size_for
    >>> patch_size_for(1.0, 200.0, 6000), patch_size_for(1.0, None, 3000)  # 1.0 * 200, 3000 / 30
    (200, 100)
    """
    if sfreq is None:  # a fraction of the window
        if n_times is None:
            raise ValueError(
                "The number of samples in a patch cannot be determined. Pass sfreq (sampling rate "
                "in Hz) or n_times (number of samples in a window)."
            )
        return max(1, round(n_times / PATCHES_PER_WINDOW))
    patch_size = max(1, round(patch_seconds * sfreq))
    check_length(n_times, patch_size)
    return patch_size
