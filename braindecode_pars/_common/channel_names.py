"""Recognize EEG channels, match channel names to electrodes, and look up electrode positions."""

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import mne
import numpy as np
from mne.io.constants import FIFF

#: MNE channel types that record electrical potentials of the brain.
_BRAIN = {FIFF.FIFFV_EEG_CH, FIFF.FIFFV_ECOG_CH, FIFF.FIFFV_SEEG_CH, FIFF.FIFFV_DBS_CH}
#: MNE channel types of channels that contain events or unknown signals.
_NO_SIGNAL = {FIFF.FIFFV_MISC_CH, FIFF.FIFFV_STIM_CH}

#: Names that are recognized as a reference, even if the name before the dash is not an electrode of
#: the 10-05 system. After an electrode of the 10-05 system, any name that is not an electrode is a
#: reference.
_REFERENCES = {"REF", "LE", "AR", "AVG", "A1", "A2", "M1", "M2", "CAR", "LER", "NOSE"}

#: Electrodes outside the 10-05 system that can form bipolar channels with scalp electrodes:
#: temporal, sphenoidal and nasopharyngeal electrodes.
_BESIDE_SCALP = {"T1", "T2", "SP1", "SP2", "PG1", "PG2"}

#: Synonyms of references -> one name: AVG for the average of all channels, LE for linked ears.
_SAME_REFERENCE = {"AR": "AVG", "CAR": "AVG", "AVE": "AVG", "LER": "LE"}

#: Old names in the 10-20 system -> names of the same electrodes in the 10-10 system. Earlobes are
#: mapped to mastoids, because sleep laboratories do not distinguish them.
_SAME_ELECTRODE = {"T3": "T7", "T4": "T8", "T5": "P7", "T6": "P8", "A1": "M1", "A2": "M2"}
#: Mastoids. (Earlobes are mapped to mastoids by _SAME_ELECTRODE.)
_EARS = ("M1", "M2")
#: Electrodes at earlobes and mastoids.
_NOT_ON_SCALP = {*_EARS, "A1", "A2"}

#: Pattern of words in the names of eye channels. ``E1`` and ``E2`` are only included if they are
#: referenced to an ear or mastoid: they are eye channels in polysomnography, but scalp electrodes
#: of EGI nets.
_EOG_WORDS = r"[a-z]*EOG[a-z]*|[HV]EO[LRUD]?|ROC(?!\d)|LOC(?!\d)|E[12]-[AM][12]"

#: Patterns of words in the names of signals that are not EEG: in polysomnography (also in Italian
#: and German), in EDF+, and in files of common amplifiers. ``ERG`` is not included, because it can
#: mean an electroretinogram, but is also the name of an electrode in the corpus EESM17.
_OTHER_WORDS = (
    _EOG_WORDS,
    # ECG and EMG, also within a word, as in ChinEMG or ECGII
    r"[a-z]*(?:ECG|EKG)[a-z]*|VCG",
    r"[a-z]*(?:EMG|Leg)[a-z]*|Chin|Submental|Tib(?:ialis)?|[LR]AT(?!\d)|PLM[a-z]*",
    r"Milo|Deltoid[a-z]*|[DS]x1-[DS]x2|Kinn|Beine?",
    # respiration
    r"Resp[a-z]*|[a-z]*Flow|[a-z]*Pre(?:s|ss|ssure)|PTAF|CPAP|Th?erm[a-z]*|Can{1,2}ula|Nasal",
    r"Air|EPMS|Leak|Flusso|Addom[a-z]*|Atmung|Schnarch[a-z]*|Druck",
    r"Th?or[a-z]*|Tho|Chest|Abd[a-z]*|Effort|Snor[a-z]*|(?:Et|Tc|P)?CO2",
    # other fields, oxygen and pulse
    r"MCG|MEG|[a-z]*(?:Puls|Trig)[a-z]*|PTT",
    r"S[ap]O2|O?Sat|Ox ?Stat(?:us)?|Stat|D?HR|H\.R|Heart|Pleth?[a-z]*|PPG",
    # environment, movement and skin
    r"Temp(?:erature)?|Light|Licht|Lux|Sound|Audio|Mic|Mikro|Lage",
    r"Pos(?:i[tz]ione?)?|Acc[XYZ]?|Accel[a-z]*|Gyro[XYZ]?",
    r"GSR|EDA|Batt(?:ery)?",
    # events
    r"STI|STIM|Status|Marke?rs?|Mark|Events?|Annotations?|Photic|IBI|Bursts|Suppr",
    # other inputs of the amplifier
    r"AUX|DIN|DC\d+|EXG\d+|VNS|^[-.]+\d*$",
)
_EOG, _OTHER = (
    re.compile(rf"(?<![a-z])(?:{words})(?![a-z])", re.IGNORECASE)
    for words in (_EOG_WORDS, "|".join(_OTHER_WORDS))
)

