"""Read recordings (EDF, BDF, WFDB and formats of MNE) together with their BIDS tables.

The module ``channel_facts`` decides which channels are EEG, from the header of the file and the
table ``_channels.tsv``. Bad segments are read from ``_events.tsv``. Labels are not read here, but
in the module ``label_files``.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import mne
import numpy as np
import pandas as pd
import wfdb

from braindecode_pars._common import checks
from braindecode_pars.recordings import channel_facts, cutting, search, side_tables
from braindecode_pars.windows import marks, recorded_steps


def read_recording(file: Path, *, preload: bool = True) -> mne.io.BaseRaw:
    """Read a recording in EDF, BDF, WFDB or any format of MNE as an MNE Raw object.

    EDF, BDF and WFDB files do not store channel types. The type is derived from the label, such as
    "EEG Fp1" or "ECG", and from the unit: a signal in percent is not EEG. A signal whose label does
    not indicate a type is assumed to be EEG, unless the labels of other signals begin with "EEG".
    Signals that are not EEG get the channel type "misc". If the recording contains no EEG, they get
    the type "bio" instead, because this package assumes that channel types were not set if all
    types are "misc".

    Parameters
    ----------
    file : Path
        Path of a file with the extension ``.edf``, ``.bdf`` or ``.hea``, or with an extension that
        :func:`mne.io.read_raw` supports, such as ``.fif``.
    preload : bool
        Whether to read the signals. If False, they are read from the file on access, except for
        WFDB records, whose signals are then zeros.

    Returns
    -------
    mne.io.BaseRaw
        The recording, preloaded if ``preload`` is True.

    Raises
    ------
    ValueError
        If the file is missing, damaged or truncated. If the file is an EDF, BDF or WFDB file, and
        none of its EEG signals has a known unit of voltage.

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
    raw, facts = _read(file, preload=preload)
    return channel_facts.set_types(raw, facts)


def _read(file: Path, *, preload: bool) -> tuple[mne.io.BaseRaw, channel_facts.Facts]:
    """Read a recording in any format, and return the facts about its channels."""
    if problem := search.why_unreadable(file):
        raise ValueError(problem)
    suffix = file.suffix.lower()
    if suffix in (".edf", ".bdf", ".hea"):
        read = _read_wfdb if suffix == ".hea" else _read_edf
        raw, facts = read(file, preload=preload)
        return raw, channel_facts.without_unknown_units(facts)
    with short_errors(file):
        raw = mne.io.read_raw(file, preload=preload, verbose="warning")
    if search.is_later_part(file):
        raise ValueError(
            "the file is a later part of a recording that was split into several files. Pass the "
            "first file instead; MNE then reads all parts, if none of the files was renamed."
        )
    return raw, channel_facts.facts_of(raw.info["chs"])


def read_edf(file: Path, wanted: Callable[[str], bool] | None = None) -> mne.io.BaseRaw:
    """Read an EDF, EDF+ or BDF file, and check that it is complete and that signals are voltages.

    Parameters
    ----------
    file : Path
        Path of the file.
    wanted : callable | None
        Function that receives the name of a signal and returns whether this signal must be a
        voltage. If None, all signals must be voltages. Signals that need not be voltages are read
        as well.

    Returns
    -------
    mne.io.BaseRaw
        Preloaded recording, in volts.

    Raises
    ------
    ValueError
        If the file is missing, damaged or truncated. If it has gaps (EDF+D). If a signal that must
        be a voltage has a unit other than V, mV or uV.

    Examples
    --------
    The file contains only a part of a header:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.readers import read_edf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "P01.edf")
    ...     _ = file.write_bytes(b"0       half a header")
    ...     try:
    ...         read_edf(file)
    ...     except ValueError as error:
    ...         print(str(error)[:46])
    the file cannot be read, because it is damaged
    """
    raw, facts = _read_edf(file)
    channel_facts.check_voltages({n: f for n, f in facts.items() if wanted is None or wanted(n)})
    return raw


