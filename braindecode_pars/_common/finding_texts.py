"""Texts of all kinds of findings: what was found, the consequence, and what to do."""

import string
from collections.abc import Callable, Mapping
from typing import Any

from braindecode_pars._common.checks import format_list


def format_finding(kind: str, values: Mapping[str, Any]) -> str:
    """Return the text of a kind of finding with its values.

    Examples
    --------
    >>> from braindecode_pars._common.finding_texts import format_finding
    >>> format_finding("unlabeled_windows", dict(n=3, n_windows=9))
    '3 of 9 windows are unlabeled. They are used for self-supervised pretraining, but not scored.'
    """
    text = TEXTS[kind]
    return text(values) if callable(text) else _FORMATTER.vformat(text, (), values)


class _Formatter(string.Formatter):
    """Formatter of strings with additional format specifications, for lists.

    - Lists are joined with commas: ``{names:5}`` shows at most 5 items, ``{names}`` at most 10.
    - Dicts are shown as a list of names and values, as in "rest: 3, task: 4". The format applies to
      the values: ``{durations:.0f}``.
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, dict):
            return format_list([f"{name}: {item:{format_spec}}" for name, item in value.items()])
        if isinstance(value, list):
            return format_list([*map(str, value)], int(format_spec or 10))
        return format(value, format_spec)


_FORMATTER = _Formatter()


# Texts that depend on the values ------------------------------------------------------------------


def _skipped_recordings(values: Mapping[str, Any]) -> str:
    reasons = values["reasons"]
    more = [f"and {len(reasons) - 20} more"] if len(reasons) > 20 else []
    lines = [f"{len(reasons)} of {values['n_recordings']} recordings were skipped:", *reasons[:20]]
    return "\n  ".join([*lines, *more])


def _preprocessing_of_windows(values: Mapping[str, Any]) -> str:
    n_windows, counts = values["n_windows"], values["counts"]
    phrases = [
        text + ("" if n == n_windows else f" ({n} of {n_windows} windows)")
        for text, n in zip(values["differences"], counts, strict=True)
    ]
    return f"{values['beginning']}: {'; '.join(phrases)}. {values['advice']}"


def _confounds(values: Mapping[str, Any]) -> str:
    name = values["property"]
    texts = []
    for value, counts in values["counts"]:
        of_classes = ", ".join(f"{n} of {label!r}" for label, n in counts.items() if n)
        texts.append(f"{value:.40} ({of_classes})")
    amplifiers = "The same channels were selected in all files, but the amplifiers may differ. "
    advice = f"or compare the classes within one {name}."
    if values["is_stop"]:
        advice = "or pass in_spite_of=['confounds'] (--in-spite-of confounds) to continue."
    return (
        f"Class is confounded with the {name}: the {name} alone identifies the class with a "
        f"balanced accuracy of {values['accuracy']:.2f} (Cramér's V = {values['strength']:.2f}, p "
        f"= {values['p']:.2g}, chi-squared test). Numbers of subjects: "
        f"{format_list(texts, max_items=4)}. Scores may reflect the {name} instead of brain "
        "activity. "
        f"{amplifiers * values['is_same_selection']}Add recordings of all classes with the same "
        f"{name}, {advice}"
    )


def _other_reference(values: Mapping[str, Any]) -> str:
    expected = f" (expected {values['expected']})" if values["expected"] else ""
    texts = []
    for name, formula in values["value"].items():
        same_name = f"{name} (reference {values['actual']})"
        texts.append(same_name if formula == name else f"{formula} instead of {name}")
    return (
        f"The recording is referenced differently from the training data{expected} and cannot be "
        f"re-referenced automatically: {format_list(texts)}. Re-reference it with "
        "raw.set_eeg_reference, or add the missing reference channels."
    )


#: Note about channels that are flat in the whole recording.
MAY_BE_REFERENCE = (
    "A channel that is flat in the whole recording may be the reference of the other channels. It "
    "can still be used in a derivation such as C4-C3."
)


_EXCLUDE = (
    "To exclude a channel, add it to raw.info['bads']. To exclude a period, annotate it as \"BAD\"."
)

_ABSENT_CHANNELS = (
    "Missing or bad channels: {channels} (in {n} of {n_windows} windows). These channels are "
    "{required_by}. The first of these windows has the channels {first}.{other_system}"
)

#: Leaks of a split -> how test windows are related to training windows.
_LEAKS = {
    "shared_subjects": "are from training subjects, possibly with another spelling of the name",
    "shared_recordings": "are from recordings that are also in the training data",
    "overlapping_windows": "overlap in time with training windows of the same recording",
    "copied_recordings": "are from recordings with the same signals as training recordings",
    "copied_windows": "contain samples of training windows, possibly with another scale and offset",
    "class_by_recording": "are from training recordings, each of which has only one class, so a "
    "model that recognizes the recording can predict the class",
}

# The table ----------------------------------------------------------------------------------------

#: Text of each kind of finding: a format string, or a function of the values.
TEXTS: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    # Reading and writing
    "skipped_recordings": _skipped_recordings,
    "unsaved_parameters": "These parameters are not saved with a model, but were set in the saved "
    "estimator: {parameters}. In the loaded estimator, they have their default values. Set them "
    "before refitting.",
    # Windows
    "bad_channels": "Channels that are marked as bad in info['bads'] are excluded: {channels} (in "
    "{n} of {n_windows} windows). To keep the same channels in all recordings, interpolate bad "
    "channels with raw.interpolate_bads() before creating windows.",
    "absent_channels": _ABSENT_CHANNELS,
    "fewer_channels": f"{_ABSENT_CHANNELS} Windows are predicted from the remaining channels of "
    "the training data ({used} of {n_fitted}). If a recording has no channel of the training data, "
    "all of its EEG channels are used.",
    "flat_windows": "Channels are flat (all zeros or constant) in {n} of {n_windows} windows that "
    "were checked, for example in window {window} (channels: row {rows:3}). Add disconnected "
    "electrodes to info['bads'], or list only the other channels in channels=.",
    "implausible_unit": "The standard deviation of the signal is {deviation:.1g} in {n} of "
    "{n_windows} windows that were checked. In EEG, it is about 1e-6 to 1e-3 in volts, or 1 to "
    "1000 in microvolts. The unit may have been converted twice. Multiply the signal by 1e{power}.",
    "implausible_volts": "The median standard deviation of the signal is {volts:.1g} V. In EEG, "
    "it is about 1e-6 to 1e-3 V. The unit or the gain in the files may be wrong. Correct it in "
    "the files.",
    "large_offset": "The mean of the signal is {ratio:,.0f} times its standard deviation, so a "
    "model may learn only from the offset. High-pass filter the recordings, for example at 0.5 Hz.",
    "other_unit": "The amplitude of X ({low:.1g} to {high:.1g}) is far outside the range of the "
    "training data ({trained_low:.1g} to {trained_high:.1g}). Pass X in the same unit as in fit.",
    "outlier_recordings": "The amplitude of these recordings differs from the median of all "
    "{n_recordings} recordings by a factor of more than {factor:g}: {recordings:5}. The physical "
    "unit may be wrong. Correct the unit in the file, or exclude the recording.",
    "outlier_channels": "Channels differ in amplitude by a factor of more than {factor:g} from the "
    "other channels of the recording, or are flat or clipped: {channels:5}. The physical unit may "
    "be wrong, or an electrode may have been disconnected. Correct the unit in the file, or mark "
    "the channel as bad.",
    "bad_windows": "{n} of {n_windows} windows overlap with gaps or with annotations that begin "
    'with "BAD". To exclude them, pass use_mne_epochs=True to the braindecode function that '
    "creates the windows.",
    "preprocessing_of_windows": _preprocessing_of_windows,
    "minus_one": "{n} of {n_windows} windows have the label -1 and are treated as unlabeled. Set "
    "unlabeled_label=None if -1 is a class, or unlabeled_label=-1 to confirm that it marks "
    "unlabeled windows.",
    "unknown_subjects_in_fit": "The subject of {n} of {n_windows} windows is unknown, so "
    "validation windows may come from training subjects. Add 'subject' to the description of "
    "every recording.",
    "unknown_subjects_in_pretraining": "The subject of {n} of {n_windows} unlabeled windows is "
    "unknown, so pretraining may use windows of validation subjects. Add 'subject' to the "
    "descriptions of the dataset.",
    "unknown_positions": "The electrode positions of all channels are unknown in {n} of "
    "{n_windows} windows (channels {channels}). Rename the channels according to the 10-05 system, "
    "or set a montage.",
    "similar_classes": "The class names {names} look the same (except for case and white space), "
    "but are treated as different classes. If they mean the same class, use one name.",
    # Training
    "pretraining_at_chance": "At the end of pretraining, the relative loss is {loss:.3f} "
    "(1 = chance level, number of steps: {n_steps:,}), so the encoder may not have learned "
    "anything. Train for more epochs or on more windows, and compare with a randomly initialized "
    "encoder.",
    "first_epoch_best": "The validation loss was lowest after the first of {n_epochs} epochs and "
    "did not decrease further. Decrease finetune_lr, or use more training and validation "
    "subjects.",
    "validation_at_chance": "The validation loss was never below {chance:.3f}, the loss of "
    "predicting {constant} for every window. Nevertheless, predictions may be better than chance: "
    "compute a score on held-out subjects. If the score is at chance level, check the labels, or "
    "train for more epochs or on more subjects.",
    "class_not_predicted": "The classifier does not predict {classes} for any of {n_windows} "
    "training windows. Train for more epochs, or check the labels and class_weight.",
    # Data check
    "too_few_classes": "At least two classes are required, but the classes of the labels are "
    "{classes!r}. Check the source of the labels. The label -1 means unlabeled.",
    "unknown_subjects": "The subject of {n} of {n_windows} labeled windows is unknown, but methods "
    "are scored on held-out subjects. Add the subject of every recording to its file name or "
    "description, or pass subject=.",
    "too_few_of_class": "Each subject has windows of only one class. Training and testing then "
    "require at least {minimum} subjects per class, but these classes have fewer: {counts}. Add "
    "subjects, or exclude the class.",
    "too_few_subjects": "Only {n} of {n_subjects} subjects have labels of two or more classes; at "
    "least {minimum} are required to test differences between methods. Label recordings of more "
    "subjects.",
    "confounds": _confounds,
    "copies_across_subjects": "Recordings of different subjects contain identical samples: "
    "{pairs}. With such duplicate recordings, training and test data overlap. Remove the "
    "duplicates, or assign them to the same subject.",
    "copies_within_subject": "Recordings of the same subject contain identical samples: {pairs}. "
    "Duplicate recordings count twice, and if their labels differ, some labels are wrong. Remove "
    "the duplicates.",
    "separating_amplitude": "Amplitude alone separates class {name!r} from the other classes: its "
    "median amplitude is {direction} by a factor of {factor:,.1f}, with almost no overlap. The "
    "cause may be physiological, as in deep sleep, or technical, such as a different amplifier, "
    "unit or cap. Also evaluate on amplitude-normalized windows (control 'amplitude').",
    "order_of_recordings": "Class is confounded with recording order: in all {n_subjects} "
    "subjects, the order of classes is {classes} (according to: {sources}). Time effects such as "
    "fatigue or drying electrodes may explain the scores. Include subjects with the reverse order.",
    "order_within_recordings": "Class is confounded with time: in {n} of {n_recordings} "
    "recordings, the windows of class {name!r} are {position}, separate from the other classes. "
    "Time effects such as fatigue or drying electrodes may explain the scores. Include recordings "
    "in which the classes alternate.",
    # Audit of a split
    **{
        kind: f"{{n}} of {{n_windows}} test windows {relation}: {{names:3}}. Use all windows of a "
        "subject either for training or for testing, and remove copies."
        for kind, relation in _LEAKS.items()
    },
    "unlabeled_windows": "{n} of {n_windows} windows are unlabeled. They are used for "
    "self-supervised pretraining, but not scored.",
    # Recordings to predict
    "missing_channels": "Channels that the model was trained on are missing: {value}. Predictions "
    "use the remaining channels.",
    "other_reference": _other_reference,
    "average_without": "The average reference in training included channels that are missing in "
    "this recording: {value}. Without them, the signals of all channels differ. Add these "
    "channels, or refit on the channels shared by all recordings.",
    "average_with": "The average reference of this recording includes channels that are not in "
    "the model: {value}. If the average reference in training did not include these channels, mark "
    "them as bad in raw.info['bads'], or change their channel type.",
    "preprocessing_mismatch": "Preprocessing of the recording differs from the training data: "
    "{texts}. With preprocess=True, differences are corrected where possible. Correct the others "
    "in the original recording.",
    "flat_channels": "Channels are flat (number of seconds, of {total:.0f} s): {value:.0f}. "
    f"{_EXCLUDE} {MAY_BE_REFERENCE}",
    "clipped_channels": "Channels are clipped (number of seconds, of {total:.0f} s): {value:.0f}. "
    f"{_EXCLUDE}",
    "unusual_amplitudes": "Channels have amplitudes far outside the range of the training data "
    "({value[trained][0]:.1g} to {value[trained][1]:.1g}): {value[found]:.1g}. Check the unit and "
    "gain of the file, or predict with rescale=True (--rescale). If the training windows were in "
    "microvolts, refit with preprocessing={{'scale': 1e6}}.",
    "subject_in_training": "Data leakage: the training data of the model include subject "
    "{value!r}. If this is the same subject, the predictions are better than for new subjects, "
    "and do not show how accurate the model is for new subjects.",
    "centered_alone": "The model subtracts the mean of each subject from the features, and each "
    "training recording contained only one class. If this recording also contains only one class, "
    "subtracting its mean removes the class difference, and the predictions are not informative. "
    "Before prediction, call adapt with windows from all recordings of the subject. Alternatively, "
    "refit with recenter=None (command fit: --set recenter=null).",
    "absent_stages": "The model was trained on the classes {classes} only and cannot predict "
    "{value}; windows of these stages are assigned to another class, possibly with a high "
    "probability. To score complete sleep recordings, train on all stages.",
}