#: Word that means a respiratory signal before a dash, and a reference after a dash (``Cz-Nose``).
_SIGNAL_OR_REFERENCE = re.compile(r"(?<![a-z])Nose(?![a-z])", re.IGNORECASE)


def is_other_kind(name: str) -> bool:
    """Whether the name of a channel indicates a signal other than EEG, such as EMG or SpO2.

    Parameters
    ----------
    name : str
        Name of the channel.

    Returns
    -------
    bool
        True if the name indicates a signal other than EEG. False for names of electrodes, and for
        names that do not indicate the type of signal.

    Examples
    --------
    >>> from braindecode_pars._common.channel_names import is_other_kind
    >>> [name for name in ("Fp1", "EMG_chin", "LOC-A2", "SpO2", "E1") if is_other_kind(name)]
    ['EMG_chin', 'LOC-A2', 'SpO2']
    """
    is_breathing = _SIGNAL_OR_REFERENCE.search(name.partition("-")[0])
    return bool(is_breathing or _OTHER.search(name))


def is_eog(ch: Mapping[str, Any]) -> bool:
    """Whether a channel is EOG, according to its MNE channel type or its name.

    Parameters
    ----------
    ch : mapping
        Channel, as in ``mne.Info["chs"]``. If it has no entry ``kind``, only the name is used.

    Examples
    --------
    >>> import mne
    >>> from braindecode_pars._common.channel_names import is_eog
    >>> info = mne.create_info(["C3", "X1", "LOC-A2", "EMG"], 100.0, ["eeg", "eog", "eeg", "misc"])
    >>> [is_eog(ch) for ch in info["chs"]]
    [False, True, True, False]
    """
    is_named = not is_eeg(ch) and _EOG.search(ch["ch_name"]) is not None
    return is_named or ch.get("kind") == FIFF.FIFFV_EOG_CH


def is_eeg(ch: Mapping[str, Any]) -> bool:
    """Whether a channel is EEG, according to its MNE channel type and its name.

    The type is not sufficient, because readers of EDF and BDF files assign the type "eeg" to all
    signals.

    Parameters
    ----------
    ch : mapping
        Channel, as in ``mne.Info["chs"]``. If it has no entry ``kind``, only the name is used.

    Returns
    -------
    bool
        True for channels of type "ecog", "seeg" or "dbs", and for channels of type "eeg" whose name
        does not indicate another signal.

    Examples
    --------
    >>> import mne
    >>> from braindecode_pars._common.channel_names import is_eeg
    >>> info = mne.create_info(["C3", "ECG1", "STI"], 100.0, ["eeg", "eeg", "stim"])
    >>> [is_eeg(ch) for ch in info["chs"]]
    [True, False, False]
    """
    kind = ch.get("kind", FIFF.FIFFV_EEG_CH)
    is_other_signal = kind == FIFF.FIFFV_EEG_CH and is_other_kind(ch["ch_name"])
    return is_eeg_by_type(ch) and not is_other_signal