def _read_edf(file: Path, *, preload: bool = True) -> tuple[mne.io.BaseRaw, channel_facts.Facts]:
    """Read an EDF or BDF file, and return the facts about its channels.

    MNE resamples all channels to the highest sampling rate. Therefore, signals that are not EEG
    and have a higher sampling rate than the EEG are not read.
    """
    read = mne.io.read_raw_bdf if file.suffix.lower() == ".bdf" else mne.io.read_raw_edf
    with short_errors(file):
        signals, has_gaps = edf_signals(file)
    if signals.empty:
        raise ValueError(
            "the file contains annotations but no signals. Pass the corresponding recording, and "
            "its labels as a table."
        )
    with short_errors(file):
        others = channel_facts.other_signals(signals["label"].tolist(), signals["unit"].tolist())
        rates = signals["sfreq"].where(~signals["label"].isin(others))
        fast = signals["label"][signals["sfreq"] > rates.max()].unique().tolist()
        read_kwargs: dict[str, Any] = dict(exclude=fast, preload=preload, verbose="warning")
        raw = _read_with_encoding(read, file, **read_kwargs)
        # MNE does not remove the zero bytes at the end of a text in the header.
        raw.rename_channels({n: n.rstrip("\0 ") for n in raw.ch_names if "\0" in n})
        signals = signals[~signals["label"].isin(fast)].set_axis(raw.ch_names)
    if has_gaps:
        raise ValueError(
            "the file is discontinuous (EDF+D, or the times of its data records have gaps), which "
            "MNE does not support. Convert it to continuous files, for example with EDFbrowser."
        )
    facts = channel_facts.facts_in_header(signals)
    recorded_steps.remember_edges(raw.info, {name: f.edges for name, f in facts.items()})
    return raw, facts


def annotations_in(file: Path) -> mne.Annotations:
    """Read all annotations of a file, including annotations outside the recording.

    MNE removes or shortens annotations outside the recording when it reads the signals.

    Returns
    -------
    Annotations
        All annotations of the file.

    Raises
    ------
    ValueError
        If the annotations cannot be read.
    """
    with short_errors(file):
        return _read_with_encoding(mne.read_annotations, file)


def date_of(file: Path) -> datetime | None:
    """Return the start date and time of an EDF file, with or without signals; None if unknown."""
    with short_errors():
        return _read_with_encoding(mne.io.read_raw_edf, file).info["meas_date"]


def _read_with_encoding(read: Callable[..., Any], file: Path, **settings: Any) -> Any:
    """Read a file with annotations in UTF-8, as required by EDF+, or in Latin-1."""
    try:
        return read(file, **settings)
    except Exception as error:  # MNE raises no more specific class
        if not isinstance(error, UnicodeDecodeError) and "encoding" not in str(error):
            raise
        return read(file, encoding="latin1", **settings)


_ANNOTATIONS = ("EDF Annotations", "BDF Annotations")

#: Start of a data record in seconds, at the beginning of its first annotation signal.
_ONSET = re.compile(rb"([+-]\d+\.?\d*)\x14")

#: Smallest gap between data records in seconds, because start times have few decimals.
_RESOLUTION = 1e-3


