"""Probing analysis: decode signal properties from features of an encoder (audit).

Linear models predict the properties, the subject and the origin of a signal from the time average
of its features. Their scores are compared with the scores of linear models on tokens (the input of
the transformer) and on the features of a random encoder.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, PredefinedSplit, StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from braindecode_pars._common import computing
from braindecode_pars.baselines import window_features
from braindecode_pars.estimators import PARSEmbedder, transformers
from braindecode_pars.evaluation import leaks, subject_information
from braindecode_pars.models.space_time import build_encoder
from braindecode_pars.pretext.features import BANDS
from braindecode_pars.windows import Windows, convert, picking, table

#: Maps the name of each signal property in :class:`~braindecode_pars.evaluation.ChannelFeatures` to
#: its name in tables.
PROPERTIES = {
    "slope": "slope",
    "curvature": "curvature",
    **{f"power_{low:g}-{high:g}Hz": f"power {low:g}-{high:g} Hz" for low, high in BANDS},
    "exponent": "aperiodic exponent",
    "alpha_frequency": "alpha frequency",
    "alpha_height": "alpha height",
    "mobility": "Hjorth mobility",
    "complexity": "Hjorth complexity",
    "line_length": "line length",
}

#: Sources of features, in the order of the rows.
FEATURES = ("encoder", "tokens", "random encoder")
#: Name of a measure: coefficient of determination of a ridge regression.
R2 = "R2"
#: Name of a measure: balanced accuracy of a logistic regression.
ACCURACY = subject_information.ACCURACY

#: Maximum number of channels used per window, because neighboring channels are similar.
_CHANNELS = 8
#: Maximum number of folds.
_FOLDS = 5
#: Regularization strengths of the ridge regression.
_ALPHAS = np.logspace(-2, 5, 8)


class _Target(NamedTuple):
    """Labels to predict, pairs of training and test rows (folds), and the unit that is held out."""

    labels: np.ndarray
    folds: list[tuple[np.ndarray, np.ndarray]]
    held_out: str


def audit_encoder(
    encoder: Any, windows: Any, *, n_windows: int = 1000, seed: int = 0
) -> pd.DataFrame:
    r"""Probing analysis: measure which signal properties can be decoded from encoder features.

    A row of features is the time average of the encoder output for one channel of one window. From
    this row, a ridge regression predicts a property of the same signal, and a logistic regression
    predicts its subject or origin (session, channel or corpus). The features are standardized for
    both models. The scores on test rows are :math:`R^2` for the regression and balanced accuracy
    for the classification:

    .. math::
        R^2 = 1 - \frac{\sum_i (y_i - \hat y_i)^2}{\sum_i (y_i - \bar y)^2}
        \qquad \text{and} \qquad
        \frac{1}{K} \sum_{k=1}^{K} P(\hat y = k \mid y = k) .

    Here :math:`\bar y` is the mean of the property over the test rows, so :math:`R^2` is 1 for a
    perfect prediction, and 0 or less if the property cannot be predicted. The same scores are
    computed for the *tokens*, which are the input of the transformer, and for a *random encoder* of
    the same size. Only a score above both the score of the tokens and the score of the random
    encoder indicates that the encoder learned the property in pretraining.

    Parameters
    ----------
    encoder : str | Path | object | dict of str to encoder
        Encoder in any form accepted by :func:`~braindecode_pars.pretrained.load_encoder`: a name
        such as ``"small"``, a folder, a fitted estimator, or a PatchEncoder. Pass several encoders
        as a dict with their names as keys.
    windows : windows dataset | Windows | mne.Epochs
        Windows of at least two seconds from at least two subjects, with a sampling rate and with
        ``subject`` in the descriptions of the recordings. Labels are not required. Only channels
        shared by all recordings are used.
    n_windows : int
        Maximum number of windows. If there are more windows, ``n_windows`` of them are selected at
        random. If a window has more than eight channels, eight of its channels are selected at
        random. The selected windows and channels are the same for all encoders.
    seed : int
        Seed of the random selection and of the random encoder.

    Returns
    -------
    pandas.DataFrame
        One row for each combination of encoder, features and property, with the columns:

        - ``encoder``: name of the encoder.
        - ``features``: ``"encoder"``, ``"tokens"`` or ``"random encoder"``.
        - ``property``: name of a signal property, ``"subject"``, ``"session"``, ``"channel"``,
          ``"corpus"``, ``"variance by subject"`` or ``"subject, erased"``, see Notes.
        - ``measure``: ``"R2"``, ``"balanced accuracy"`` or ``"explained variance"``.
        - ``value``, ``sd``: mean and standard deviation over folds.
        - ``chance``: chance level (0 for R2 and explained variance).
        - ``held_out``: unit that is held out for testing: ``"subjects"``; for subject decoding,
          ``"recordings"`` or ``"time blocks"`` of the same subjects; for explained variance,
          ``"nothing"``.

        The attribute ``attrs`` of the table contains the numbers of signals (single channels of a
        window), windows and subjects: ``n_signals``, ``n_windows`` and ``n_subjects``.

    Raises
    ------
    ValueError
        If a subject or the sampling rate of the windows is unknown. If there is only one subject.
        If the windows and the pretraining data of the encoder have different sampling rates. If a
        window is too short.
    TypeError, FileNotFoundError
        As in :func:`~braindecode_pars.pretrained.load_encoder`.

    Warns
    -----
    UserWarning
        If an encoder was pretrained on one of the subjects, if its training subjects are unknown,
        or if it was pretrained on recordings with a different frequency band or reference.

    Notes
    -----
    The signal properties are defined in :mod:`~braindecode_pars.pretext.features`: signed slope and
    curvature over the window, log power in seven frequency bands, aperiodic exponent, alpha
    frequency and alpha height, Hjorth mobility and complexity, and line length. Each signal is
    first normalized to mean 0 and variance 1, as for the encoder. Hjorth activity is excluded,
    because it is the variance, which is always 1 after this normalization.

    There are at most five folds. The regularization strength of the ridge regression, from 0.01 to
    100,000, is selected for each property by the leave-one-out error on the training rows. The
    logistic regression has ``C=0.01`` and balanced class weights.

    Subject decoding cannot be tested on held-out subjects. If every subject has several recordings,
    the property "subject" is tested on other recordings of the same subjects. Otherwise, it is
    tested on blocks of time with 20 % of the windows of each subject. Session, channel and corpus
    are tested on held-out subjects. Each of these three properties is included only if at least two
    subjects share each of its values, such as a session name. Use session names that do not include
    the subject, such as 1 and 2.

    The property ``"variance by subject"`` is the variance explained by subject, :math:`\eta^2`,
    corrected for chance with its mean :math:`\nu` over permutations of recordings between subjects:
    :math:`(\eta^2 - \nu) / (1 - \nu)`. The property "subject, erased" is subject decoding after
    linear information about the subject was removed with :class:`LinearErasure`, fitted on training
    rows. Use :func:`audit_subjects` to analyze features of whole windows and their classes.

    References
    ----------
    Alain and Bengio 2016, Understanding intermediate layers using linear classifier probes,
    arXiv:1610.01644.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import audit_encoder
    >>> windows = datasets.mental_arithmetic(["Subject12", "Subject13", "Subject14"])
    >>> audit = audit_encoder("small", windows)
    >>> slope = audit[audit["property"] == "slope"].set_index("features")["value"]
    >>> slope["encoder"] > 0.5 > slope["random encoder"]
    np.True_
    """
    name = Path(encoder).name if isinstance(encoder, str | Path) else "encoder"
    encoders = encoder if isinstance(encoder, Mapping) else {name: encoder}
    signals = _draw_signals(windows, n_windows, np.random.default_rng(seed))
    targets = dict(_targets(signals))
    transformer = window_features.ChannelFeatures().fit(signals)
    properties = pd.DataFrame(transformer.transform(signals), columns=transformer.features_)
    properties = properties.filter(items=PROPERTIES).rename(columns=PROPERTIES)
    rows = [
        dict(encoder=name, features=kind) | row
        for name, source in encoders.items()
        for kind, features in _features(name, source, signals, seed)
        for row in _probe(features, signals, properties, targets)
    ]
    audit = pd.DataFrame(rows)
    audit.attrs = dict(
        n_signals=len(signals),
        n_windows=signals.table["window"].nunique(),
        n_subjects=int(targets["subject"].labels.max()) + 1,
    )
    return audit


def audit_table(audit: pd.DataFrame) -> pd.DataFrame:
    """Arrange the probing analysis of one encoder as a table, with one row for each property.

    Parameters
    ----------
    audit : pandas.DataFrame
        Rows of one encoder, from :func:`audit_encoder`.

    Returns
    -------
    pandas.DataFrame
        Columns ``property``, ``measure``, ``encoder``, ``tokens``, ``random encoder``, ``chance``
        and ``held_out``. The columns ``encoder``, ``tokens`` and ``random encoder`` contain the
        scores of these three kinds of features.
    """
    keys = ["property", "measure", "chance", "held_out"]
    wide = audit.set_index([*keys, "features"])["value"].unstack("features", sort=False)
    wide = wide.reindex(pd.MultiIndex.from_frame(audit[keys].drop_duplicates())).reset_index()
    return wide[[*keys[:2], *FEATURES, *keys[2:]]].rename_axis(columns=None)


def _draw_signals(source: Any, n_windows: int, rng: np.random.Generator) -> Windows:
    """Draw windows and channels at random, and return single-channel windows in memory.

    The table of the returned windows has columns ``window`` (number of the original window) and
    ``channel``.
    """
    windows = picking.pick_for_fit(convert.as_windows(source))
    transformers.subject_numbers(windows, 1, "audit_encoder")  # checks subjects
    window_features.known_rate(windows.sfreq)
    windows = windows.take(np.sort(rng.permutation(len(windows))[:n_windows]))
    if len(set(windows.column("subject").tolist())) < 2:
        raise ValueError(
            "audit_encoder requires windows of at least 2 subjects, got one subject. Add "
            "recordings of other subjects."
        )
    samples, selected = [], []
    for window in windows:
        selected.append(np.sort(rng.permutation(len(window))[:_CHANNELS]))
        samples.append(window[selected[-1]])
    window_numbers = np.repeat(np.arange(len(windows)), len(selected[0]))
    channels = np.concatenate(selected)
    if windows.chs_info:
        channels = np.array([ch["ch_name"] for ch in windows.chs_info])[channels]
    # Remove the channel names; otherwise, the channels of different rows would be matched by name.
    signals = windows.take(window_numbers)
    signals = signals.with_montages([table.Montage() for _ in signals.montages])
    signals = signals.read_by(np.concatenate(samples)[:, None])
    return replace(signals, table=signals.table.assign(window=window_numbers, channel=channels))


def _features(
    name: str, source: Any, signals: Windows, seed: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the features of an encoder, of its tokens and of a random encoder."""
    embedder = PARSEmbedder(encoder=source, pooling="mean", verbose=0).fit(signals)
    names: Any = signals.groups, signals.corpus_subjects
    names_with_corpus = dict(zip(*names, strict=True))
    leaks.warn_of_leaks([(name, leaks.find_leaked_subjects(embedder, names_with_corpus))])
    yield "encoder", embedder.transform(signals)
    yield "tokens", embedder.set_params(layer=0).transform(signals)
    with computing.seeded(seed):
        random = build_encoder(**embedder.encoder_.config)
    embedder = PARSEmbedder(encoder=random, pooling="mean", verbose=0).fit(signals)
    yield "random encoder", embedder.transform(signals)