def with_types(chs: Sequence[Any]) -> list[Any]:
    """Set the type of channels to "eeg" if the channel types of a recording were not set.

    If all channels of a recording have the type "misc" or "stim", channel types were not set. This
    happens if :func:`mne.create_info` or :func:`braindecode.datasets.create_from_X_y` is called
    without ``ch_types``. In this case, channels of type "misc" get the type "eeg", except for
    channels whose name indicates another signal.

    Parameters
    ----------
    chs : sequence of mapping
        All channels of a recording, as in ``mne.Info["chs"]``.

    Returns
    -------
    list of dict
        The channels. If channel types were set, they are returned unchanged.

    Examples
    --------
    >>> import mne
    >>> from braindecode_pars._common.channel_names import is_eeg, with_types
    >>> [is_eeg(ch) for ch in with_types(mne.create_info(["C3", "x1", "EOG"], 100.0)["chs"])]
    [True, True, False]
    >>> typed = mne.create_info(["C3", "x1"], 100.0, ["eeg", "misc"])
    >>> [is_eeg(ch) for ch in with_types(typed["chs"])]
    [True, False]
    """
    if not all(ch.get("kind") in _NO_SIGNAL for ch in chs):
        return list(chs)
    untyped = [ch["kind"] == FIFF.FIFFV_MISC_CH and not is_other_kind(ch["ch_name"]) for ch in chs]
    eeg = dict(kind=FIFF.FIFFV_EEG_CH)
    return [{**ch, **eeg} if is_misc else ch for ch, is_misc in zip(chs, untyped, strict=True)]


def is_eeg_by_type(ch: Mapping[str, Any]) -> bool:
    """Whether a channel is EEG (or intracranial EEG) by its MNE channel type.

    The name of the channel is ignored. MNE re-references and filters channels by their type.

    Examples
    --------
    >>> import mne
    >>> from braindecode_pars._common.channel_names import is_eeg_by_type
    >>> info = mne.create_info(["C3", "ECG1", "EOG1"], 100.0, ["eeg", "eeg", "eog"])
    >>> [is_eeg_by_type(ch) for ch in info["chs"]]
    [True, True, False]
    """
    return ch.get("kind", FIFF.FIFFV_EEG_CH) in _BRAIN


def odd_first(names: Iterable[str]) -> list[str]:
    """Return unique names of channels, with ears, mastoids and non-EEG signals first.

    In a message that shows only the first few channels, the user should see these unexpected names.

    Examples
    --------
    >>> from braindecode_pars._common.channel_names import odd_first
    >>> odd_first(["C3", "C4-A1", "EEG A2-A1", "ECG"])
    ['EEG A2-A1', 'ECG', 'C3', 'C4-A1']
    """
    return sorted(
        dict.fromkeys(names),
        key=lambda name: electrode_pair(name)[0] not in _EARS and not is_other_kind(name),
    )


def electrode_name(channel: str) -> str:
    """Return the name of the electrode of a channel, in upper case, without prefix and reference.

    For a bipolar channel, the names of both electrodes are returned, joined with a dash.

    Examples
    --------
    >>> from braindecode_pars._common.channel_names import electrode_name
    >>> electrode_name("Fc5."), electrode_name("EEG FP1-REF"), electrode_name("C3-M2")
    ('FC5', 'FP1', 'C3')
    >>> electrode_name("Fpz-Cz")
    'FPZ-CZ'
    """
    return _electrode_and_reference(channel)[0]


def differing_references(channels: Sequence[str]) -> tuple[str, str] | None:
    """Return the first two channels whose names contain different references, or None.

    Synonyms of a reference are not different references.

    Parameters
    ----------
    channels : sequence of str
        Names of channels that record the same electrode.

    Examples
    --------
    >>> from braindecode_pars._common.channel_names import differing_references
    >>> differing_references(["C3", "C3-A1", "C3-M2"])
    ('C3-A1', 'C3-M2')
    >>> differing_references(["C3-AVG", "EEG C3-CAR", "C3"]) is None
    True
    >>> differing_references(["C3-A2", "C3-M2"]) is None
    True
    """
    by_reference: dict[str, str] = {}
    for channel in channels:
        reference = _electrode_and_reference(channel)[1]
        if reference is not None:
            by_reference.setdefault(_one_name(reference), channel)
    first_two = list(by_reference.values())[:2]
    return (first_two[0], first_two[1]) if len(first_two) == 2 else None


