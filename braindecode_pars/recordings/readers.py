"""Open a recording, whatever its format, with the tables of BIDS that belong to it.

EDF, BDF, WFDB and files of MNE are read; signals that are not EEG are marked by their labels. The
table ``_channels.tsv`` has types of channels and which are bad, ``_events.tsv`` bad times. Its
labels are in ``label_files``.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

import mne
import numpy as np
import pandas as pd
import wfdb

from braindecode_pars._common import channel_names, checks, subjects
from braindecode_pars.recordings import cutting, loading, search
from braindecode_pars.windows import marks, recorded_steps

#: Endings that MNE and wfdb do not read in upper case.
_ONLY_LOWER_CASE = (".HEA", ".SET", ".VHDR", ".FIF.GZ")

#: Units of voltage in volts. MNE takes any other unit of an EDF or BDF file as volts.
VOLTS = {"V": 1.0, "mV": 1e-3, **dict.fromkeys(("uV", "\u00b5V", "\u03bcV", "\x83\xcaV"), 1e-6)}

#: Units of other quantities, such as oxygen saturation and pulse: such a signal is not EEG.
_OTHER_UNITS = {
    *("%", "bpm", "BPM", "1/min", "Hz", "s", "ms", "deg", "dB", "lux", "g", "m/s^2", "NU"),
    *("degC", "DegC", "degF", "C", "K", "mmHg", "cmH2O", "Pa", "kPa", "mbar", "Ohm", "kOhm"),
    *("l", "L", "ml", "mL", "l/min", "L/min", "l/s", "L/s", "ml/s", "Boolean"),
}


def read_recording(file: Path, *, preload: bool = True) -> mne.io.BaseRaw:
    """Read a recording of EDF, BDF, WFDB, or another format of MNE into memory.

    EDF, BDF and WFDB files do not store channel types. The type is derived from the label, such as
    "EEG Fp1" or "ECG", and from the unit: a signal in percent is not EEG. Signals that are not EEG
    get the channel type "misc"; "bio" if there is no EEG, since a recording of "misc" alone has no
    types. A signal whose label does not show its type is assumed to be EEG.

    Parameters
    ----------
    file : Path
        Path that ends with ``.edf``, ``.bdf``, ``.hea``, or as a file that :func:`mne.io.read_raw`
        reads, such as ``.fif``.
    preload : bool
        Whether to read the signals. Without them, those of a WFDB record are zeros.

    Returns
    -------
    mne.io.BaseRaw
        The recording, preloaded or only with its header.

    Raises
    ------
    ValueError
        When the file is missing, damaged or truncated, when the unit of an EEG signal is unknown or
        missing, or when a WFDB record contains no voltages.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.readers import read_recording
    >>> info = mne.create_info(["C3"], 250.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 500)), info, verbose="error")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "P01_raw.fif")
    ...     _ = raw.save(file, verbose=False)
    ...     read_recording(file).ch_names
    ['C3']
    """
    if problem := search.why_unreadable(file):
        raise ValueError(problem)
    if not file.stat().st_size:
        raise ValueError("it is damaged: it is empty.")
    suffix = file.suffix.lower()
    if file.name.endswith(_ONLY_LOWER_CASE):
        raise ValueError("its format is read with an ending in lower case only; rename the file.")
    if search.has_only_annotations(file):
        raise ValueError(
            "it has annotations and no signals; pass the recording that they are of, and its "
            "labels as a table."
        )
    if suffix in (".edf", ".bdf"):
        return _mark_signals(*_read_edf(file, preload=preload))
    if suffix == ".hea":
        return _mark_signals(*_read_wfdb(file, preload=preload))
    with short_errors(file):
        raw = mne.io.read_raw(file, preload=preload, verbose="warning")
    if search.names_part(file, 1):
        raise ValueError(
            "it is a later part of a recording in several files. Pass the first one, by its name "
            "when it was saved; MNE reads the others with it."
        )
    return raw


def read_edf(file: Path, wanted: Callable[[str], bool] | None = None) -> mne.io.BaseRaw:
    """Read an EDF, EDF+ or BDF file into memory, and check that it is complete and in volts.

    Parameters
    ----------
    file : Path
        Path of the file.
    wanted : callable | None
        Function that receives the name of a signal and returns whether it is used, so that it must
        be a voltage. None means all signals. All signals are read.

    Returns
    -------
    mne.io.BaseRaw
        Preloaded recording, in volts.

    Raises
    ------
    ValueError
        When the file is missing, damaged or truncated, when it has gaps (EDF+D), or when the unit
        of a wanted signal is not V, mV or uV.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.readers import read_edf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "night.edf")
    ...     _ = file.write_bytes(b"0       half a header")
    ...     try:
    ...         read_edf(file)
    ...     except ValueError as error:
    ...         print(str(error)[:35])
    it is damaged, truncated or missing
    """
    raw, signals = _read_edf(file)
    _check_voltages(signals[[wanted is None or wanted(name) for name in raw.ch_names]])
    return raw


def _read_edf(file: Path, *, preload: bool = True) -> tuple[mne.io.BaseRaw, pd.DataFrame]:
    """Read an EDF or BDF file, and return what its header states of each channel.

    MNE has one rate for all, the highest. Signals that are faster than the EEG are left out.
    """
    read = mne.io.read_raw_bdf if file.suffix.lower() == ".bdf" else mne.io.read_raw_edf
    with short_errors(file):
        signals, has_gaps = edf_signals(file)
        others = _other_kinds(signals["label"], signals["unit"])
        rates = signals["sfreq"].where(~signals["label"].isin(others))
        fast = signals["label"][signals["sfreq"] > rates.max()].unique().tolist()
        read_kwargs: dict[str, Any] = dict(exclude=fast, preload=preload, verbose="warning")
        raw = _in_its_encoding(read, file, **read_kwargs)
        # As MNE, the header is read with zeros that fill up a text.
        raw.rename_channels({n: n.rstrip("\0 ") for n in raw.ch_names if "\0" in n})
        signals = signals[~signals["label"].isin(fast)].set_axis(raw.ch_names)
    if has_gaps:
        raise ValueError(
            "it is discontinuous (EDF+D, or its records' times jump) with gaps, which MNE does not "
            "read. Convert it to continuous files, for example with EDFbrowser."
        )
    edges = signals[["highpass", "lowpass"]].astype(object).where(lambda edge: edge > 0, None)
    recorded_steps.remember_edges(raw.info, edges.T.to_dict("list"))
    return raw, signals


def annotations_in(file: Path) -> mne.Annotations:
    """Read the annotations of a file, also those outside the recording, which MNE drops or cuts.

    Raises
    ------
    ValueError
        When they cannot be read.
    """
    with short_errors(file):
        return _in_its_encoding(mne.read_annotations, file)


def date_of(file: Path) -> datetime | None:
    """Return the start of an EDF file, also of one with annotations only; None if unknown."""
    with short_errors():
        return _in_its_encoding(mne.io.read_raw_edf, file).info["meas_date"]


def _in_its_encoding(read: Callable[..., Any], file: Path, **settings: Any) -> Any:
    """Read a file whose annotations are in UTF-8, as EDF+ demands, or in Latin-1."""
    try:
        return read(file, **settings)
    except Exception as error:  # MNE raises no other class for a recording
        if not isinstance(error, UnicodeDecodeError) and "encoding" not in str(error):
            raise
        return read(file, encoding="latin1", **settings)


_ANNOTATIONS = ("EDF Annotations", "BDF Annotations")

#: Start of a data record in seconds, at the beginning of its first annotation signal.
_ONSET = re.compile(rb"([+-]\d+\.?\d*)\x14")

#: Start times are written with few decimals; a smaller difference in seconds is no gap.
_RESOLUTION = 1e-3


def edf_signals(file: Path) -> tuple[pd.DataFrame, bool]:
    """Return what the header of an EDF or BDF file tells of each signal, and whether it has gaps.

    Parameters
    ----------
    file : Path
        The file.

    Returns
    -------
    signals : DataFrame
        A row for each channel of MNE: without annotation signals. Columns ``label``, ``unit``
        (physical dimension), ``is_scaled`` (whether it has a physical and a digital range),
        ``highpass``, ``lowpass`` and ``sfreq`` in Hz; NaN without a filter.
    has_gaps : bool
        Whether records are apart by more than a sample, also in a file that is called continuous.

    Raises
    ------
    ValueError, TypeError
        When a number in the header is invalid, records have no length, or the time of a record of a
        discontinuous file cannot be read.
    """
    with file.open("rb") as stream:
        start = stream.read(256).decode("latin-1")
        n_signals = int(start[252:256])
        head = stream.read(256 * n_signals).decode("latin-1")
    seconds = _number(start[244:252].rstrip(), "length of a record in seconds")

    def column(first: int, width: int) -> list[str]:
        # The entries of all signals follow each other; ``first`` counts the bytes before.
        begin = first * n_signals
        return [head[begin + i * width : begin + (i + 1) * width].strip() for i in range(n_signals)]

    limits = [
        [_number(x, "smallest or largest value of a signal") for x in column(first, 8)]
        for first in range(104, 136, 8)
    ]
    filters = column(136, 80)
    counts = np.array([int(n.partition("\0")[0]) for n in column(216, 8)])
    signals = pd.DataFrame(
        {
            "label": column(0, 16),
            "unit": column(96, 8),
            "is_scaled": [a != b and c != d for a, b, c, d in zip(*limits, strict=True)],
            "highpass": [_edge(text, "HP") for text in filters],
            "lowpass": [_edge(text, "LP") for text in filters],
        }
    )
    is_annotation = signals["label"].isin(_ANNOTATIONS).to_numpy()
    if not seconds > 0 and not is_annotation.all():
        raise ValueError(f"its records last {seconds:g} s by the header, so the rate is unknown")
    signals = signals.assign(sfreq=counts / (seconds or 1.0))
    channels = signals[~is_annotation].reset_index(drop=True)
    if start[192:196] not in ("EDF+", "BDF+") or (not is_annotation.any() and start[196] != "D"):
        return channels, False
    # The first annotation signal of each record begins with its time.
    widths = counts * (3 if start[192] == "B" else 2)
    place = is_annotation.tolist().index(True)
    stop, width = widths[: place + 1].sum(), widths.sum()
    content = np.memmap(file, np.uint8, "r", offset=int(start[184:192]))
    records = content[: len(content) // width * width].reshape(-1, width)
    matches = [_ONSET.match(record[stop - widths[place] : stop].tobytes()) for record in records]
    tolerance = max(_RESOLUTION, 1 / channels["sfreq"].max())
    if start[196] != "D":  # a clock that drifts is no gap there, and times may be missing
        onsets = np.array([float(match[1]) if match else np.nan for match in matches])
        return channels, bool((np.abs(np.diff(onsets) - seconds) > tolerance).any())
    onsets = np.array([float(match[1]) for match in matches])  # type: ignore[index]
    expected = onsets[0] + seconds * np.arange(len(onsets))
    return channels, bool((np.abs(onsets - expected) > tolerance).any())


def _number(text: str, what: str) -> float:
    with suppress(ValueError):
        return float(text.partition("\0")[0].replace(",", "."))
    raise ValueError(f"its header has {text!r} as the {what}")


def _edge(text: str, name: str) -> float:
    """Return the edge of a filter in a header, as "HP:0.1Hz"; NaN for none."""
    matches = re.findall(rf"{name}:\s*(\d*[.,]?\d+)\s*([a-z]*)", text, re.IGNORECASE)
    # Not a time constant, and not in another unit
    edges = [edge for edge, unit in matches if unit.lower() not in ("s", "sec", "ms", "mhz", "khz")]
    return float(edges[-1].replace(",", ".")) if edges else np.nan


def _are_volts(signals: pd.DataFrame) -> pd.Series:
    """Return whether the header of each signal states its scale in volts."""
    return signals["unit"].isin(VOLTS) & signals["is_scaled"]


def _check_voltages(signals: pd.DataFrame) -> None:
    """Check that signals are in volts."""
    if names := _with_units(signals[~_are_volts(signals)]):
        raise ValueError(
            f"its signal {checks.format_list(names, max_items=5)} must have a scale, and be in uV, mV or V, "
            "to be read as EEG. Correct the header; or, if you know the unit of an EDF file, read "
            "it with mne.io.read_raw_edf(file, units='uV') and use the Raw."
        )


def _with_units(signals: pd.DataFrame) -> list[str]:
    units = signals["unit"].str.replace("\0", "\\0").replace("", "no unit")
    units = units.where(signals["is_scaled"], "no scale")
    return [f"{name} ({unit})" for name, unit in units.items()]


def _mark_signals(raw: mne.io.BaseRaw, signals: pd.DataFrame) -> mne.io.BaseRaw:
    """Set the types of channels by label and unit; EEG must have a unit of voltage.

    If some have one, signals of an unknown unit are left out of the EEG.
    """
    others = _other_kinds(raw.ch_names, signals["unit"])
    eeg = signals[~signals.index.isin(others)]
    unknown = eeg[~_are_volts(eeg)]
    if len(unknown) == len(eeg):
        _check_voltages(unknown)
    names = checks.format_list(_with_units(unknown), 5)
    cutting.omit("signals", f"without a known unit of voltage: {names}", len(unknown), len(signals))
    not_volts = signals.index[~_are_volts(signals)].tolist()
    raw.info["temp"] = {**(raw.info.get("temp") or {}), _NOT_VOLTS: not_volts}
    return mark_as_other(raw, [*others, *unknown.index])


def read_wfdb(file: Path, wanted: Callable[[str], bool] | None = None) -> mne.io.BaseRaw:
    """Read the voltages of a WFDB record into memory.

    Parameters
    ----------
    file : Path
        A file of the record, with any ending.
    wanted : callable | None
        Function that receives the name of a signal and returns whether to read it. None reads all
        voltages and ignores signals of other quantities, such as percent.

    Returns
    -------
    mne.io.BaseRaw
        Preloaded recording, in volts.

    Raises
    ------
    ValueError
        When the record is missing or damaged, when ``wanted`` selects no signal, when a selected
        signal is not a voltage, when the unit of another signal is unknown, or when no signal is a
        voltage.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import wfdb
    >>> from braindecode_pars.recordings.readers import read_wfdb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wfdb.wrsamp("night", 100, ["uV", "NU"], ["C3", "flow"], np.ones((500, 2)),
    ...                 fmt=["16", "16"], write_dir=folder)
    ...     read_wfdb(Path(folder, "night.hea")).ch_names
    ['C3']
    """
    raw, signals = _read_wfdb(file, wanted)
    volts = signals.index[_are_volts(signals)].tolist()
    if wanted is not None or not volts:
        _check_voltages(signals)
    return _mark_signals(raw, signals).pick(volts)


def _read_wfdb(
    file: Path, wanted: Callable[[str], bool] | None = None, *, preload: bool = True
) -> tuple[mne.io.BaseRaw, pd.DataFrame]:
    """Read a WFDB record, and return what its header states of each channel.

    The rate is that of the EEG; signals of other rates are left out.
    """
    record = str(file.with_suffix(""))  # wfdb expects a path without ending
    with short_errors(file):
        header = wfdb.rdheader(record)
        names = header.sig_name or []
        lines = Path(f"{record}.hea").read_bytes().splitlines()
    lines = [line for line in lines if line.strip() and not line.startswith(b"#")]
    if odd := [line for line in lines if not line.isascii()]:
        raise ValueError(  # wfdb leaves out such letters, and reads a micro sign and V as V
            f"its header has {odd[0].decode('utf-8', 'replace')!r}; write it in ASCII, such as uV."
        )
    if header.sig_len is None or not names or None in names:
        raise ValueError(
            "its header lacks the number of samples or the name of a signal, or has no signals; of "
            "several segments, pass the file of each."
        )
    # wfdb reads a gain of 0, of an uncalibrated signal, as 200.
    gain = re.compile(rb"\S+\s+\S+\s+([-+.]?\d[\d.eE+-]*)")
    gains = [gain.match(line) for line in lines[1 : len(names) + 1]]
    signals = pd.DataFrame(
        dict(unit=header.units, n=header.samps_per_frame, place=range(len(names))), index=names
    )
    signals["is_scaled"] = [value is not None and float(value[1]) != 0 for value in gains]
    if wanted is not None:
        signals = signals[[wanted(name) for name in names]]
    if not len(signals):
        raise ValueError(f"it has none of the wanted signals, only {', '.join(names)}.")
    rates = signals["n"][~signals.index.isin(_other_kinds(signals.index, signals["unit"]))]
    if rates.nunique() > 1:
        raise ValueError(
            "its EEG signals have different sampling rates: "
            f"{', '.join(f'{header.fs * n:g}' for n in sorted(set(rates)))} Hz; convert it to one."
        )
    n = int(rates.max() if len(rates) else signals["n"].max())
    signals = signals[signals["n"] == n]
    # Signals that are recorded with a delay have no samples at the end.
    n_frames = header.sig_len - max(skew or 0 for skew in header.skew)
    data = np.zeros((len(signals), n_frames * n))
    if preload:
        with short_errors(file):  # not averaged over the samples of a frame
            places = signals["place"].tolist()
            read = wfdb.rdrecord(record, channels=places, smooth_frames=False)
        for row, values, unit in zip(data, read.e_p_signal, read.units, strict=True):
            row[:] = values[: len(row)] * VOLTS.get(unit, 1.0)
    info = mne.create_info(signals.index.tolist(), float(header.fs) * n, "eeg")
    raw = mne.io.RawArray(data, info, verbose="error")
    return raw, signals.set_axis(raw.ch_names)


def _other_kinds(labels: Iterable[str], units: Iterable[str]) -> list[str]:
    """Return the labels of signals that are not EEG, by label and unit."""
    labels = list(labels)
    # If some labels begin with "EEG", as EDF+ requires ("EEG Fp1"), the other signals are not EEG.
    eeg = [label for label in labels if label.upper().startswith("EEG")] or labels
    others = [label for label in labels if channel_names.is_other_kind(label) or label not in eeg]
    return others + [la for la, u in zip(labels, units, strict=True) if u in _OTHER_UNITS]


def mark_as_other(raw: mne.io.BaseRaw, others: Iterable[str]) -> mne.io.BaseRaw:
    """Set the type of channels that are not EEG to "misc", or to "bio" if there is no EEG."""
    # Where all channels are "misc", it means that nothing is known of them.
    kind = "misc" if {*others} < {*raw.ch_names} else "bio"
    kinds = dict.fromkeys(others, kind)
    return raw.set_channel_types(kinds, on_unit_change="ignore", verbose="error")


#: Warnings of MNE on what is understood here: names, dates and filters of each signal, which are
#: read from the header; gaps; units of signals that are not EEG; and labels outside, counted later.
_UNDERSTOOD = re.compile(
    "This filename|Channels contain different|Highpass cutoff|The data contains 'boundary'"
    "|Invalid (measurement date|patient)|Physical range|Scaling factor"
    "|Loading an EDF with mixed|Channel names are not unique|Online software filter|No coordinate"
    "|Not setting position|Estimated head radius"
)
_OUTSIDE = re.compile("(Omitted|Limited) .* annotation")
#: Endings of files whose annotations are read with those outside the recording.
WITH_OUTSIDE = (".edf", ".bdf", ".set")

_DAMAGED = "it is damaged, truncated or missing: "
#: Patterns in errors of MNE and Python, and what they mean in a file.
_PLAIN = {
    "No raw data in|Could not find measurement data|It must be 1 for raw": "it has no continuous "
    "recording, but epochs, averages, events or the like; pass the recording that they were made "
    "of",
    "Number of records from": f"{_DAMAGED}its header tells of another number of records",
    r"invalid literal for int\(": f"{_DAMAGED}its header has no number where one belongs",
}


@contextmanager
def short_errors(file: Path | None = None) -> Iterator[None]:
    """Convert any error of a reader to a short ValueError; the caller adds the name of the file.

    Warnings that are not understood here are passed on, with the file.
    """
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # MNE only warns when an EDF file is truncated.
            warnings.filterwarnings("error", "Number of records from the header")
            yield
    except Exception as error:
        text = str(error).rstrip(".")
        known = (plain for pattern, plain in _PLAIN.items() if re.search(pattern, text))
        raise ValueError(f"{next(known, _DAMAGED + text)}.") from error
    reader_warnings = (w for w in caught if issubclass(w.category, (RuntimeWarning, UserWarning)))
    for text in dict.fromkeys(str(w.message) for w in reader_warnings):
        counted = file and file.suffix in WITH_OUTSIDE and _OUTSIDE.match(text)
        if file is not None and not counted and not _UNDERSTOOD.match(text):
            checks.warn_user(f"{file.name}: {text}")


def read_with_tables(file: Path, *, preload: bool = True) -> mne.io.BaseRaw:
    """Read a recording, with the types, bad channels and bad times in the tables of BIDS.

    Parameters
    ----------
    file : Path
        The recording, as for :func:`read_recording`.
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
        types = facts["type"][facts["type"].isin(_BRAIN)].str.lower()
        no_eeg = [*(raw.info.get("temp") or {}).get(_NOT_VOLTS, ())]
        no_eeg += [n for n, t in types.items() if t == "eeg" and channel_names.is_other_kind(n)]
        types = types[~types.index.isin(no_eeg)].to_dict()
        raw.set_channel_types(types, on_unit_change="ignore")
        mark_as_other(raw, facts.index[facts["type"].notna() & ~facts["type"].isin(_BRAIN)])
        is_bad_in_raw = facts.index.isin(raw.info["bads"]) & facts["status"].isna()
        raw.info["bads"] = facts.index[(facts["status"] == "BAD") | is_bad_in_raw].tolist()
    table = search.table_beside(file, "events")
    if table and len(bad := loading.events_in(table, marks_only=True)):
        raw.annotations.append(bad.onset + raw.first_time, bad.duration, bad.description)
    return raw


