"""Decide which channels of a recording are EEG, and record the source of each decision.

When MNE reads an EDF or BDF file, all signals get the channel type "eeg". Therefore, this module
derives the kind of each channel (EEG or other) from its label and its unit in the header of the
file, and from the BIDS table ``_channels.tsv``, which takes precedence. Rules for the names of
channels are in :mod:`~braindecode_pars._common.channel_names`; all other rules are in this module.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mne
import pandas as pd

from braindecode_pars._common import channel_names, checks, subjects, tables
from braindecode_pars.recordings import cutting, side_tables

#: Conversion factors to volts. MNE reads any other unit of an EDF or BDF file as volts.
VOLTS = {"V": 1.0, "mV": 1e-3, **dict.fromkeys(("uV", "\u00b5V", "\u03bcV", "\x83\xcaV"), 1e-6)}

#: Units of quantities other than voltage, such as oxygen saturation or pulse. Signals in these
#: units are not EEG.
_OTHER_UNITS = {
    *("%", "bpm", "BPM", "1/min", "Hz", "s", "ms", "deg", "dB", "lux", "g", "m/s^2", "NU"),
    *("degC", "DegC", "degF", "C", "K", "mmHg", "cmH2O", "Pa", "kPa", "mbar", "Ohm", "kOhm"),
    *("l", "L", "ml", "mL", "l/min", "L/min", "l/s", "L/s", "ml/s", "Boolean"),
}

#: Kinds of channels that record electrical potentials of the brain.
_BRAIN = ("eeg", "ecog", "seeg", "dbs")


class ChannelFacts(NamedTuple):
    """Kind, unit and cutoff frequencies of a channel, and how the kind was determined.

    Attributes
    ----------
    kind : "eeg" | "ecog" | "seeg" | "dbs" | "other"
        Kind of the signal. "other" means that the channel does not record electrical potentials of
        the brain.
    source : "header" | "table" | "type"
        Source from which the kind was determined. "header": label and unit in the header of the
        file. "table": BIDS table ``_channels.tsv``. "type": channel type and name in MNE.
    unit : str
        Unit in the header of the file; "no unit" if the header contains none, and "no valid range"
        if the physical or digital range is invalid. Empty for file formats that MNE converts to
        volts.
    edges : tuple of (float | None)
        Lower and upper cutoff frequency of the amplifier in Hz. None for a frequency that is not in
        the header.
    """

    kind: str
    source: str
    unit: str = ""
    edges: tuple[float | None, float | None] = (None, None)

    @property
    def is_brain(self) -> bool:
        """Whether the channel records electrical potentials of the brain, such as EEG or ECoG."""
        return self.kind in _BRAIN

    @property
    def is_voltage(self) -> bool:
        """Whether the unit is a unit of voltage, or empty because MNE converts to volts."""
        return not self.unit or self.unit in VOLTS


#: ChannelFacts by channel name.
Facts = Mapping[str, ChannelFacts]


def other_signals(labels: Sequence[str], units: Sequence[str]) -> list[str]:
    """Return the labels of signals that are not EEG according to their label or unit.

    If at least one label begins with "EEG", as required by EDF+ ("EEG Fp1"), all signals whose
    labels do not begin with "EEG" are returned.

    Parameters
    ----------
    labels, units : sequence of str
        Label and unit of each signal in the header of the file.
    """
    are_named = any(label.upper().startswith("EEG") for label in labels)
    return [
        label
        for label, unit in zip(labels, units, strict=True)
        if channel_names.is_other_kind(label)
        or (are_named and not label.upper().startswith("EEG"))
        or unit in _OTHER_UNITS
    ]


def facts_in_header(signals: pd.DataFrame) -> dict[str, ChannelFacts]:
    """Return kind, unit and cutoff frequencies of channels from an EDF, BDF or WFDB header.

    Parameters
    ----------
    signals : DataFrame
        Content of the header: one row per channel, indexed by channel name. The required columns
        are ``unit`` and ``is_scaled``, see
        :func:`~braindecode_pars.recordings.readers.edf_signals`. The optional columns are
        ``highpass`` and ``lowpass`` (NaN without a filter).

    Returns
    -------
    dict of str to ChannelFacts
        Kind, unit and cutoff frequencies of each channel, by channel name.
    """
    others = other_signals(signals.index.tolist(), signals["unit"].tolist())
    units = signals["unit"].str.replace("\0", "\\0").replace("", "no unit")
    units = units.where(signals["is_scaled"], "no valid range")
    edges = signals.reindex(columns=["highpass", "lowpass"]).astype(object)
    pairs = edges.where(edges > 0, None).itertuples(index=False, name=None)
    return {
        name: ChannelFacts("other" if name in others else "eeg", "header", unit, pair)
        for name, unit, pair in zip(signals.index, units, pairs, strict=True)
    }


def check_voltages(facts: Facts) -> None:
    """Check that all channels have a known unit of voltage.

    Parameters
    ----------
    facts : mapping of str to ChannelFacts
        Channels to check, by name.

    Raises
    ------
    ValueError
        If the unit of a channel is not V, mV or uV, or if its range in the header is invalid.
    """
    if names := _with_units({name: f for name, f in facts.items() if not f.is_voltage}):
        raise ValueError(
            "EEG signals must have the unit uV, mV or V and a valid physical and digital range in "
            f"the header. Invalid signals: {checks.format_list(names, max_items=5)}. Correct the "
            "header. If you know the unit of the signals in an EDF file, you can also read the "
            "file with mne.io.read_raw_edf(file, units='uV') and pass the Raw object."
        )


def _with_units(facts: Facts) -> list[str]:
    return [f"{name} ({f.unit})" for name, f in facts.items()]


def without_unknown_units(facts: Facts) -> dict[str, ChannelFacts]:
    """Change the kind of EEG channels without a known unit of voltage to "other".

    These channels are reported as excluded signals, see :func:`~.cutting.record_excluded`.

    Parameters
    ----------
    facts : mapping of str to ChannelFacts
        All channels of a recording, by name.

    Returns
    -------
    dict of str to ChannelFacts
        The same channels, with the changed kinds.

    Raises
    ------
    ValueError
        If no EEG channel has a unit of voltage.
    """
    eeg = {name: f for name, f in facts.items() if f.is_brain}
    unknown = {name: f for name, f in eeg.items() if not f.is_voltage}
    if len(unknown) == len(eeg):
        check_voltages(unknown)
    reason = f"no known unit of voltage: {checks.format_list(_with_units(unknown), 5)}"
    cutting.record_excluded("signals", reason, len(unknown), len(facts))
    not_eeg = {name: f._replace(kind="other") for name, f in unknown.items()}
    return {**facts, **not_eeg}


def facts_of(chs: Iterable[Mapping[str, Any]]) -> dict[str, ChannelFacts]:
    """Return the ChannelFacts of each channel, by channel name.

    The kind of a channel is derived from its MNE type and its name. ``chs`` contains channels as in
    ``info["chs"]``.

    Examples
    --------
    Both channels have the type "eeg", but the name ECG1 indicates another signal:

    >>> import mne
    >>> from braindecode_pars.recordings.channel_facts import facts_of
    >>> info = mne.create_info(["C3", "ECG1"], 100.0, "eeg")
    >>> [facts.kind for facts in facts_of(info["chs"]).values()]
    ['eeg', 'other']
    """
    return {
        ch["ch_name"]: ChannelFacts("eeg" if channel_names.is_eeg(ch) else "other", "type")
        for ch in chs
    }


def good_eeg(chs: Iterable[Mapping[str, Any]], bads: Iterable[str]) -> list[str]:
    """Return the names of EEG channels that are not in ``bads``; ``chs`` as in ``info["chs"]``."""
    return [name for name, facts in facts_of(chs).items() if facts.is_brain and name not in bads]


def warn_of_other_names(chs: Iterable[Mapping[str, Any]]) -> None:
    """Warn if channels of type EEG have names of other signals; ``chs`` as in ``info["chs"]``."""
    by_type = [ch for ch in chs if channel_names.is_eeg_by_type(ch)]
    if names := [ch["ch_name"] for ch in by_type if not channel_names.is_eeg(ch)]:
        checks.warn_user(
            "Channels of type EEG with names that indicate other signals are not used: "
            f"{checks.format_list(names)}. If they are EEG, rename them with raw.rename_channels. "
            "Otherwise, set their types with raw.set_channel_types."
        )


def set_types(raw: mne.io.BaseRaw, facts: Facts) -> mne.io.BaseRaw:
    """Set the MNE types of the channels of a recording to their kinds in ``facts``, in place.

    Only channels whose kind was determined from a file header or a BIDS table are changed. Channels
    of kind "other" get the type "misc". If all channels are of kind "other", they get the type
    "bio" instead, because this package assumes that channel types were not set if all types are
    "misc".
    """
    other = "misc" if any(f.is_brain for f in facts.values()) else "bio"
    decided = {name: f for name, f in facts.items() if f.source != "type"}
    kinds = {name: f.kind if f.is_brain else other for name, f in decided.items()}
    return raw.set_channel_types(kinds, on_unit_change="ignore", verbose="error")


def with_table(
    facts: Facts, bads: Sequence[str], table: Path
) -> tuple[dict[str, ChannelFacts], list[str]]:
    """Update the kinds of channels, and the list of bad channels, from a BIDS table.

    A channel that the table lists as EEG keeps its previous kind if it is not a voltage, or if its
    name indicates another signal. If the table contains no status of a channel, this channel is bad
    if it is in ``bads``.

    Parameters
    ----------
    facts : mapping of str to ChannelFacts
        All channels of the recording, by name.
    bads : sequence of str
        Channels that are already marked as bad.
    table : Path
        BIDS table ``_channels.tsv`` of the recording.

    Returns
    -------
    facts : dict of str to ChannelFacts
        Facts about each channel, by channel name, with the updated kinds.
    bads : list of str
        Names of all bad channels.

    Raises
    ------
    ValueError
        If the table cannot be read or is contradictory. The message contains the path of the table.
    """
    rows, changed = _read_channels_table(table, [*facts]), dict(facts)
    for name, kind in rows["type"].str.lower().dropna().items():
        is_named_other = kind == "eeg" and channel_names.is_other_kind(name)
        if kind not in _BRAIN:
            changed[name] = facts[name]._replace(kind="other", source="table")
        elif facts[name].is_voltage and not is_named_other:
            changed[name] = facts[name]._replace(kind=kind, source="table")
    is_bad = (rows["status"] == "BAD") | (rows.index.isin(bads) & rows["status"].isna())
    return changed, rows.index[is_bad].tolist()


def _read_channels_table(file: Path, ch_names: Sequence[str]) -> pd.DataFrame:
    """Read type and status of channels from a BIDS table, in upper case; NaN if missing."""
    table = side_tables.read_table(file, file.parent)
    tables.check_table(table, str(file), ["name"])
    table = table.dropna(subset=["name"]).set_index("name")
    rows = table.reindex(columns=["type", "status"]).astype(object)  # a column may be missing
    rows = rows.apply(lambda column: column.str.upper())
    rows["status"] = rows["status"].mask(rows["status"].str.startswith("BAD", na=False), "BAD")
    unknown = rows["status"][~rows["status"].isin(["GOOD", "BAD"])].dropna()
    names = checks.format_list([*unknown.index], 5)
    reason = f"status in channels.tsv is neither good nor bad: {names}"
    cutting.record_excluded("rows", reason, len(unknown), len(rows))
    rows = rows[~rows.reset_index().duplicated().to_numpy()]
    if (duplicated := rows.index[rows.index.duplicated()]).size:
        raise ValueError(
            f"{file} contains the channel {duplicated[0]!r} twice, with different types or "
            "statuses. Correct or remove one of the rows."
        )
    # Rows for channels that the recording does not contain are reported in two cases: the recording
    # contains channels without a row (which may have another name in the table), or the rows
    # describe brain signals or bad channels.
    ch_rows = rows.reindex([subjects.normalized(name) for name in ch_names]).set_axis(ch_names)
    unlisted = [name for name in ch_names if subjects.normalized(name) not in rows.index]
    absent = rows[~rows.index.isin([*map(subjects.normalized, ch_names)])]
    if not unlisted:
        absent = absent[absent["type"].str.lower().isin(_BRAIN) | (absent["status"] == "BAD")]
    names = checks.format_list(list(absent.index), 5)
    reason = f"in channels.tsv, but not in the recording: {names}"
    without_row = checks.format_list(unlisted, 5)
    reason += f"; in the recording, but not in channels.tsv: {without_row}" if unlisted else ""
    cutting.record_excluded("rows", reason, len(absent), len(rows))
    return ch_rows