def electrode_pair(channel: str) -> tuple[str, str | None]:
    """Return the electrode and the reference of a channel, or the electrodes of a bipolar channel.

    Names are in upper case, and synonyms of an electrode are converted to one name, as in
    :func:`match_channels`. If the channel name contains no reference, the second name is None.

    Examples
    --------
    >>> from braindecode_pars._common.channel_names import electrode_pair
    >>> electrode_pair("EEG T3-A2"), electrode_pair("T7-M2"), electrode_pair("Fpz-Cz")
    (('T7', 'M2'), ('T7', 'M2'), ('FPZ', 'CZ'))
    >>> electrode_pair("Fc5.")
    ('FC5', None)
    """
    electrode, dash, reference = _bare_name(channel).partition("-")
    return _one_name(electrode), _one_name(reference) if dash else None


def match_channels(wanted: Sequence[str], names: Sequence[str]) -> list[int | None]:
    """Match channels of a recording to wanted channels, by electrode.

    For example, ``Fc5.``, ``EEG FC5-REF`` and ``FC5`` match, because they are the same electrode.
    ``T3`` and ``T7`` also match, as well as ``A1`` and ``M1``, and the bipolar channels ``EEG
    T3-P3`` and ``T7-P3``. References are ignored; use :func:`differing_references` to find
    different references. If several channels of a recording have the same electrode, such as
    ``C3-M1`` and ``C3-M2``, these channels are matched by their full names. Electrodes of BioSemi
    caps are never matched to electrodes of the 10-20 system, see :func:`system_names`.

    Parameters
    ----------
    wanted, names : sequence of str
        Names of the wanted channels, and names of the channels of the recording.

    Returns
    -------
    list of int | None
        Index in ``names`` of each wanted channel. None if there is no matching channel.

    Examples
    --------
    >>> from braindecode_pars._common.channel_names import match_channels
    >>> match_channels(["FC5", "C3", "Oz"], ["EEG C3-REF", "Fc5."])
    [1, 0, None]
    """
    wanted_keys, keys = channel_keys(wanted, names)
    place = {key: i for i, key in enumerate(keys)}
    return [place.get(key) for key in wanted_keys]


def channel_keys(*recordings: Sequence[str]) -> list[list[str]]:
    """Return a key for each channel. Channels matched by :func:`match_channels` have equal keys.

    Parameters
    ----------
    *recordings : sequence of str
        Names of the channels of each recording. If any recording contains an electrode twice, the
        channels of this electrode are matched by their full names in all recordings.

    Returns
    -------
    list of list of str
        Keys of the channels of each recording.

    Examples
    --------
    >>> from braindecode_pars._common.channel_names import channel_keys
    >>> channel_keys(["EEG T3-REF", "Cz"], ["cz", "T7"])
    [['T7', 'CZ'], ['CZ', 'T7']]
    """
    electrodes = [
        [
            "-".join(_SAME_ELECTRODE.get(part, part) for part in electrode_name(name).split("-"))
            for name in system_names(names)
        ]
        for names in recordings
    ]
    ambiguous = {key for keys in electrodes for key, n in Counter(keys).items() if n > 1}
    return [
        [f"={name}" if key in ambiguous else key for name, key in zip(names, keys, strict=True)]
        for names, keys in zip(recordings, electrodes, strict=True)
    ]


#: Pattern of electrode names that indicate a BioSemi cap. E1 to H32 are not included, because E1 is
#: also an electrode of EGI nets and an eye channel.
_BIOSEMI = re.compile(r"[A-D]([1-9]|[12]\d|3[012])")
#: Pattern of all electrode names of BioSemi caps. Some of them, such as A1, C3 and F8, are also
#: names in the 10-20 system.
_SHORT = re.compile(r"[A-H]\d+")