#: Our entry in ``info["temp"]`` of a recording: channels that are not in volts.
_NOT_VOLTS = "braindecode_pars_not_volts"
#: Types of BIDS that are signals of the brain.
_BRAIN = ("EEG", "ECOG", "SEEG", "DBS")


def _facts_of_channels(file: Path, ch_names: Sequence[str]) -> pd.DataFrame:
    """Return type and status of channels in a table, in upper case; NaN where it has none."""
    table = loading.read_table(file, file.parent)
    if "name" not in table:
        raise ValueError(f"{file} has no column 'name'; it has {checks.format_list(list(table))}.")
    table = table.dropna(subset=["name"]).set_index("name")
    facts = table.reindex(columns=["type", "status"]).astype(object)  # a column may be missing
    facts = facts.apply(lambda column: column.str.upper())
    facts["status"] = facts["status"].mask(facts["status"].str.startswith("BAD", na=False), "BAD")
    odd = facts["status"][~facts["status"].isin(["GOOD", "BAD"])].dropna()
    why = f"of channels.tsv whose status is neither good nor bad: {checks.format_list([*odd.index], 5)}"
    cutting.omit("rows", why, len(odd), len(facts))
    facts = facts[~facts.reset_index().duplicated().to_numpy()]
    if (doubled := facts.index[facts.index.duplicated()]).size:
        raise ValueError(
            f"{file} has the channel {doubled[0]!r} twice, with another type or status."
        )
    # Those that only the table has matter if they may be others of the file, or would be used.
    ch_facts = facts.reindex([subjects.normalized(name) for name in ch_names]).set_axis(ch_names)
    unlisted = [name for name in ch_names if subjects.normalized(name) not in facts.index]
    absent = facts[~facts.index.isin([*map(subjects.normalized, ch_names)])]
    if not unlisted:
        absent = absent[absent["type"].isin(_BRAIN) | (absent["status"] == "BAD")]
    why = f"of channels.tsv that name no channel: {checks.format_list(list(absent.index), 5)}"
    why += f" (the file has {checks.format_list(unlisted, 5)})" if unlisted else ""
    cutting.omit("rows", why, len(absent), len(facts))
    return ch_facts


