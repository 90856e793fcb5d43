"""Pick channels: EEG channels that are not bad, in the same order in fit and predict.

- Only EEG channels are used. Channels are EEG if neither their MNE channel type nor their name
  indicates another signal. Other channels can be selected with ``channels=``.
- Channels that are marked as bad in ``info["bads"]`` are not used, as in MNE.
- If recordings have the same channels in different orders, the order of the first recording is
  used.
- If recordings have different channels, only the channels shared by all recordings are used.
- In ``predict``, a model uses the channels that it was fitted on, in the same order. They are
  matched by name.

A warning or an error names missing channels. Channels are matched by electrode: "EEG C3-REF"
matches "C3". If the names contain different references, a warning is issued. Channels without
names, as in arrays, are matched by their position.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from braindecode_pars._common import channel_names, checks, findings
from braindecode_pars._common.findings import Finding
from braindecode_pars.windows.table import Montage, Windows


def pick_eeg(windows: Windows) -> Windows:
    """Pick the EEG channels that are not marked as bad.

    Parameters
    ----------
    windows : Windows
        Windows of one or more montages.

    Returns
    -------
    Windows
        Windows with the picked channels. If the channels have no names, none is excluded.

    Raises
    ------
    ValueError
        If a montage has no EEG channel, or if all EEG channels of a montage are marked as bad.

    Warns
    -----
    UserWarning
        If channels are excluded.
    """
    if windows.chs_info is None:
        return windows
    montages = windows.montages
    channels = [(ch, montage) for montage in montages for ch in montage.chs_info or ()]
    non_eeg = [ch["ch_name"] for ch, _ in channels if not channel_names.is_eeg(ch)]
    bads = [
        ch["ch_name"] for ch, m in channels if channel_names.is_eeg(ch) and ch["ch_name"] in m.bads
    ]
    picked = [_eeg_of(montage) for montage in montages]
    if non_eeg:
        checks.warn_user(
            "Channels that are not EEG (according to their channel type or name) are excluded: "
            f"{_list(non_eeg)}. To include such channels, list the names of all channels to use in "
            "channels=."
        )
    if bads:
        n = _n_windows(windows, [not montage.bads.isdisjoint(bads) for montage in montages])
        values = dict(channels=channel_names.odd_first(bads), n=n, n_windows=len(windows))
        findings.warn(Finding("bad_channels", values))
    return windows.with_montages(picked)


def pick_for_fit(
    windows: Windows, channels: Sequence[str] | None = None, *, any_montage: bool = False
) -> Windows:
    """Pick the channels for ``fit``, so that all windows have the same channels in the same order.

    Parameters
    ----------
    windows : Windows
        Windows of one or more montages.
    channels : sequence of str | None
        Names of the channels to use, in this order. The channels may have any channel type. If
        None, the EEG channels are used.
    any_montage : bool
        Whether the model accepts windows with different channels. If True, and all montages have
        the same number of EEG channels, each montage keeps all of its EEG channels. Otherwise, only
        the channels shared by all recordings are used.

    Returns
    -------
    Windows
        Windows with the picked channels.

    Raises
    ------
    TypeError
        If ``channels`` is a string.
    ValueError
        If a montage has no EEG channel, or if all EEG channels of a montage are marked as bad. Also
        if a channel in ``channels`` is missing or listed twice, or if only some of the windows have
        channel names.

    Warns
    -----
    UserWarning
        As in :func:`pick_eeg`. Also if the recordings have different channels, so that only the
        channels shared by all recordings are used, or if the names of matched channels contain
        different references.
    """
    if channels is not None:
        names = check_channels(channels)
        if windows.chs_info is None:
            raise ValueError(
                f"channels={names} selects channels by name, but the windows have no channel "
                "names. Select the channels of the array by index before fit, and omit channels=."
            )
        matched = _match_good(windows, names)
        if problem := _absent_channels(windows, names, matched, "listed in channels="):
            raise ValueError(
                f"{problem.text} Interpolate or add the missing channels, or remove them from "
                "channels=."
            )
        return _picked(windows, names, matched)
    windows = pick_eeg(windows)
    montages = windows.montages
    sizes = {None if m.chs_info is None else len(m.names) for m in montages}
    if windows.chs_info is None or (any_montage and None in sizes):
        return windows
    if None in sizes:
        raise ValueError(
            "Some windows have channel names, but other windows have no channel names. Pass only "
            "windows with channel names, or only arrays."
        )
    # Channels shared by all recordings, in the order of the first recording.
    names = montages[0].names
    matched = _match_good(windows, names)
    common = np.flatnonzero((matched >= 0).all(axis=0))
    shared, matched = [names[i] for i in common], matched[:, common]
    if sizes != {len(common)}:
        if any_montage and len(sizes) == 1:
            return windows
        _warn_of_differences(montages, shared, matched)
    return _picked(windows, shared, matched)


def pick_as_fitted(
    windows: Windows, chs_info: list[dict] | None, *, any_montage: bool = False
) -> Windows:
    """Pick the channels for ``predict``: the channels seen in ``fit``, in the same order.

    Parameters
    ----------
    windows : Windows
        Windows of one or more montages.
    chs_info : list of dict | None
        Channels seen in ``fit``, as in ``mne.Info["chs"]``. None if these channels are unknown; an
        empty list if they differed between windows.
    any_montage : bool
        Whether the model accepts windows with different channels. If True, missing channels are
        omitted. If a montage contains none of the channels seen in ``fit``, all EEG channels of
        this montage are used.

    Returns
    -------
    Windows
        Windows with the picked channels.

    Raises
    ------
    ValueError
        If a channel seen in ``fit`` is missing and ``any_montage`` is False. The message names the
        missing channel.

    Warns
    -----
    UserWarning
        If the name of a channel contains a different reference than in ``fit``. With
        ``any_montage``, also if a channel seen in ``fit`` is missing.
    """
    if windows.chs_info is None:
        return windows
    if not chs_info:
        windows = pick_eeg(windows)
        if not any_montage and not windows.chs_info:
            raise ValueError(
                "The recordings differ in their channels or channel order. The channels cannot be "
                "matched by name, because the model was fitted on windows without channel names. "
                "Call predict for each recording separately, with the channels in the same order "
                "as in fit."
            )
        return windows
    fitted = [ch["ch_name"] for ch in chs_info]
    matched = _match_good(windows, fitted)
    required_by = f"required by the model, which was fitted on {_list(fitted)}"
    problem = _absent_channels(windows, fitted, matched, required_by)
    if problem and not any_montage:
        raise ValueError(
            f"{problem.text} Interpolate or add the missing channels, or refit with channels= set "
            "to channels that all recordings contain."
        )
    if problem:
        n_used = np.unique((matched >= 0).sum(axis=1)).tolist()
        values = {**problem.values, "used": n_used, "n_fitted": len(fitted)}
        findings.warn(Finding("fewer_channels", values))
    _warn_of_references(windows.montages, fitted, matched)
    picked = []
    for montage, places in zip(windows.montages, matched, strict=True):
        present = np.flatnonzero(places >= 0)
        chosen = places[present], [chs_info[i] for i in present]
        picked.append(montage.pick(*chosen) if len(present) else _eeg_of(montage))
    return windows.with_montages(picked)


def check_channels(channels: Sequence[str]) -> list[str]:
    """Validate the argument ``channels``, and return it as a list.

    Raises
    ------
    TypeError
        If ``channels`` is a string.
    ValueError
        If ``channels`` is empty, or if a name occurs twice.

    Examples
    --------
    >>> from braindecode_pars.windows.picking import check_channels
    >>> check_channels(("C3", "C4"))
    ['C3', 'C4']
    """
    if isinstance(channels, str):
        raise TypeError(f"channels must be a list of names, got {channels!r}. Pass [{channels!r}].")
    names = list(channels)
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"channels must contain at least one name, and each name only once, got {names}. Pass "
            "each required channel once."
        )
    return names


def _picked(windows: Windows, names: list[str], matched: np.ndarray) -> Windows:
    """Return windows with the matched channels, with the channel info of the first montage."""
    montages = windows.montages
    _warn_of_references(montages, names, matched)
    chs_info = montages[0].pick(matched[0]).chs_info
    pairs = zip(montages, matched, strict=True)
    return windows.with_montages([montage.pick(places, chs_info) for montage, places in pairs])


def _eeg_of(montage: Montage) -> Montage:
    """Return the montage with its EEG channels that are not marked as bad."""
    if montage.chs_info is None:
        return montage
    good = [
        channel_names.is_eeg(ch) and ch["ch_name"] not in montage.bads for ch in montage.chs_info
    ]
    if not any(good):
        raise ValueError(
            f"A recording has no usable EEG channel: all of its channels ({_list(montage.names)}) "
            "are marked as bad or are not EEG. Correct info['bads'], set the channel types with "
            "raw.set_channel_types, or list the channels to use in channels=[...]."
        )
    return montage.pick(np.flatnonzero(good))


def _match_good(windows: Windows, wanted: list[str]) -> np.ndarray:
    """Match the wanted channels to the good channels of each montage, by electrode.

    Returns
    -------
    ndarray of int, shape (n_montages, n_wanted)
        Index of each wanted channel in each montage; -1 if it is missing or bad.
    """
    matched = np.full((len(windows.montages), len(wanted)), -1)
    for places, montage in zip(matched, windows.montages, strict=True):
        for i, place in enumerate(channel_names.match_channels(wanted, montage.names)):
            if place is not None and montage.names[place] not in montage.bads:
                places[i] = place
    return matched


def _absent_channels(
    windows: Windows, wanted: list[str], matched: np.ndarray, required_by: str
) -> Finding | None:
    """Return a finding about wanted channels that are missing in some windows, or None.

    Parameters
    ----------
    windows : Windows
        Windows of one or more montages.
    wanted : list of str
        Names of the wanted channels.
    matched : ndarray of int, shape (n_montages, n_wanted)
        Result of :func:`_match_good`.
    required_by : str
        Why the channels are required: the end of the sentence "These channels are ...", such as
        "listed in channels=".
    """
    is_missing = matched < 0
    if not is_missing.any():
        return None
    first = windows.montages[0].names
    values = dict(
        channels=channel_names.odd_first(
            [wanted[i] for i in np.flatnonzero(is_missing.any(axis=0))]
        ),
        n=_n_windows(windows, is_missing.any(axis=1)),
        n_windows=len(windows),
        required_by=required_by,
        first=channel_names.odd_first(first or ["no channel names"]),
        other_system=channel_names.other_system(wanted, first),
    )
    return Finding("absent_channels", values)


def _warn_of_references(
    montages: Sequence[Montage], wanted: Sequence[str], matched: np.ndarray
) -> None:
    """Warn once if matched channels have names with different references, such as C3-M1, C3-M2."""
    for name, places in zip(wanted, matched.T.tolist(), strict=True):
        pairs = zip(montages, places, strict=True)
        names = [name, *(montage.names[place] for montage, place in pairs if place >= 0)]
        if (pair := channel_names.differing_references(names)) is not None:
            checks.warn_user(
                f"Channel {pair[1]} is used as channel {pair[0]}, but the references of these two "
                "channels differ. Re-reference all recordings to a common reference."
            )
            return


def _warn_of_differences(
    montages: Sequence[Montage], shared: list[str], matched: np.ndarray
) -> None:
    pairs = zip(montages, matched, strict=True)
    not_shared = _list(
        [name for m, places in pairs for i, name in enumerate(m.names) if i not in places]
    )
    if not shared:
        raise ValueError(
            "No channel is shared by all recordings. Each of these channels is missing in at least "
            f"one recording: {not_shared}. Rename channels so that each electrode has the same "
            "name in all recordings, or use recordings with common channels."
            f"{channel_names.other_system(*(montage.names for montage in montages))}"
        )
    checks.warn_user(
        f"The recordings have different channels. Only the {len(shared)} channels shared by all "
        f"recordings are used ({_list(shared)}). Channels that are missing in at least one "
        f"recording are excluded: {not_shared}. To use the excluded channels, interpolate or add "
        "them in the recordings in which they are missing."
    )


def _n_windows(windows: Windows, is_affected: Any) -> int:
    """Return the number of windows whose montage is affected.

    ``is_affected`` contains a boolean for each montage.
    """
    return int(np.asarray(is_affected)[windows.montage_numbers].sum())


def _list(names: Iterable[str]) -> str:
    return checks.format_list(channel_names.odd_first(names))


@dataclass(frozen=True)
class Derivation:
    """How a channel of a model is computed from a recording.

    The channel is one channel of the recording, minus the mean of reference channels if there are
    any.

    Attributes
    ----------
    name : str
        Name of the channel in the model.
    channel : str
        Name of the channel in the recording.
    reference : tuple of str
        Names of the channels in the recording whose mean is subtracted. If empty, nothing is
        subtracted.
    is_eeg : bool
        Whether the channel is re-referenced and filtered. (MNE does this only for EEG channels.)

    Examples
    --------
    >>> from braindecode_pars.windows.picking import Derivation
    >>> Derivation("EEG Fpz-Cz", "Fpz-A1", ("Cz-A1",)).formula
    'Fpz-A1 - Cz-A1'
    """

    name: str
    channel: str
    reference: tuple[str, ...] = ()
    is_eeg: bool = True

    @property
    def formula(self) -> str:
        """Formula of the derivation, such as ``Fpz-A1 - Cz-A1``."""
        names, n = ", ".join(self.reference), len(self.reference)
        mean = f"mean of {n} channels" if n > 4 else f"mean of {names}" if n > 1 else names
        return f"{self.channel} - {mean}" if n else self.channel


def find_channels(
    wanted: Sequence[str], names: Sequence[str], *, compute: bool = True
) -> list[Derivation | None]:
    """Find the channels of a model in a recording, by electrode name, or derive them.

    Two kinds of channels can be derived if the recording does not contain them: bipolar channels,
    such as ``Fpz-Cz``, and channels with a named reference, such as ``C3-M2``. They are computed as
    the difference of two channels with the same reference, as in
    :func:`mne.set_bipolar_reference`. Channels without a reference in their names are assumed to
    have the same reference. All other channels of the model are matched by electrode, regardless of
    the reference, see :func:`~braindecode_pars._common.channel_names.match_channels`.

    Parameters
    ----------
    wanted : sequence of str
        Names of the channels of the model.
    names : sequence of str
        Names of the channels of the recording.
    compute : bool
        Whether channels may be derived as differences. If False, channels are only matched.

    Returns
    -------
    list of Derivation | None
        Derivation of each wanted channel. None if the channel can be neither matched nor derived.

    Examples
    --------
    ``C3-M2`` is derived, because ``A2`` and ``M2`` are treated as the same electrode. ``T7`` is
    matched to ``T3``, the old name of the same electrode. ``Fpz-Cz`` cannot be derived from
    ``Cz-Fpz``, which has reversed polarity:

    >>> from braindecode_pars.windows.picking import find_channels
    >>> names = ["EEG C3-REF", "EEG A2-REF", "EEG Cz-Fpz", "T3"]
    >>> derivations = find_channels(["C3-M2", "T7", "Fpz-Cz"], names)
    >>> [derivation and derivation.formula for derivation in derivations]
    ['EEG C3-REF - EEG A2-REF', 'T3', None]
    """
    derivations: list[Derivation | None] = []
    for name, place in zip(wanted, channel_names.match_channels(wanted, names), strict=True):
        pair, channel = channel_names.electrode_pair(name), None if place is None else names[place]
        same_pair = [ch for ch in names if pair[1] and channel_names.electrode_pair(ch) == pair]
        if len(same_pair) == 1:  # wanted channel C3-M2 in a recording with C3-M1 and C3-M2
            channel = same_pair[0]
        derivation = None if channel is None else Derivation(name, channel)
        if compute and pair[1] and not same_pair:
            electrode = channel_names.electrode_name(name).partition("-")[0]
            electrodes = [electrode, name.rpartition("-")[2].strip()]
            places = channel_names.match_channels(electrodes, names)
            pair_channels = [names[i] for i in places if i is not None]
            references = {channel_names.electrode_pair(ch)[1] for ch in pair_channels}
            if len(pair_channels) == 2 and len(references) == 1:
                derivation = Derivation(name, pair_channels[0], (pair_channels[1],))
        derivations.append(derivation)
    return derivations