def system_names(names: Sequence[str], recording: Sequence[str] = ()) -> list[str]:
    """Add a prefix to BioSemi electrode names that have a different meaning in the 10-20 system.

    In BioSemi caps, electrodes are named A1, A2, ..., up to D32 for 128 electrodes. A recording is
    assumed to use a BioSemi cap if both of these conditions hold:

    - At least two names exist only in BioSemi caps, such as A5 and B1.
    - No name exists only in the 10-20 system, such as Fz.

    Parameters
    ----------
    names : sequence of str
        Names of channels.
    recording : sequence of str
        Names of all channels of the recording, if ``names`` is a subset of them.

    Examples
    --------
    >>> from braindecode_pars._common.channel_names import system_names
    >>> system_names(["A1", "A3", "B1", "C3"]), system_names(["A1", "Fz", "C3"])
    (['BioSemi A1', 'A3', 'B1', 'BioSemi C3'], ['A1', 'Fz', 'C3'])
    """
    if not _are_of_biosemi(recording or names):
        return list(names)
    known = {name for name in _scalp() if _SHORT.fullmatch(name)} | {"A1", "A2"}
    return [f"BioSemi {_bare_name(n)}" if electrode_name(n) in known else n for n in names]


def _are_of_biosemi(names: Sequence[str]) -> bool:
    parts = {part for name in names for part in electrode_name(name).split("-")}
    known = _scalp() | _SAME_ELECTRODE.keys()
    only_biosemi = [part for part in parts - known if _BIOSEMI.fullmatch(part)]
    return len(only_biosemi) > 1 and all(_SHORT.fullmatch(part) for part in parts & known)


def other_system(*recordings: Sequence[str]) -> str:
    """Return advice for an error message if only some recordings have BioSemi names.

    Otherwise, an empty string is returned.
    """
    if len({_are_of_biosemi(names) for names in recordings}) < 2:
        return ""
    return (
        " Some of these channels seem to be named as in a BioSemi cap, where the names A1 to H32 "
        "refer to different electrodes than in the 10-20 system. Either rename the BioSemi "
        "channels to the 10-20 electrodes at the same positions (raw.rename_channels), or refer to "
        "BioSemi electrodes with a prefix, as in 'BioSemi C3'."
    )


#: Reason why a channel is not a scalp electrode: its name contradicts its channel type.
NAME_CONTRADICTS_TYPE = "EEG by channel type, but not EEG by name"
#: Reason why a channel is not a scalp electrode: ear or mastoid.
EAR = "ear or mastoid"
#: Reason why a channel is not a single scalp electrode: two electrodes.
PAIR = "bipolar channel"
#: Reason why a channel is not a scalp electrode: unknown name.
UNKNOWN = "not an electrode of the 10-20 system (unused input?)"


def why_no_electrode(ch: Mapping[str, Any]) -> str:
    """Return the reason why a channel is not a single scalp electrode, or "" if it is.

    Scalp electrodes are the electrodes of the 10-05 system. If the reference of a channel is
    another scalp electrode, the channel is bipolar. All other references are accepted.

    Parameters
    ----------
    ch : mapping
        Channel, as in ``mne.Info["chs"]``.

    Returns
    -------
    str
        Reason for a message, or an empty string.

    Examples
    --------
    >>> from braindecode_pars._common.channel_names import why_no_electrode
    >>> why_no_electrode({"ch_name": "EEG T3-LE"}), why_no_electrode({"ch_name": "C3-A2"})
    ('', '')
    >>> for name in ("EEG A2-A1", "M1", "Fpz-Cz", "EEG 23A-23R"):
    ...     print(why_no_electrode({"ch_name": name}))
    ear-to-ear channel
    ear or mastoid
    bipolar channel
    not an electrode of the 10-20 system (unused input?)
    """
    if not is_eeg(ch):
        return NAME_CONTRADICTS_TYPE if is_eeg_by_type(ch) else "not EEG by name or channel type"
    first, second = electrode_pair(ch["ch_name"])
    if first not in (*_scalp(), *_EARS):
        return UNKNOWN
    if second and "-" in electrode_name(ch["ch_name"]):
        return PAIR
    ear_text = "ear-to-ear channel" if second in _EARS else EAR
    return ear_text if first in _EARS else ""


@functools.cache
def _scalp() -> set[str]:
    return {name.upper() for name in template_montage().ch_names} - {*_SAME_ELECTRODE, *_EARS}