def open_recording(raw: Any) -> tuple[mne.io.BaseRaw, str]:
    """Return a recording, with the tables of BIDS that belong to it, and its name.

    Parameters
    ----------
    raw : Raw | path
        Continuous recording, or a file to read. A Raw is returned as it is.

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
        of its file state bad channels or times that it does not have. When a table names other
        channels, or a header files of another name.

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
        if gaps := [path.name for path in edf if edf_signals(path)[1]]:
            checks.warn_user(
                f"{gaps[0]} is discontinuous (EDF+D) with gaps, and MNE reads it without them: "
                "windows may span a gap, and times after it are too early."
            )
        if not files:
            return raw, "recording"
        _warn_of_tables(raw, files[0])
        return raw, files[0].name
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
        search.check_signal_files([file])
    except ValueError as error:
        raise ValueError(f"{file} cannot be used: {error}") from error
    for omission in omissions:
        checks.warn_user(f"Left out of {file.name}: {omission}.")
    return opened, file.name


def good_eeg(chs: Iterable[Mapping[str, Any]], bads: Iterable[str]) -> list[str]:
    """Return the names of channels, as in ``mne.Info["chs"]``, that are EEG and not bad."""
    return [ch["ch_name"] for ch in chs if channel_names.is_eeg(ch) and ch["ch_name"] not in bads]


def _warn_of_tables(raw: mne.io.BaseRaw, file: Path) -> None:
    """Warn of bad channels, other signals and bad times in the tables of a file, not in its Raw."""
    header = search.header_of(file)
    if not search.tables_beside(header):
        return
    raw_copy = mne.io.RawArray(np.zeros((len(raw.ch_names), 1)), raw.info.copy(), verbose="error")
    with cutting.collected_omissions():
        _apply_tables(raw_copy, header)
    good, good_by_tables = (good_eeg(i["chs"], i["bads"]) for i in (raw.info, raw_copy.info))
    lacking = [name for name in good if name not in good_by_tables]
    n_bad = len(raw_copy.annotations)
    if lacking or n_bad > len(marks.marks_of(raw)):
        said = [f"{checks.format_list(lacking)} as bad or as another signal"] * bool(lacking)
        said += [f"{n_bad} times as bad"] * (n_bad > 0)
        checks.warn_user(
            f"The tables beside {header.name} have {' and '.join(said)}, and the Raw has not: a "
            "Raw is used as it is. To have the tables read, pass the path of the file."
        )
