"""The rules by which channels are picked: EEG, not bad, and the same in fit and predict.

- Only EEG channels are used, by MNE type and by name. ``channels=`` names others explicitly.
- Channels that are marked as bad in ``info["bads"]`` are not used, as in MNE.
- Recordings with the same channels in another order are reordered like the first recording.
- Of recordings with different channels, the common channels are used.
- A fitted model receives the channels of its fit, in that order, by their names.

A warning or the log names what is left out. Channels are matched by their electrodes, with a
warning when they name different references. Channels without names, as in arrays, are used in the
given order.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import numpy as np

from braindecode_pars._common.channel_names import differing_references, is_eeg, match_channels
from braindecode_pars._common.checks import warn_user
from braindecode_pars.windows.table import Montage, Windows

log = logging.getLogger(__name__)


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
    montages = windows.montages
    named = [montage for montage in montages if montage.chs_info is not None]
    if not named:
        return windows
    others = _union([ch["ch_name"] for ch in m.chs_info or () if not is_eeg(ch)] for m in named)
    bads = _union(
        [ch["ch_name"] for ch in m.chs_info or () if is_eeg(ch) and ch["ch_name"] in m.bads]
        for m in named
    )
    picked = [_eeg_of(montage) for montage in montages]
    if others:
        warn_user(
            f"{_channels(others)} not EEG, by type or name, and not used. List the channels to use "
            "in channels=, or rename an EEG channel."
        )
    if bads:
        n = _n_windows(
            windows, [m.chs_info is not None and not m.bads.isdisjoint(bads) for m in montages]
        )
        warn_user(
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
        _check_names(channels)
        return _pick_named(windows, list(channels))
    windows = pick_eeg(windows)
    if windows.chs_info is None or not len(windows):
        return windows
    montages = windows.montages
    sizes = {None if m.chs_info is None else len(m.names) for m in montages}
    if None in sizes:
        if any_montage:
            return windows
        raise ValueError(
            "Some windows have channel names and others have none, so their channels cannot be "
            "matched; pass windows with names only, or arrays only."
        )
    # Channels of the first recording that all recordings have, in the order of the first.
    first = montages[0]
    found = [match_channels(first.names, montage.names) for montage in montages]
    common = [i for i in range(len(first.names)) if all(m[i] is not None for m in found)]
    if sizes != {len(common)}:
        if any_montage and len(sizes) == 1:
            return windows
        _warn_of_differences([montage.names for montage in montages], first, common)
    found = [[places[i] for i in common] for places in found]
    return _picked(windows, [first.names[i] for i in common], found)


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
    if not chs_info:
        return _pick_unmatched(windows, any_montage)
    fitted = [ch["ch_name"] for ch in chs_info]
    montages = windows.montages
    found = [_match_good(fitted, montage) for montage in montages]
    missing = _missing(fitted, found)
    if missing:
        n = _n_windows(windows, [None in places for places in found])
        message = (
            f"{_channels(missing)} missing or marked as bad in {n} windows, but the model was "
            f"fitted on {_list(fitted)}."
        )
        if not any_montage:
            raise ValueError(
                f"{message} Interpolate or add the channels, or fit on the channels that all "
                "recordings have, with channels=."
            )
        warn_user(f"{message} The other channels of the fit are used, or all if there are none.")
    extra = _unused(montages, found)
    if extra:
        log.info("%s not used, because not among the channels of the fit.", _channels(extra))
    _warn_of_references(fitted, montages, found)
    return windows.with_montages(
        [
            _fitted_or_eeg(montage, places, chs_info)
            for montage, places in zip(montages, found, strict=True)
        ]
    )


def _pick_unmatched(windows: Windows, any_montage: bool) -> Windows:
    """Pick EEG channels for a model whose own channels have no names."""
    windows = pick_eeg(windows)
    if not any_montage and not windows.chs_info:
        raise ValueError(
            "The windows have different channels, or another order, and the model was fitted on "
            "windows without channel names; predict each recording separately."
        )
    return windows


def _check_names(channels: Sequence[str]) -> None:
    if isinstance(channels, str):
        raise TypeError(f"channels is the string {channels!r}; give a list of names.")
    twice = [name for name in dict.fromkeys(channels) if list(channels).count(name) > 1]
    if twice or not len(channels):
        reason = f"contains {_list(twice)} several times" if twice else "is empty"
        raise ValueError(f"channels {reason}; list each channel to use once.")


def _pick_named(windows: Windows, channels: list[str]) -> Windows:
    if windows.chs_info is None:
        raise ValueError(
            f"channels={channels} needs channel names, but the windows have none; pick the rows of "
            "the array instead."
        )
    montages = windows.montages
    found = [_match_good(channels, montage) for montage in montages]
    missing = _missing(channels, found)
    if missing:
        n = _n_windows(windows, [None in places for places in found])
        raise ValueError(
            f"{_channels(missing)} in channels=, but missing or marked as bad in {n} windows; the "
            f"first window has {_list(montages[0].names or ['no channel names'])}."
        )
    extra = _unused(montages, found)
    if extra:
        log.info("%s not in channels=, and not used.", _channels(extra))
    return _picked(windows, channels, found)


def _picked(windows: Windows, names: list[str], found: list[list[int | None]]) -> Windows:
    """Return the windows with these channels, which all montages have; the first describes them."""
    montages = windows.montages
    _warn_of_references(names, montages, found)
    places = [[place for place in of_montage if place is not None] for of_montage in found]
    chs_info = montages[0].pick(places[0]).chs_info
    return windows.with_montages(
        [montage.pick(own, chs_info) for montage, own in zip(montages, places, strict=True)]
    )


def _eeg_of(montage: Montage) -> Montage:
    """Return the montage with its EEG channels that are not bad."""
    if montage.chs_info is None:
        return montage
    kept = [
        i
        for i, ch in enumerate(montage.chs_info)
        if is_eeg(ch) and ch["ch_name"] not in montage.bads
    ]
    if not kept:
        raise ValueError(
            f"There is no EEG channel among {_list(montage.names)} that is not marked as bad. Set "
            "the types of the channels with raw.set_channel_types, or list the channels to use in "
            "channels=."
        )
    return montage.pick(kept)


def _fitted_or_eeg(montage: Montage, places: list[int | None], chs_info: list[dict]) -> Montage:
    kept = [(place, ch) for place, ch in zip(places, chs_info, strict=True) if place is not None]
    if not kept:
        return _eeg_of(montage)
    return montage.pick([place for place, _ in kept], [ch for _, ch in kept])


def _match_good(wanted: list[str], montage: Montage) -> list[int | None]:
    """Match channels by electrode; a bad channel, and one without a name, is no match."""
    places = match_channels(wanted, montage.names)
    return [None if p is None or montage.names[p] in montage.bads else p for p in places]


def _missing(wanted: list[str], found: list[list[int | None]]) -> list[str]:
    """Return the wanted channels that some montages do not have."""
    return _union(
        [name for name, place in zip(wanted, places, strict=True) if place is None]
        for places in found
    )


def _unused(montages: Sequence[Montage], found: list[list[int | None]]) -> list[str]:
    """Return the channels of the montages that no wanted channel matches."""
    return _union(
        [name for i, name in enumerate(montage.names) if i not in set(places)]
        for montage, places in zip(montages, found, strict=True)
    )


def _warn_of_references(
    wanted: Sequence[str], montages: Sequence[Montage], found: Sequence[list[int | None]]
) -> None:
    """Warn once when channels that are used for the same electrode name different references."""
    for i, name in enumerate(wanted):
        matched = [
            montage.names[place]
            for montage, places in zip(montages, found, strict=True)
            if (place := places[i]) is not None
        ]
        pair = differing_references([name, *matched])
        if pair is not None:
            warn_user(
                f"{pair[1]} is taken for {pair[0]}: another reference, so another signal. Use one "
                "reference in all recordings."
            )
            return


def _warn_of_differences(names: list[list[str]], first: Montage, common: list[int]) -> None:
    shared = [first.names[i] for i in common]
    matched = [set(match_channels(shared, found)) for found in names]
    rest = _union(
        [name for i, name in enumerate(found) if i not in places]
        for found, places in zip(names, matched, strict=True)
    )
    if not shared:
        raise ValueError(
            f"The recordings have no channel in common: {_list(rest)} are each in some recordings "
            "only. Pick the same channels in all recordings."
        )
    warn_user(
        f"The recordings have different channels. Only the {len(shared)} common ones are used "
        f"({_list(shared)}); {_list(rest)} {'is' if len(rest) == 1 else 'are'} missing in some "
        "recordings."
    )


def _n_windows(windows: Windows, concerned: Sequence[bool]) -> str:
    counts = np.bincount(windows.montage_numbers, minlength=len(windows.montages))
    n = sum(int(count) for count, one in zip(counts, concerned, strict=True) if one)
    return f"{n} of {len(windows)}"


def _union(lists: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(name for names in lists for name in names))


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(map(str, names[:10]))
    return f"{shown} and {len(names) - 10} more" if len(names) > 10 else shown


def _channels(names: Sequence[str]) -> str:
    """Return "Channel C3 is" or "Channels C3, C4 are", the beginning of a sentence."""
    return f"Channels {_list(names)} are" if len(names) > 1 else f"Channel {names[0]} is"
