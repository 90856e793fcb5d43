"""The rules by which channels are picked: EEG, not bad, and the same in fit and predict.

- Only EEG channels are used, by MNE type and by name. ``channels=`` names others explicitly.
- Channels that are marked as bad in ``info["bads"]`` are not used, as in MNE.
- Recordings with the same channels in another order are reordered like the first recording.
- Of recordings with different channels, the common channels are used.
- A fitted model receives the channels of its fit, in that order, by their names.

A warning names what is missing. Channels are matched by their electrodes, with a
warning when they name different references. Channels without names, as in arrays, are used in the
given order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from braindecode_pars._common import channel_names, checks
from braindecode_pars.windows.table import Montage, Windows


def pick_eeg(windows: Windows) -> Windows:
    """Return the windows with their EEG channels that are not marked as bad.

    Parameters
    ----------
    windows : Windows
        Windows of any montages.

    Returns
    -------
    Windows
        The same windows. Channels without names are kept.

    Raises
    ------
    ValueError
        When a window has no such channel.

    Warns
    -----
    UserWarning
        When channels are left out.
    """
    if windows.chs_info is None:
        return windows
    montages = windows.montages
    channels = [(ch, montage) for montage in montages for ch in montage.chs_info or ()]
    others = [ch["ch_name"] for ch, _ in channels if not channel_names.is_eeg(ch)]
    bads = [
        ch["ch_name"] for ch, m in channels if channel_names.is_eeg(ch) and ch["ch_name"] in m.bads
    ]
    picked = [_eeg_of(montage) for montage in montages]
    if others:
        checks.warn_user(
            f"{_channels(others)} not EEG, by type or name, and not used; name them in channels=."
        )
    if bads:
        n = _n_windows(windows, [not montage.bads.isdisjoint(bads) for montage in montages])
        checks.warn_user(
            f"{_channels(bads)} marked as bad in info['bads'] of {n} windows, and not used there. "
            "Interpolate bad channels first, with raw.interpolate_bads(), to keep the montage."
        )
    return windows.with_montages(picked)


def pick_for_fit(
    windows: Windows, channels: Sequence[str] | None = None, *, any_montage: bool = False
) -> Windows:
    """Return the windows on which a model is fitted, with the same channels in the same order.

    Parameters
    ----------
    windows : Windows
        Windows of any montages.
    channels : sequence of str | None
        Names of the channels to use, in this order and of any kind. None uses the EEG channels.
    any_montage : bool
        Whether the model accepts windows of different channels. Different montages with the same
        number of channels are then left as they are.

    Returns
    -------
    Windows
        The same windows.

    Raises
    ------
    TypeError
        When ``channels`` is a string.
    ValueError
        When a window has none of the channels, when a channel in ``channels`` is missing or listed
        twice, or when some windows have channel names and others have none.

    Warns
    -----
    UserWarning
        As in :func:`pick_eeg`, when the recordings have different channels, of which only the
        common ones are used, and when matched channels name different references.
    """
    if channels is not None:
        names = check_channels(channels)
        if windows.chs_info is None:
            raise ValueError(
                f"channels={names} needs channel names, but the windows have none; pick the rows "
                "of the array instead."
            )
        matched, problem = _match_good(windows, names, "they are in channels=")
        if problem:
            raise ValueError(problem)
        return _picked(windows, names, matched)
    windows = pick_eeg(windows)
    montages = windows.montages
    sizes = {None if m.chs_info is None else len(m.names) for m in montages}
    if windows.chs_info is None or (any_montage and None in sizes):
        return windows
    if None in sizes:
        raise ValueError(
            "Some windows have channel names and others have none; pass windows with names only, "
            "or arrays only."
        )
    # Channels of the first recording that all recordings have, in the order of the first.
    first = montages[0]
    matched = [channel_names.match_channels(first.names, montage.names) for montage in montages]
    common = [i for i in range(len(first.names)) if all(m[i] is not None for m in matched)]
    if sizes != {len(common)}:
        if any_montage and len(sizes) == 1:
            return windows
        _warn_of_differences(montages, [first.names[i] for i in common])
    matched = [[places[i] for i in common] for places in matched]
    return _picked(windows, [first.names[i] for i in common], matched)


def pick_as_fitted(
    windows: Windows, chs_info: list[dict] | None, *, any_montage: bool = False
) -> Windows:
    """Return windows with the channels on which a model was fitted, in that order.

    Parameters
    ----------
    windows : Windows
        Windows of any montages.
    chs_info : list of dict | None
        Channels of the fit. None when they are unknown, empty when they differed.
    any_montage : bool
        Whether the model accepts windows of other channels. It then receives those channels of the
        fit that a window has, or all EEG channels of a window that has none of them.

    Returns
    -------
    Windows
        The same windows.

    Raises
    ------
    ValueError
        When a channel of the fit is missing. The message names it.

    Warns
    -----
    UserWarning
        When a channel names another reference than that of the fit. With ``any_montage``, also when
        a channel of the fit is missing.
    """
    if windows.chs_info is None:
        return windows
    if not chs_info:  # of the fit
        windows = pick_eeg(windows)
        if not any_montage and not windows.chs_info:
            raise ValueError(
                "The windows have different channels, or another order, and the model was fitted "
                "on windows without channel names; predict each recording separately."
            )
        return windows
    fitted = [ch["ch_name"] for ch in chs_info]
    matched, problem = _match_good(windows, fitted, f"the model was fitted on {_list(fitted)}")
    if problem and not any_montage:
        raise ValueError(
            f"{problem} Interpolate or add them, or fit on common channels, with channels=."
        )
    if problem:
        used = sorted({len(fitted) - places.count(None) for places in matched})
        checks.warn_user(
            f"{problem} The other channels of the fit ({checks.format_list([*map(str, used)])} of "
            f"{len(fitted)}) are used, or all if there are none."
        )
    montages = windows.montages
    _warn_of_references(fitted, montages, matched)
    picked = []
    for montage, places in zip(montages, matched, strict=True):
        pairs = [pair for pair in zip(places, chs_info, strict=True) if pair[0] is not None]
        chosen = montage.pick(*map(list, zip(*pairs, strict=True))) if pairs else _eeg_of(montage)
        picked.append(chosen)
    return windows.with_montages(picked)


def check_channels(channels: Sequence[str]) -> list[str]:
    """Check the names in ``channels=``, and return them as a list.

    Raises
    ------
    TypeError
        When they are one text.
    ValueError
        When there is none, or one twice.

    Examples
    --------
    >>> from braindecode_pars.windows.picking import check_channels
    >>> check_channels(("C3", "C4"))
    ['C3', 'C4']
    """
    if isinstance(channels, str):
        raise TypeError(f"channels is the string {channels!r}; give a list of names.")
    names = list(channels)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"channels={names} is empty or has a name twice; list each channel once.")
    return names


def _picked(windows: Windows, names: list[str], matched: list[list[int | None]]) -> Windows:
    """Return the windows with these channels, which all montages have; the first describes them."""
    montages = windows.montages
    _warn_of_references(names, montages, matched)
    places = [[place for place in of_montage if place is not None] for of_montage in matched]
    chs_info = montages[0].pick(places[0]).chs_info
    pairs = zip(montages, places, strict=True)
    return windows.with_montages([montage.pick(chosen, chs_info) for montage, chosen in pairs])


def _eeg_of(montage: Montage) -> Montage:
    """Return the montage with its EEG channels that are not bad."""
    if montage.chs_info is None:
        return montage
    good = [
        channel_names.is_eeg(ch) and ch["ch_name"] not in montage.bads for ch in montage.chs_info
    ]
    if not any(good):
        raise ValueError(
            f"There is no EEG channel among {_list(montage.names)} that is not marked as bad. Set "
            "their types with raw.set_channel_types, or list the channels to use in channels=."
        )
    return montage.pick(np.flatnonzero(good).tolist())


def _match_good(
    windows: Windows, wanted: list[str], wanted_by: str
) -> tuple[list[list[int | None]], str]:
    """Match the channels of each montage by electrode; a bad channel is no match.

    Returns also a sentence about channels that are missing.
    """
    montages, matched = windows.montages, []
    for montage in montages:
        places = channel_names.match_channels(wanted, montage.names)
        good = [p is not None and montage.names[p] not in montage.bads for p in places]
        matched.append([p if is_good else None for p, is_good in zip(places, good, strict=True)])
    missing = [name for row in matched for name, p in zip(wanted, row, strict=True) if p is None]
    if not missing:
        return matched, ""
    n = _n_windows(windows, [None in row for row in matched])
    return matched, (
        f"{_channels(missing)} missing or marked as bad in {n} windows, but {wanted_by}; the first "
        f"window has {_list(montages[0].names or ['no channel names'])}."
        f"{channel_names.other_system(wanted, montages[0].names)}"
    )


def _warn_of_references(
    wanted: Sequence[str], montages: Sequence[Montage], matched: Sequence[list[int | None]]
) -> None:
    """Warn once when channels that are used for the same electrode name different references."""
    pairs = [*zip(montages, matched, strict=True)]
    for i, name in enumerate(wanted):
        matched_names = [m.names[p] for m, places in pairs if (p := places[i]) is not None]
        if (pair := channel_names.differing_references([name, *matched_names])) is not None:
            checks.warn_user(
                f"{pair[1]} is taken for {pair[0]}: another reference, so another signal. Use one "
                "reference in all recordings."
            )
            return


def _warn_of_differences(montages: Sequence[Montage], shared: list[str]) -> None:
    matched = [channel_names.match_channels(shared, montage.names) for montage in montages]
    pairs = zip(montages, matched, strict=True)
    rest = _list([name for m, places in pairs for i, name in enumerate(m.names) if i not in places])
    if not shared:
        raise ValueError(
            f"The recordings have no channel in common: {rest} are each in some recordings only. "
            "Pick the same channels in all recordings."
            f"{channel_names.other_system(*(montage.names for montage in montages))}"
        )
    checks.warn_user(
        f"The recordings have different channels. Only the {len(shared)} common ones are used "
        f"({_list(shared)}); missing in some recordings: {rest}."
    )


def _n_windows(windows: Windows, concerned: Sequence[bool]) -> str:
    n = int(np.asarray(concerned)[windows.montage_numbers].sum())
    return f"{n} of {len(windows)}"


def _list(names: Iterable[str]) -> str:
    return checks.format_list(channel_names.odd_first(names))


def _channels(names: Sequence[str]) -> str:
    """Return "Channel C3 is" or "Channels C3, C4 are", the beginning of a sentence."""
    return f"Channels {_list(names)} are" if len(set(names)) > 1 else f"Channel {names[0]} is"


@dataclass(frozen=True)
class Derivation:
    """A channel of a recording against the mean of other channels.

    Attributes
    ----------
    name : str
        Name of the channel in the model.
    channel : str
        Channel of the recording.
    reference : tuple of str
        Channels of the recording whose mean is subtracted; empty for none.
    is_eeg : bool
        Whether it is referenced and filtered, as MNE does with EEG and not with other channels.

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
        """The channel as text, such as ``Fpz-A1 - Cz-A1``."""
        names, n = ", ".join(self.reference), len(self.reference)
        mean = f"mean of {n} channels" if n > 4 else f"mean of {names}" if n > 1 else names
        return f"{self.channel} - {mean}" if n else self.channel