def _electrode_and_reference(channel: str) -> tuple[str, str | None]:
    """Split the name of a channel into electrode and reference.

    If the name contains no reference, or is the name of a bipolar channel, the whole name and None
    are returned.
    """
    name = _bare_name(channel)
    electrode, _, reference = name.partition("-")
    # MNE appends a number to duplicate names, as in T8-P8-1, so there may be further parts.
    first, *further = (_one_name(part) for part in name.split("-"))
    is_pair = any(part in _scalp() or part in _BESIDE_SCALP for part in further)
    is_known = first in _scalp() or first in _EARS
    if reference in _REFERENCES or (reference and is_known and not is_pair):
        return electrode, reference
    return name, None


def _bare_name(channel: str) -> str:
    name = re.sub(r"^EEG\s+", "", channel.strip().upper()).rstrip(".")
    return re.sub(r"\s*-\s*", "-", name)


def _one_name(name: str) -> str:
    """Convert synonyms of an electrode or of a reference to one name."""
    return _SAME_ELECTRODE.get(name) or _SAME_REFERENCE.get(name, name)


def template_montage() -> mne.channels.DigMontage:
    """Return the template montage of MNE for the 10-05 system (template electrode positions).

    Returns
    -------
    mne.channels.DigMontage
        Montage for ``raw.set_montage``.

    Examples
    --------
    >>> from braindecode_pars.models import template_montage
    >>> {"C3", "Cz", "C4"} <= set(template_montage().ch_names)
    True
    """
    # The name of the montage depends on the version of MNE.
    known = mne.channels.get_builtin_montages()
    return mne.channels.make_standard_montage(
        "colin27_1005" if "colin27_1005" in known else "standard_1005"
    )


@functools.cache
def _template_positions() -> dict[str, np.ndarray]:
    """Return the position of each scalp electrode in the head coordinate frame.

    The keys are the names of the electrodes in upper case.
    """
    montage = template_montage()
    info = mne.create_info(montage.ch_names, 1.0, "eeg").set_montage(montage)
    positions = {ch["ch_name"].upper(): ch["loc"][:3] for ch in info["chs"]}
    return {name: position for name, position in positions.items() if name not in _NOT_ON_SCALP}


def electrode_positions(chs_info: list[dict]) -> np.ndarray:
    """Return the electrode position of each channel on the head.

    Positions are looked up by name in the template montage of the 10-05 system, so that recordings
    with and without digitized positions get the same positions. For names that are not in the 10-05
    system, the location that is stored with the channel (``loc``) is used.

    Parameters
    ----------
    chs_info : list of dict
        Channel descriptions, as in ``mne.Info["chs"]``.

    Returns
    -------
    ndarray of float32, shape (n_chans, 3)
        Positions in meters in the head coordinate frame of MNE. NaN for unknown electrodes, ears,
        mastoids and bipolar channels.

    Raises
    ------
    TypeError
        If an entry is not a channel description, for example a name.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.models import electrode_positions
    >>> info = mne.create_info(["C3", "C4", "Fpz-Cz"], 100.0, "eeg")
    >>> left, right, bipolar = electrode_positions(info["chs"])
    >>> bool(left[0] < 0 < right[0]), bool(np.isnan(bipolar).all())
    (True, True)
    """
    positions = np.full((len(chs_info), 3), np.nan, dtype=np.float32)
    for ch in chs_info:
        if not isinstance(ch, Mapping) or "ch_name" not in ch:
            raise TypeError(
                f"chs_info must be a list of dicts with the key 'ch_name', but contains {ch!r}. "
                "Pass info['chs']."
            )
    names = system_names([ch["ch_name"] for ch in chs_info])
    for row, ch, name in zip(positions, chs_info, map(electrode_name, names), strict=True):
        location = ch.get("loc")
        if name in _template_positions():
            row[:] = _template_positions()[name]
        elif name not in _NOT_ON_SCALP and location is not None and np.any(location[:3]):
            row[:] = location[:3]  # MNE uses NaN or zeros if a location is not set
    return positions