def _targets(signals: Windows) -> Iterator[tuple[str, _Target]]:
    """Yield the classification targets.

    The subject is first, then session, channel and corpus if several subjects share each value.
    """
    subject = pd.factorize(signals.groups)[0]
    # Number the recordings and windows of each subject; some of them are used for testing.
    ids = signals.table[["recording", "window"]].reset_index(drop=True)
    ids = ids.groupby(subject).transform(lambda column: pd.factorize(column)[0])
    size = ids.groupby(subject).max().add(1)
    min_recordings = int(size["recording"].min())
    held_out, part = "recordings", ids["recording"] % min(_FOLDS, min_recordings)
    if min_recordings == 1:
        held_out, part = "time blocks", ids["window"] * _FOLDS // size["window"].to_numpy()[subject]
    yield "subject", _Target(subject, list(PredefinedSplit(part).split()), held_out)
    for name, labels in (
        ("session", signals.column("session")),
        ("channel", signals.table["channel"].to_numpy()),
        ("corpus", signals.column("corpus")),
    ):
        codes = pd.factorize(labels)[0]
        min_subjects = pd.Series(subject).groupby(codes).nunique().min()
        if table.is_name(labels).all() and codes.max() > 0 and min_subjects > 1:
            splitter = StratifiedGroupKFold(min(_FOLDS, int(min_subjects)))
            yield name, _Target(codes, list(splitter.split(codes, codes, subject)), "subjects")


