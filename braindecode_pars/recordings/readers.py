"""Open a recording with the tables of BIDS that belong to it, in the same way everywhere.

The table ``_channels.tsv`` has types of channels and which are bad, ``_events.tsv`` bad times. Its
labels are in ``label_files``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import mne
import numpy as np
import pandas as pd

from braindecode_pars._common import channel_names, checks
from braindecode_pars._common.subjects import normalized
from braindecode_pars.recordings import cutting, formats, label_files, loading, search
from braindecode_pars.recordings.formats import read_edf, read_recording, read_wfdb

__all__ = ["open_recording", "read_edf", "read_recording", "read_wfdb", "read_with_tables"]


def read_with_tables(file: Path, *, preload: bool = True) -> mne.io.BaseRaw:
    """Read a recording, with the types, bad channels and bad times in the tables of BIDS.

    Parameters
    ----------
    file : Path
        The recording, as for :func:`~braindecode_pars.recordings.readers.read_recording`.
    preload : bool
        Whether to read the signals.

    Returns
    -------
    mne.io.BaseRaw
        The recording. Its annotations are its own and the bad times of ``_events.tsv``.

    Raises
    ------
    ValueError
        When it cannot be read, or a table: the message has the path of the table.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.readers import read_with_tables
    >>> info = mne.create_info(["C3", "C4"], 250.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((2, 500)), info, verbose="error")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "night_eeg.fif")
    ...     _ = raw.save(file, verbose="error")
    ...     table = Path(folder, "night_channels.tsv")
    ...     _ = table.write_text("name\\ttype\\tstatus\\nC4\\tEEG\\tbad\\n")
    ...     read_with_tables(file).info["bads"]
    ['C4']
    """
    return _apply_tables(read_recording(file, preload=preload), file)


def _apply_tables(raw: mne.io.BaseRaw, file: Path) -> mne.io.BaseRaw:
    """Set types, bad channels and bad times of a recording as the tables of BIDS say."""
    if table := search.table_beside(file, "channels"):
        facts = _facts_of_channels(table, raw.ch_names)
        formats.mark_as_other(raw, facts.index[facts["type"].notna() & (facts["type"] != "EEG")])
        own = facts.index.isin(raw.info["bads"]) & facts["status"].isna()
        raw.info["bads"] = facts.index[(facts["status"] == "BAD") | own].tolist()
    table = search.table_beside(file, "events")
    if table and len(bad := label_files.events_in(table, marks_only=True)):
        own = raw.annotations
        notes = mne.Annotations(
            own.onset - raw.first_time, own.duration, own.description, ch_names=own.ch_names
        )
        notes.append(bad.onset, bad.duration, bad.description)
        raw.set_annotations(notes, verbose="error")
    return raw


def _facts_of_channels(file: Path, ch_names: Sequence[str]) -> pd.DataFrame:
    """Return type and status of channels in a table, in upper case; NaN where it has none."""
    table = loading.read_table(file, file.parent).rename(columns=str.lower)
    if "name" not in table:
        raise ValueError(f"{file} has no column 'name'; it has {checks.listed(list(table))}.")
    table = table.dropna(subset=["name"]).set_index("name")
    facts = table.reindex(columns=["type", "status"]).astype(object)  # a column may be missing
    facts = facts.apply(lambda each: each.str.upper())
    facts["status"] = facts["status"].mask(facts["status"].str.startswith("BAD", na=False), "BAD")
    odd = facts["status"][~facts["status"].isin(["GOOD", "BAD"])].dropna()
    why = f"of channels.tsv whose status is neither good nor bad: {checks.listed([*odd.index], 5)}"
    cutting.omit("rows", why, len(odd), len(facts))
    # Names that are there twice have numbers in MNE; a row may be repeated.
    numbers = facts.groupby(level=0).cumcount().astype(str).to_numpy()
    numbered = facts.index + "-" + numbers
    facts.index = facts.index.where(~numbered.isin(ch_names), numbered)
    facts = facts[~facts.reset_index().duplicated().to_numpy()]
    if (doubled := facts.index[facts.index.duplicated()]).size:
        raise ValueError(
            f"{file} has the channel {doubled[0]!r} twice, with another type or status."
        )
    # Those that only the table has matter if they may be others of the file, or would be used.
    found = facts.reindex([normalized(name) for name in ch_names]).set_axis(ch_names)
    unlisted = [name for name in ch_names if normalized(name) not in facts.index]
    absent = facts[~facts.index.isin([*map(normalized, ch_names)])]
    if not unlisted:
        absent = absent[absent["type"].isin(["EEG"]) | (absent["status"] == "BAD")]
    why = f"of channels.tsv that name no channel: {checks.listed(list(absent.index), 5)}"
    why += f" (the file has {checks.listed(unlisted, 5)})" if unlisted else ""
    cutting.omit("rows", why, len(absent), len(facts))
    return found


def open_recording(raw: Any) -> tuple[mne.io.BaseRaw, str]:
    """Return a recording, with the tables of BIDS that belong to it, and its name.

    Parameters
    ----------
    raw : Raw | path
        Continuous recording, or a file to read. A Raw is returned as it is; one whose signals are
        not read yet gets what the tables of its file say.

    Returns
    -------
    raw : Raw
        The recording.
    name : str
        Name of the file, without its folder; ``"recording"`` for a Raw without a file.

    Raises
    ------
    TypeError
        When ``raw`` is neither.
    ValueError
        When the file does not exist, is not a recording, may not be read, or is damaged.

    Warns
    -----
    UserWarning
        When a Raw is of a discontinuous file with gaps, which MNE does not read; or when the tables
        of its file say what it does not. When a table names other channels.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.readers import open_recording
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 100)), info, verbose="error")
    >>> open_recording(raw)[1]
    'recording'
    """
    if isinstance(raw, mne.io.BaseRaw):
        files = [Path(file) for file in raw.filenames if file is not None]
        edf = [file for file in files if file.suffix.lower() in (".edf", ".bdf") and file.is_file()]
        if gaps := [each.name for each in edf if formats.edf_signals(each)[1]]:
            checks.warn_user(
                f"{gaps[0]} is discontinuous (EDF+D) with gaps, and MNE reads it without them: "
                "windows may span a gap, and times after it are too early."
            )
        name = files[0].name if files else "recording"
        return _with_tables(raw, files[0]) if len(files) == 1 else raw, name
    if not isinstance(raw, (str, PathLike)):
        raise TypeError(f"raw must be an mne.io.Raw or a path, got a {type(raw).__name__}.")
    file = Path(raw).expanduser()
    try:
        if file.is_file() and not file.name.lower().endswith(search.ENDINGS):
            raise ValueError(
                "its name does not end as that of a recording, with "
                f"{', '.join(search.ENDINGS)}; read it with mne.io.read_raw and pass the Raw."
            )
        with cutting.collected_omissions() as omissions:
            opened = read_with_tables(file)
    except ValueError as error:
        raise ValueError(f"{file} cannot be used: {error}") from error
    for each in omissions:
        checks.warn_user(
            f"Left out of {file.name}: {each.number} of {each.of} {each.what} {each.why}."
        )
    return opened, file.name


def _facts_of(raw: mne.io.BaseRaw) -> tuple[Any, ...]:
    return raw.first_samp, raw.n_times, raw.ch_names, raw.get_channel_types()


def good_eeg(info: mne.Info) -> list[str]:
    """Return the EEG channels of a recording that are not marked as bad."""
    eeg = (ch["ch_name"] for ch in info["chs"] if channel_names.is_eeg(ch))
    return [name for name in eeg if name not in info["bads"]]


def _with_tables(raw: mne.io.BaseRaw, file: Path) -> mne.io.BaseRaw:
    """Return a Raw with what the tables of its file say, if its signals are as in the file.

    Otherwise its channels and times may be others by now: what the tables say beyond is a warning.
    """
    header = file.with_suffix({".eeg": ".vhdr", ".fdt": ".set"}.get(file.suffix, file.suffix))
    if not search.tables_beside(header):
        return raw
    if not raw.preload:
        read = None
        with suppress(OSError, ValueError, RuntimeError):  # a file that was moved since
            read = mne.io.read_raw(header, verbose="error")
        if read is not None and _facts_of(read) == _facts_of(raw):
            opened = _apply_tables(raw.copy(), header)
            bad = {*raw.info["bads"], *opened.info["bads"]}
            opened.info["bads"] = [name for name in raw.ch_names if name in bad]
            return opened
    told = mne.io.RawArray(np.zeros((len(raw.ch_names), 1)), raw.info.copy(), verbose="error")
    with cutting.collected_omissions():
        _apply_tables(told, header)
    lacking = [name for name in good_eeg(raw.info) if name not in good_eeg(told.info)]
    table = search.table_beside(header, "events")
    n_bad = len(label_files.events_in(table, marks_only=True)) if table else 0
    if lacking or n_bad > len(label_files.marks_of(raw)):
        said = [f"{checks.listed(lacking)} as bad or as another signal"] * bool(lacking)
        said += [f"{n_bad} times as bad"] * (n_bad > 0)
        checks.warn_user(
            f"The tables beside {file.name} have {' and '.join(said)}, and the Raw has not: they "
            "are not read, since its signals may have been changed. To have them read, pass the "
            "path of the file."
        )
    return raw
