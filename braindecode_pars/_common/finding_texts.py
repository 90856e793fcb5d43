"""Messages of all kinds of findings (results of checks).

A message states what a check found, the consequence, and what to do.
"""

import string
from collections.abc import Callable, Mapping
from typing import Any

from braindecode_pars._common.checks import format_list


def format_finding(kind: str, values: Mapping[str, Any]) -> str:
    """Return the message of a finding, with its values inserted.

    Parameters
    ----------
    kind : str
        Kind of the finding: a key of :data:`TEXTS`.
    values : mapping of str to Any
        Values to insert, by name.

    Examples
    --------
    >>> from braindecode_pars._common.finding_texts import format_finding
    >>> format_finding("unlabeled_windows", dict(n=3, n_windows=9))
    '3 of 9 windows are unlabeled. They are used for self-supervised pretraining, but not scored.'
    """
    text = TEXTS[kind]
    return text(values) if callable(text) else _FORMATTER.vformat(text, (), values)


class _Formatter(string.Formatter):
    """String formatter that also formats lists and dicts.

    - The items of a list are joined with commas. ``{names:5}`` shows at most 5 items, and
      ``{names}`` shows at most 10.
    - A dict is shown as names and values, for example "rest: 3, task: 4". The format specification
      applies to the values: ``{durations:.0f}``.
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
    amplifiers = (
        "The windows have the same channels in all recordings, but the files contain different "
        "sets of channels, so the amplifiers may differ. "
    )
    advice = f"or compare the classes within one {name}."
    if values["is_stop"]:
        advice = "or pass in_spite_of=['confounds'] (--in-spite-of confounds) to continue anyway."
    return (
        f"Class is confounded with the {name}: the {name} alone identifies the class with a "
        f"balanced accuracy of {values['accuracy']:.2f} (Cramér's V = {values['strength']:.2f}, p "
        f"= {values['p']:.2g}, chi-squared test). Number of subjects by {name} and class: "
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
        f"The reference of the recording differs from the training data{expected}, and these "
        f"channels cannot be re-referenced automatically: {format_list(texts)}. Re-reference the "
        "recording with raw.set_eeg_reference, or add the missing reference channels."
    )


#: Note about channels that are flat in the whole recording.
MAY_BE_REFERENCE = (
    "A channel that is flat in the whole recording may be the reference of the other channels. "
    "Such a channel can still be used in a derivation such as C4-C3."
)


_EXCLUDE = (
    "To exclude a channel, add it to raw.info['bads']. To exclude a segment, add an annotation "
    'that begins with "BAD".'
)

_ABSENT_CHANNELS = (
    "There are missing or bad channels: {channels} (in {n} of {n_windows} windows). These channels "
    "are {required_by}. For comparison, channels of the first window: {first}.{other_system}"
)

#: Leaks of a split -> how test windows are related to training windows.
_LEAKS = {
    "shared_subjects": "come from subjects who are also in the training data, possibly under a "
    "different spelling of the name",
    "shared_recordings": "come from recordings that are also in the training data",
    "overlapping_windows": "overlap in time with training windows of the same recording",
    "copied_recordings": "come from recordings that have the same signals as a training recording",
    "copied_windows": "contain samples that also occur in training windows, possibly with a "
    "different scale and offset",
    "class_by_recording": "come from recordings that are also in the training data and have only "
    "one class each, so a model can predict the class by recognizing the recording",
}

# The table ----------------------------------------------------------------------------------------

#: Text of each kind of finding: a format string, or a function of the values.
TEXTS: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    # Reading and writing
    "skipped_recordings": _skipped_recordings,
    "unsaved_parameters": "The following parameters are not restored when a model is loaded: "
    "{parameters}. In the loaded estimator, they have their default values, not these values. Set "
    "them again before you refit the estimator.",
    # Windows
    "bad_channels": "Channels that are marked as bad in info['bads'] are excluded: {channels} "
    "(in {n} of {n_windows} windows). To keep the same channels in all recordings, "
    "interpolate bad channels with raw.interpolate_bads() before creating windows.",
    "absent_channels": _ABSENT_CHANNELS,
    "fewer_channels": f"{_ABSENT_CHANNELS} Each window is predicted from the training channels "
    "that it contains ({used} of {n_fitted}). If a window contains none of the training channels, "
    "all of its EEG channels are used.",
    "flat_windows": "Channels are flat (constant, for example all zeros) in {n} of {n_windows} "
    "windows that were checked, for example in window {window} (channel index {rows:3}). Add "
    "disconnected electrodes to info['bads'], or pass the channels to use as channels=.",
    "implausible_unit": "In {n} of {n_windows} windows that were checked, the standard deviation "
    "of the signal is implausible (about {deviation:.1g}). In EEG, it is about 1e-6 to 1e-3 in "
    "volts, or 1 to 1000 in microvolts. The unit may have been converted twice. If so, multiply "
    "the signal by 1e{power} to get volts.",
    "implausible_volts": "The median standard deviation of the signal is {volts:.1g} V. In EEG, "
    "it is about 1e-6 to 1e-3 V. Check the unit and the gain in the files, and correct them there.",
    "large_offset": "The mean of the signal is {ratio:,.0f} times its standard deviation, so a "
    "model may learn only the offset. High-pass filter the recordings, for example at 0.5 Hz.",
    "other_unit": "The amplitude of X (standard deviation from {low:.1g} to {high:.1g}) is far "
    "outside the range of the training data (from {trained_low:.1g} to {trained_high:.1g}). Pass "
    "X in the same unit as in fit.",
    "outlier_recordings": "The amplitude of some recordings differs from the median of all "
    "{n_recordings} recordings by a factor of more than {factor:g}: {recordings:5}. The physical "
    "unit in these files may be wrong. Correct the unit, or exclude these recordings.",
    "outlier_channels": "The amplitude of some channels differs from the median of the channels in "
    "the same recording by a factor of more than {factor:g}, or the channels are flat or clipped: "
    "{channels:5}. The physical unit in the file may be wrong, or an electrode may have been "
    "disconnected. Correct the unit, or mark the channels as bad.",
    "bad_windows": "{n} of {n_windows} windows overlap with gaps in the recording or with "
    'annotations that begin with "BAD", but are used anyway. To exclude such windows, pass '
    "use_mne_epochs=True to the braindecode function that creates the windows.",
    "preprocessing_of_windows": _preprocessing_of_windows,
    "minus_one": "{n} of {n_windows} windows have the label -1 and are treated as unlabeled. Set "
    "unlabeled_label=None if -1 is a class. Set unlabeled_label=-1 if -1 marks unlabeled windows; "
    "this warning then disappears.",
    "unknown_subjects_in_fit": "The subject of {n} of {n_windows} windows is unknown, so random "
    "windows instead of whole subjects are held out for internal validation. Validation windows "
    "may then come from training subjects. Add 'subject' to the description of every recording.",
    "unknown_subjects_in_pretraining": "The subject of {n} of {n_windows} unlabeled windows is "
    "unknown, so pretraining may include windows of subjects that are held out for validation. "
    "Add 'subject' to the description of every recording.",
    "unknown_positions": "The model uses electrode positions, but in {n} of {n_windows} windows, "
    "the positions of all channels are unknown (channels {channels}). Rename the channels "
    "according to the 10-05 system, or set a montage with raw.set_montage.",
    "similar_classes": "Some class names differ only in case, white space or invisible characters, "
    "but are treated as different classes: {names}. If they mean the same class, use the same name "
    "for both.",
    # Training
    "pretraining_at_chance": "After {n_steps:,} pretraining steps, the loss is {loss:.3f} times "
    "the chance-level loss, so the encoder may have learned nothing. Pretrain for more epochs or "
    "on more windows, and compare the encoder with a randomly initialized encoder.",
    "first_epoch_best": "The validation loss was lowest after the first of {n_epochs} epochs and "
    "did not decrease afterwards. Use a smaller finetune_lr, or more training and validation "
    "subjects.",
    "validation_at_chance": "The validation loss was never below {chance:.3f}, which is the loss "
    "of predicting {constant} for every window. The predicted classes or values may still be "
    "better than chance: compute a score on held-out subjects. If the score is at chance level, "
    "check the labels, or train for more epochs or on more subjects.",
    "class_not_predicted": "The classifier predicts {classes} for none of the {n_windows} training "
    "windows that were checked, although some of these windows have the label {classes}. Train for "
    "more epochs, or check the labels and class_weight.",
    # Data check
    "too_few_classes": "The labels must contain at least two classes, got {classes!r}. Check the "
    "source of the labels. The label -1 marks unlabeled windows and is not a class.",
    "unknown_subjects": "The subject of {n} of {n_windows} labeled windows is unknown, but methods "
    "are tested on held-out subjects, so every subject must be known. Add the subject of every "
    "recording to its file name or description, or pass subject= (--subject), a regular "
    "expression that matches the subject in the path of each file.",
    "too_few_of_class": "Each subject has windows of only one class. In this case, at least "
    "{minimum} subjects per class are required for training and testing, but some classes have "
    "fewer (number of subjects: {counts}). Add subjects to these classes, or exclude the classes.",
    "too_few_subjects": "Only {n} of {n_subjects} subjects have windows of two or more classes, "
    "but at least {minimum} are required to test differences between methods. Label recordings of "
    "more subjects.",
    "confounds": _confounds,
    "copies_across_subjects": "Recordings of different subjects contain the same signals: {pairs}. "
    "The same data may then be used for training and for testing. Remove the duplicate recordings, "
    "or assign both recordings to the same subject.",
    "copies_within_subject": "Recordings of the same subject contain the same signals: {pairs}. "
    "These data count twice, and if the labels of the two recordings differ, some labels are "
    "wrong. Remove the duplicate recordings.",
    "separating_amplitude": "Amplitude alone separates class {name!r} from the other classes: the "
    "median amplitude of this class is {direction} by a factor of {factor:,.1f}, and the "
    "amplitudes hardly overlap. The cause may be physiological, as in deep sleep, or technical, "
    "such as a different amplifier, unit or cap. To test whether the scores depend on amplitude, "
    "run controls() (command 'evaluate controls') with the control 'amplitude', which normalizes "
    "the amplitude.",
    "order_of_recordings": "Class is confounded with recording order: in all {n_subjects} subjects "
    "with recordings of different classes, the order of the classes is {classes} (according "
    "to {sources}). Time effects such as fatigue or drying electrodes may explain the scores. "
    "Include subjects with the reverse order.",
    "order_within_recordings": "Class is confounded with time: in {n} of {n_recordings} "
    "recordings, the windows of class {name!r} occur {position}, and are almost completely "
    "separated in time from the windows of the other classes. Time effects such as fatigue or "
    "drying electrodes may explain the scores. Include recordings in which the classes alternate.",
    # Audit of a split
    **{
        kind: f"{{n}} of {{n_windows}} test windows {relation} ({{names:3}}). Use all windows of a "
        "subject either for training or for testing, and remove duplicate recordings."
        for kind, relation in _LEAKS.items()
    },
    "unlabeled_windows": "{n} of {n_windows} windows are unlabeled. They are used for "
    "self-supervised pretraining, but not scored.",
    # Recordings to predict
    "missing_channels": "Channels that the model was trained on are missing in this recording: "
    "{value}. Predictions use the remaining channels.",
    "other_reference": _other_reference,
    "average_without": "The average reference in training included channels that are missing in "
    "this recording: {value}. The average over the remaining channels is different, which changes "
    "the signals of all channels. Add the missing channels to the recording, or refit the model on "
    "the channels shared by all recordings.",
    "average_with": "The average reference of this recording includes channels that the model does "
    "not use: {value}. If the average reference of the training data did not include these "
    "channels, mark them as bad in raw.info['bads'], or change their channel type (for example to "
    "'misc').",
    "preprocessing_mismatch": "Preprocessing of the recording differs from the training data: "
    "{texts}. With preprocess=True (the default), differences are corrected where possible. To "
    "correct the remaining differences, preprocess the original recording as in training.",
    "flat_channels": "Channels are flat (constant) for all or part of the recording. Duration per "
    f"channel, in seconds (of {{total:.0f}} s): {{value:.0f}}. {_EXCLUDE} {MAY_BE_REFERENCE}",
    "clipped_channels": "Channels are clipped for all or part of the recording. Duration per "
    f"channel, in seconds (of {{total:.0f}} s): {{value:.0f}}. {_EXCLUDE}",
    "unusual_amplitudes": "The amplitudes (standard deviations) of some channels are far outside "
    "the range of the training data ({value[trained][0]:.1g} to {value[trained][1]:.1g}): "
    "{value[found]:.1g}. Check the unit and gain of the file, or predict with rescale=True "
    "(--rescale), which scales the recording to the amplitude of the training data. If the "
    "training windows were in microvolts, refit the model with preprocessing={{'scale': 1e6}}.",
    "subject_in_training": "Possible data leakage: the training data of the model include subject "
    "{value!r}. If this recording is from that subject, the predictions are probably more accurate "
    "than they would be for a new subject.",
    "centered_alone": "The model subtracts the mean of each subject from the features, and each "
    "training recording contained only one class. If this recording also contains only one class, "
    "subtracting its mean removes the class difference, and the predictions are not informative. "
    "Before predicting, call adapt with windows from all recordings of the subject. Alternatively, "
    "refit the model with recenter=None (braindecode-pars fit: --set recenter=null).",
    "absent_stages": "The model was trained only on the classes {classes} and cannot predict "
    "{value}. Windows of these missing stages are assigned to one of the trained classes, possibly "
    "with a high probability. To score complete sleep recordings, train on all sleep stages.",
}