def _probe(
    X: np.ndarray,
    signals: Windows,
    properties: pd.DataFrame,
    targets: Mapping[str, _Target],
) -> Iterator[dict[str, Any]]:
    """Yield rows on signal properties, on classification targets, and on subject information."""
    values, scores = properties.to_numpy(), []
    subject, folds, held_out = targets["subject"]
    for train, test in GroupKFold(min(_FOLDS, subject.max() + 1)).split(X, groups=subject):
        ridge = make_pipeline(StandardScaler(), RidgeCV(_ALPHAS, alpha_per_target=True))
        predicted = ridge.fit(X[train], values[train]).predict(X[test])
        scores.append(r2_score(values[test], predicted, multioutput="raw_values"))
    for name, fold_scores in zip(properties, np.transpose(scores), strict=True):
        yield _row(name, R2, fold_scores, 0.0, "subjects")
    for name, (y, splits, held_out_unit) in targets.items():
        accuracies = subject_information.accuracies(X, y, splits)
        yield _row(name, ACCURACY, accuracies, 1 / (y.max() + 1), held_out_unit)
    explained = subject_information.explained_variance(X, subject)
    recordings = signals.table["recording"].to_numpy()
    null = subject_information.permuted_explained_variances(
        X, subject, recordings, signals.labels
    ).mean()
    value = (explained - null) / (1 - null)
    row = dict(property="variance by subject", measure=subject_information.EXPLAINED, value=value)
    yield row | dict(sd=np.nan, chance=0.0, held_out="nothing")
    erased = subject_information.accuracies(X, subject, folds, erased=subject)
    yield _row("subject, erased", ACCURACY, erased, 1 / (subject.max() + 1), held_out)


def _row(
    name: str, measure: str, scores: np.ndarray, chance: float, held_out: str
) -> dict[str, Any]:
    """Return a row with the mean and the standard deviation over folds."""
    mean, sd = float(np.mean(scores)), float(np.std(scores, ddof=1))
    row = dict(property=name, measure=measure, value=mean, sd=sd)
    return row | dict(chance=float(chance), held_out=held_out)