def find_channels(
    wanted: Sequence[str], names: Sequence[str], *, compute: bool = True
) -> list[Derivation | None]:
    """Find the channels of a model in a recording, by the names of electrodes.

    A channel of two electrodes, such as ``Fpz-Cz``, or with a named reference, such as ``C3-M2``,
    is also the difference of two channels that have one reference, as
    :func:`mne.set_bipolar_reference` computes it. Channels without a reference in their names are
    taken to have one in common. Otherwise it is the channel of the electrode, whatever its
    reference is, as :func:`~braindecode_pars._common.channel_names.match_channels` finds it.

    Parameters
    ----------
    wanted : sequence of str
        Names of the channels of the model.
    names : sequence of str
        Names of the channels of the recording.
    compute : bool
        Whether differences may be computed. With False, channels are only matched.

    Returns
    -------
    list of Derivation | None
        One for each wanted channel; None where the recording has none.

    Examples
    --------
    >>> from braindecode_pars.windows.picking import find_channels
    >>> names = ["EEG C3-REF", "EEG A2-REF", "EEG Cz-Fpz", "T3"]
    >>> derivations = find_channels(["C3-M2", "T7", "Fpz-Cz"], names)
    >>> [derivation and derivation.formula for derivation in derivations]
    ['EEG C3-REF - EEG A2-REF', 'T3', None]
    """
    derivations: list[Derivation | None] = []
    for name, place in zip(wanted, channel_names.match_channels(wanted, names), strict=True):
        pair, channel = channel_names.electrode_pair(name), None if place is None else names[place]
        parts = (
            channel_names.electrode_name(name).partition("-")[0],
            name.rpartition("-")[2].strip(),
        )
        same = [ch for ch in names if pair[1] and channel_names.electrode_pair(ch) == pair]
        if len(same) == 1:  # of C3-M1 and C3-M2
            channel = same[0]
        elif compute and pair[1] and not same:
            plus, minus = (
                None if i is None else names[i] for i in channel_names.match_channels(parts, names)
            )
            if (
                plus
                and minus
                and channel_names.electrode_pair(plus)[1] == channel_names.electrode_pair(minus)[1]
            ):
                derivations.append(Derivation(name, plus, (minus,)))
                continue
        derivations.append(None if channel is None else Derivation(name, channel))
    return derivations