def edf_signals(file: Path) -> tuple[pd.DataFrame, bool]:
    """Read the properties of signals from an EDF or BDF header, and check the file for gaps.

    Parameters
    ----------
    file : Path
        The file.

    Returns
    -------
    signals : DataFrame
        One row per MNE channel; annotation signals are omitted. The columns are:

        - ``label``;
        - ``unit``: physical dimension;
        - ``is_scaled``: whether the physical and the digital range are valid (minimum and maximum
          differ);
        - ``highpass`` and ``lowpass``: cutoff frequencies in Hz, NaN without a filter;
        - ``sfreq``: sampling rate in Hz.
    has_gaps : bool
        Whether there is a gap of more than one sample between data records, even if the header
        declares the file as continuous.

    Raises
    ------
    ValueError, TypeError
        If a number in the header is invalid, or the duration of data records is zero. If the file
        is discontinuous and the time of a data record cannot be read.
    """
    with file.open("rb") as stream:
        start = stream.read(256).decode("latin-1")
        n_signals = int(start[252:256])
        head = stream.read(256 * n_signals).decode("latin-1")
    seconds = _number(start[244:252].rstrip(), "duration of a data record in seconds")

    def column(first: int, width: int) -> list[str]:
        # The header stores each field for all signals in turn; ``first`` is the number of bytes
        # per signal in the preceding fields.
        begin = first * n_signals
        return [head[begin + i * width : begin + (i + 1) * width].strip() for i in range(n_signals)]

    limits = [
        [_number(x, "minimum or maximum of a signal") for x in column(first, 8)]
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
        raise ValueError(
            f"according to the header, the duration of a data record is {seconds:g} s, so the "
            "sampling rate is unknown"
        )
    signals = signals.assign(sfreq=counts / (seconds or 1.0))
    channels = signals[~is_annotation].reset_index(drop=True)
    if start[192:196] not in ("EDF+", "BDF+") or (not is_annotation.any() and start[196] != "D"):
        return channels, False
    # The first annotation signal of each data record begins with the start time of the record.
    widths = counts * (3 if start[192] == "B" else 2)
    signal = is_annotation.tolist().index(True)
    stop, width = widths[: signal + 1].sum(), widths.sum()
    content = np.memmap(file, np.uint8, "r", offset=int(start[184:192]))
    records = content[: len(content) // width * width].reshape(-1, width)
    matches = [_ONSET.match(record[stop - widths[signal] : stop].tobytes()) for record in records]
    tolerance = max(_RESOLUTION, 1 / channels["sfreq"].max())
    if start[196] != "D":  # allow clock drift and missing times
        onsets = np.array([float(match[1]) if match else np.nan for match in matches])
        return channels, bool((np.abs(np.diff(onsets) - seconds) > tolerance).any())
    onsets = np.array([float(match[1]) for match in matches])  # type: ignore[index]
    expected = onsets[0] + seconds * np.arange(len(onsets))
    return channels, bool((np.abs(onsets - expected) > tolerance).any())


def _number(text: str, quantity: str) -> float:
    with suppress(ValueError):
        return float(text.partition("\0")[0].replace(",", "."))
    raise ValueError(f"the {quantity} must be a number, but the header contains {text!r}")


def _edge(text: str, name: str) -> float:
    """Return the cutoff frequency in a text such as "HP:0.1Hz"; NaN if there is none."""
    matches = re.findall(rf"{name}:\s*(\d*[.,]?\d+)\s*([a-z]*)", text, re.IGNORECASE)
    # Ignore time constants and other units.
    edges = [edge for edge, unit in matches if unit.lower() not in ("s", "sec", "ms", "mhz", "khz")]
    return float(edges[-1].replace(",", ".")) if edges else np.nan


def read_wfdb(file: Path, wanted: Callable[[str], bool] | None = None) -> mne.io.BaseRaw:
    """Read the voltages of a WFDB record as an MNE Raw object.

    Parameters
    ----------
    file : Path
        A file of the record, with any extension.
    wanted : callable | None
        Function that receives the name of a signal and returns whether to read it. If None, read
        all voltages and ignore signals in other units, such as percent.

    Returns
    -------
    mne.io.BaseRaw
        Preloaded recording, in volts.

    Raises
    ------
    ValueError
        If the record is missing or damaged. If ``wanted`` selects no signal, or a signal that is
        not a voltage. If ``wanted`` is None and no signal is a voltage.

    Examples
    --------
    The signal ``flow`` has no unit of voltage (NU: no unit), so it is not read:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import wfdb
    >>> from braindecode_pars.recordings.readers import read_wfdb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wfdb.wrsamp("P01", 100, ["uV", "NU"], ["C3", "flow"], np.ones((500, 2)),
    ...                 fmt=["16", "16"], write_dir=folder)
    ...     read_wfdb(Path(folder, "P01.hea")).ch_names
    ['C3']
    """
    raw, facts = _read_wfdb(file, wanted)
    volts = [name for name, f in facts.items() if f.is_voltage]
    if wanted is not None or not volts:
        channel_facts.check_voltages(facts)
    return channel_facts.set_types(raw, channel_facts.without_unknown_units(facts)).pick(volts)


def _read_wfdb(
    file: Path, wanted: Callable[[str], bool] | None = None, *, preload: bool = True
) -> tuple[mne.io.BaseRaw, channel_facts.Facts]:
    """Read a WFDB record, and return the facts about its channels.

    Only signals with the sampling rate of the EEG are read.
    """
    record = str(file.with_suffix(""))  # wfdb expects a path without extension
    with short_errors(file):
        header = wfdb.rdheader(record)
        names = header.sig_name or []
        lines = Path(f"{record}.hea").read_bytes().splitlines()
    lines = [line for line in lines if line.strip() and not line.startswith(b"#")]
    if non_ascii := [line for line in lines if not line.isascii()]:
        raise ValueError(  # wfdb ignores these characters: it would read a micro sign and V as V
            f"the header must be in ASCII, got {non_ascii[0].decode('utf-8', 'replace')!r}. "
            "Replace all other characters, for example the micro sign with u, as in uV."
        )
    if header.sig_len is None or not names or None in names:
        raise ValueError(
            "the header is incomplete: the number of samples is missing, a signal has no name, or "
            "no signals are listed. If the record consists of several segments, pass the header of "
            "each segment instead of the header of the record. Otherwise, complete the header."
        )
    # wfdb replaces a gain of 0, which means that a signal is not calibrated, with 200.
    gain = re.compile(rb"\S+\s+\S+\s+([-+.]?\d[\d.eE+-]*)")
    gains = [gain.match(line) for line in lines[1 : len(names) + 1]]
    signals = pd.DataFrame(
        dict(unit=header.units, n=header.samps_per_frame, place=range(len(names))), index=names
    )
    signals["is_scaled"] = [value is not None and float(value[1]) != 0 for value in gains]
    if wanted is not None:
        signals = signals[[wanted(name) for name in names]]
    if not len(signals):
        raise ValueError(
            f"the record contains none of the requested signals, only {', '.join(names)}. Request "
            "other signals, or exclude the record."
        )
    others = channel_facts.other_signals(signals.index.tolist(), signals["unit"].tolist())
    rates = signals["n"][~signals.index.isin(others)]
    if rates.nunique() > 1:
        raise ValueError(
            "the EEG signals have different sampling rates: "
            f"{', '.join(f'{header.fs * n:g}' for n in sorted(set(rates)))} Hz. Resample them to "
            "one sampling rate."
        )
    n = int(rates.max() if len(rates) else signals["n"].max())
    signals = signals[signals["n"] == n]
    # Signals that were recorded with a delay (skew) have no samples at the end.
    n_frames = header.sig_len - max(skew or 0 for skew in header.skew)
    data = np.zeros((len(signals), n_frames * n))
    if preload:
        with short_errors(file):  # without averaging over the samples of a frame
            places = signals["place"].tolist()
            read = wfdb.rdrecord(record, channels=places, smooth_frames=False)
        for row, values, unit in zip(data, read.e_p_signal, read.units, strict=True):
            row[:] = values[: len(row)] * channel_facts.VOLTS.get(unit, 1.0)
    info = mne.create_info(signals.index.tolist(), float(header.fs) * n, "eeg")
    raw = mne.io.RawArray(data, info, verbose="error")
    return raw, channel_facts.facts_in_header(signals)


#: Warnings of MNE that are not passed on, because this module handles their causes itself: channel
#: names, dates and filters, which it reads from the header; gaps; and units of signals that are not
#: EEG.
_HANDLED = re.compile(
    "This filename|Channels contain different|Highpass cutoff|The data contains 'boundary'"
    "|Invalid (measurement date|patient)|Physical range|Scaling factor"
    "|Loading an EDF with mixed|Channel names are not unique|Online software filter|No coordinate"
    "|Not setting position|Estimated head radius"
)
#: Warnings of MNE about annotations outside the recording. Labels outside the recording are counted
#: and reported later.
_OUTSIDE = re.compile("(Omitted|Limited) .* annotation")
#: Extensions of files whose annotations can be read without the signals. Then, MNE does not remove
#: annotations outside the recording.
WITH_OUTSIDE = (".edf", ".bdf", ".set")


@contextmanager
def short_errors(file: Path | None = None) -> Iterator[None]:
    """Convert any error raised inside this context manager to a short ValueError.

    The message does not contain the file name, because the caller adds it. Warnings are passed on
    with the file name, except for warnings whose causes are handled by this module.
    """
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # MNE only warns when an EDF file is truncated.
            warnings.filterwarnings("error", "Number of records from the header")
            yield
    except Exception as error:
        raise ValueError(
            "the file cannot be read, because it is damaged, incomplete, or not a continuous "
            f"recording: {str(error).rstrip('.')}. Replace the file, or exclude it."
        ) from error
    reader_warnings = (w for w in caught if issubclass(w.category, (RuntimeWarning, UserWarning)))
    for text in dict.fromkeys(str(w.message) for w in reader_warnings):
        is_counted = file and file.suffix in WITH_OUTSIDE and _OUTSIDE.match(text)
        if file is not None and not is_counted and not _HANDLED.match(text):
            checks.warn_user(f"{file.name}: {text}")


def read_with_tables(file: Path, *, preload: bool = True) -> mne.io.BaseRaw:
    """Read a recording with the channel types, bad channels and bad segments of its BIDS tables.

    Parameters
    ----------
    file : Path
        The recording, as in :func:`read_recording`.
    preload : bool
        Whether to read the signals.

    Returns
    -------
    mne.io.BaseRaw
        The recording, with the annotations of the file and the bad segments of ``_events.tsv``.

    Raises
    ------
    ValueError
        If the recording or a table cannot be read. The message contains the path of the table.

    Examples
    --------
    The BIDS table marks C4 as bad:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.readers import read_with_tables
    >>> info = mne.create_info(["C3", "C4"], 250.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((2, 500)), info, verbose="error")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "P01_eeg.fif")
    ...     _ = raw.save(file, verbose="error")
    ...     table = Path(folder, "P01_channels.tsv")
    ...     _ = table.write_text("name\\ttype\\tstatus\\nC4\\tEEG\\tbad\\n")
    ...     read_with_tables(file).info["bads"]
    ['C4']
    """
    raw, facts = _read(file, preload=preload)
    facts, raw.info["bads"], bad = _read_tables(file, facts, raw.info["bads"])
    raw.annotations.append(bad.onset + raw.first_time, bad.duration, bad.description)
    return channel_facts.set_types(raw, facts)


def _read_tables(
    file: Path, facts: channel_facts.Facts, bads: Sequence[str]
) -> tuple[channel_facts.Facts, Sequence[str], mne.Annotations]:
    """Return the facts about channels, bad channels, and bad segments according to BIDS tables."""
    if table := side_tables.table_beside(file, "channels"):
        facts, bads = channel_facts.with_table(facts, bads, table)
    if table := side_tables.table_beside(file, "events"):
        return facts, bads, side_tables.events_in(table, marks_only=True)
    return facts, bads, mne.Annotations([], [], [])


def open_recording(raw: Any) -> tuple[mne.io.BaseRaw, str]:
    """Return a recording, which is passed as a Raw object or as a file, and its name.

    Parameters
    ----------
    raw : Raw | path
        Continuous recording, or a file to read. A file is read with its BIDS tables, as in
        :func:`read_with_tables`. A Raw is returned unchanged; its BIDS tables are not applied.

    Returns
    -------
    raw : Raw
        The recording.
    name : str
        Name of the file without its folder; ``"recording"`` for a Raw without a file.

    Raises
    ------
    TypeError
        If ``raw`` is neither a Raw nor a path.
    ValueError
        If the file does not exist, is not a recording, cannot be opened, or is damaged.

    Warns
    -----
    UserWarning
        If a Raw was read from a discontinuous file, because MNE ignores its gaps. If a Raw lacks
        bad channels or bad segments that are in the BIDS tables of its file. If a BIDS table
        contains channels that are not in the recording. If a header file refers to signal files
        with a different name.

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
                f"{gaps[0]} is discontinuous (EDF+D), but MNE ignores the gaps: windows may span a "
                "gap, and all times after a gap are too early. Convert it to continuous files, for "
                "example with EDFbrowser."
            )
        if not files:
            return raw, "recording"
        _warn_of_tables(raw, files[0])
        return raw, files[0].name
    file = Path(raw).expanduser()
    try:
        if file.is_file() and not file.name.lower().endswith(search.ENDINGS):
            raise ValueError(
                f"the extension must be one of {', '.join(search.ENDINGS)}. Read files in other "
                "formats with mne.io.read_raw, and pass the Raw object."
            )
        with cutting.collect_excluded_items() as excluded_items:
            opened = read_with_tables(file)
        search.check_signal_files([file])
    except ValueError as error:
        raise ValueError(f"{file} cannot be used: {error}") from error
    for item in excluded_items:
        checks.warn_user(f"Excluded from {file.name}: {item}.")
    return opened, file.name


def _warn_of_tables(raw: mne.io.BaseRaw, file: Path) -> None:
    """Warn if a Raw lacks bad channels, channel types or bad segments from its BIDS tables."""
    header = search.header_of(file)
    chs, bads = raw.info["chs"], raw.info["bads"]
    with cutting.collect_excluded_items():
        facts, table_bads, segments = _read_tables(header, channel_facts.facts_of(chs), bads)
    good = channel_facts.good_eeg(chs, bads)
    not_good = [name for name in good if name in table_bads or not facts[name].is_brain]
    if not_good or len(segments) > len(marks.marks_of(raw)):
        checks.warn_user(
            f"The Raw object lacks information from the BIDS tables of {header.name}. Channels "
            "that are bad or not EEG according to the tables, but good EEG channels in the Raw "
            f"object: {checks.format_list(not_good) or 'none'}. Number of bad segments in the "
            f"tables: {len(segments)}. The BIDS tables of a Raw object are not applied. To apply "
            "them, pass the path of the file instead."
        )
