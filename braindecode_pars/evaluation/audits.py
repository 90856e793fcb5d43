"""Audits: what can be read from the features of an encoder, beside a random encoder and its tokens.

Linear models read properties of a signal, and where it was recorded, from the mean of the features
over time. They are tested on other subjects than those they were fitted on.
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

from braindecode_pars._common import checks, computing, subjects
from braindecode_pars.baselines import window_features
from braindecode_pars.estimators import PARSEmbedder
from braindecode_pars.evaluation import folds, subject_information
from braindecode_pars.models.space_time import build_encoder
from braindecode_pars.pretext.features import BANDS
from braindecode_pars.windows import Windows, convert, picking, table

#: Properties of a signal by their names in :class:`~braindecode_pars.evaluation.ChannelFeatures`.
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

#: What the features are of, in the order of the rows.
FEATURES = ("encoder", "tokens", "random encoder")
#: Names of the measures.
R2, ACCURACY, EXPLAINED = "R2", subject_information.ACCURACY, subject_information.EXPLAINED

#: Largest number of channels of a window that are used: neighboring ones are much alike.
_CHANNELS = 8
_FOLDS = 5
#: Penalties of the ridge regression.
_ALPHAS = np.logspace(-2, 5, 8)


class _Question(NamedTuple):
    """Labels to tell apart, pairs of training and test rows, and what is held out."""

    labels: np.ndarray
    folds: list[tuple[np.ndarray, np.ndarray]]
    held_out: str


def audit_encoder(
    encoder: Any, windows: Any, *, n_windows: int = 1000, seed: int = 0
) -> pd.DataFrame:
    r"""Measure what a linear model can read from the features of an encoder.

    A row of features is the mean over time of the encoder's output for one channel of one window.
    A ridge regression predicts a property of the same signal from it, and a logistic regression
    the person or the place that it comes from. Both have standardized features. The scores are
    those of test rows:

    .. math::
        R^2 = 1 - \frac{\sum_i (y_i - \hat y_i)^2}{\sum_i (y_i - \bar y)^2}
        \qquad \text{and} \qquad
        \frac{1}{K} \sum_{k=1}^{K} P(\hat y = k \mid y = k) .

    :math:`\bar y` is the mean of the test rows, so :math:`R^2` is 1 when the property is read
    without an error, and 0 or below when it is not read at all. Each score stands beside that of
    the *tokens*, which is what the tokenizer gives to the transformer, and that of a *random
    encoder* of the same size. A score that is not above these two shows nothing that was learned.

    Parameters
    ----------
    encoder : str | Path | object | dict of str to these
        Encoder, as :func:`~braindecode_pars.pretrained.load_encoder` takes it: a name such as
        ``"small"``, a folder, a fitted estimator, or a PatchEncoder. Several encoders are a dict of
        their names.
    windows : windows dataset | Windows | mne.Epochs
        Windows of two seconds or more of at least two subjects, with their sampling rate and
        ``subject``. Labels are not needed. The channels that all recordings have are used.
    n_windows : int
        Largest number of windows that are used. They are drawn at random, and of each of them at
        most eight channels, the same for all encoders.
    seed : int
        Seed of these draws and of the random encoder.

    Returns
    -------
    pandas.DataFrame
        One row for each encoder, features and property, with the columns:

        - ``encoder``: name of the encoder.
        - ``features``: ``"encoder"``, ``"tokens"`` or ``"random encoder"``.
        - ``property``: of the signal, or ``"subject"``, ``"session"``, ``"channel"`` or
          ``"corpus"``; then ``"variance by subject"`` and ``"subject, erased"``.
        - ``measure``: ``"R2"``, ``"balanced accuracy"`` or ``"explained variance"``.
        - ``value``, ``sd``: mean and standard deviation over folds.
        - ``chance``: score of guesses, 0 for R2.
        - ``held_out``: what the test rows have that no training row has: other ``"subjects"``,
          or, for ``"subject"``, other ``"recordings"`` or ``"time blocks"`` of the same subjects;
          ``"nothing"`` for a share of variance.

        ``attrs`` has ``n_signals``, ``n_windows`` and ``n_subjects``.

    Raises
    ------
    ValueError
        When subjects or the sampling rate are unknown, there is one subject only, the sampling
        rate is not that of the encoder, or a window is too short.
    TypeError, FileNotFoundError
        As :func:`~braindecode_pars.pretrained.load_encoder`.

    Warns
    -----
    UserWarning
        When an encoder was pretrained on one of the subjects, when its training subjects are
        unknown, and when it was pretrained on recordings with another band or reference.

    Notes
    -----
    The properties are those of :mod:`~braindecode_pars.pretext.features`: signed slope and
    curvature over the window, log power in seven bands, aperiodic exponent, frequency and height of
    alpha, Hjorth's mobility and complexity, and line length. Each signal is normalized to
    mean 0 and variance 1 first, as for the encoder. Hjorth's activity is the variance, so it is
    left out.

    There are at most five folds. The penalty of the ridge regression, from 0.01 to 100,000, is
    that with the smallest leave-one-out error of the training rows, for each property. The logistic
    regression has ``C=0.01`` and balanced classes. Held-out subjects cannot be named, so
    "subject" is tested on other recordings of the subjects where each has several, and else on
    blocks of time, a fifth of each subject's windows. A session, channel or corpus is tested on
    held-out subjects; it counts where at least two subjects have each of them, so sessions need
    names that subjects share, such as 1 and 2.

    The share of variance by subject, :math:`\eta^2`, is relative to its mean :math:`\nu` where
    recordings are given to other subjects: :math:`(\eta^2 - \nu) / (1 - \nu)`. "subject, erased"
    is "subject" after :class:`LinearErasure` of the subjects, fitted on training rows.
    :func:`audit_subjects` has the rest, for whole windows and their classes.

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
    checks.check_parameters(
        locals(), dict(n_windows=checks.integer(2), seed=checks.integer(0)), "audit_encoder"
    )
    name = Path(encoder).name if isinstance(encoder, str | Path) else "encoder"
    encoders = encoder if isinstance(encoder, Mapping) else {name: encoder}
    signals = _drawn(windows, n_windows, np.random.default_rng(seed))
    questions = dict(_questions(signals))
    measured = window_features.ChannelFeatures().fit(signals)
    properties = pd.DataFrame(measured.transform(signals), columns=measured.features_)
    properties = properties[[name for name in properties if name in PROPERTIES]]
    properties = properties.rename(columns=PROPERTIES)
    rows = [
        dict(encoder=name, features=kind) | row
        for name, source in encoders.items()
        for kind, features in _features(name, source, signals, seed)
        for row in _read(features, signals, properties, questions)
    ]
    audit = pd.DataFrame(rows)
    audit.attrs = dict(
        n_signals=len(signals),
        n_windows=signals.table["window"].nunique(),
        n_subjects=int(questions["subject"].labels.max()) + 1,
    )
    return audit


def audit_table(audit: pd.DataFrame) -> pd.DataFrame:
    """Return the audit of one encoder with one row for each property.

    Parameters
    ----------
    audit : pandas.DataFrame
        Rows of one encoder, from :func:`audit_encoder`.

    Returns
    -------
    pandas.DataFrame
        Columns ``property``, ``measure``, ``encoder``, ``tokens``, ``random encoder``, ``chance``
        and ``held_out``.
    """
    keys = ["property", "measure", "chance", "held_out"]
    wide = audit.set_index([*keys, "features"])["value"].unstack("features", sort=False)
    wide = wide.reindex(pd.MultiIndex.from_frame(audit[keys].drop_duplicates())).reset_index()
    return wide[[*keys[:2], *FEATURES, *keys[2:]]].rename_axis(columns=None)


def _drawn(source: Any, n_windows: int, rng: np.random.Generator) -> Windows:
    """Draw windows, and some channels of each; return windows of one channel, in memory.

    Their table has the number of the ``window`` and the ``channel`` that each is of.
    """
    windows = picking.pick_for_fit(convert.as_windows(source))
    windows.check_not_empty()
    if windows.groups is None or windows.sfreq is None:
        missing = "subject" if windows.groups is None else "sampling rate"
        raise ValueError(
            f"The {missing} of some windows is unknown, and an audit needs it: pass a windows "
            "dataset with 'subject' in the descriptions of its recordings."
        )
    windows = windows.take(np.sort(rng.permutation(len(windows))[:n_windows]))
    if len(set(windows.column("subject").tolist())) < 2:
        raise ValueError("All windows are of one subject; an audit needs two, to hold out one.")
    samples, chosen = [], []
    for batch in windows.batches(64):
        for window in batch:
            chosen.append(np.sort(rng.permutation(len(window))[:_CHANNELS]))
            samples.append(window[chosen[-1]])
    of_window = np.repeat(np.arange(len(windows)), list(map(len, chosen)))
    channels = np.concatenate(chosen)
    if windows.chs_info:
        channels = np.array([ch["ch_name"] for ch in windows.chs_info])[channels]
    # A channel without a name: names would be matched with those of the other rows.
    signals = windows.take(of_window)
    signals = signals.with_montages([table.Montage() for _ in signals.montages])
    signals = signals.read_by(np.concatenate(samples)[:, None])
    return replace(signals, table=signals.table.assign(window=of_window, channel=channels))


def _features(
    name: str, source: Any, signals: Windows, seed: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the features of an encoder, of its tokens and of a random encoder."""

    embedder = PARSEmbedder(encoder=source, pooling="mean", verbose=0).fit(signals)
    named = zip(*(signals.column(key).tolist() for key in ("corpus", "subject")), strict=True)
    names_with_corpus = {subject: subjects.in_corpus(corpus, subject) for corpus, subject in named}
    folds.warn_of_leaks([name], [folds.seen_before(embedder, names_with_corpus)])
    yield "encoder", embedder.transform(signals)
    yield "tokens", embedder.set_params(layer=0).transform(signals)
    with computing.seeded(seed):
        random = build_encoder(**embedder.encoder_.config)
    embedder = PARSEmbedder(encoder=random, pooling="mean", verbose=0).fit(signals)
    yield "random encoder", embedder.transform(signals)


def _questions(signals: Windows) -> Iterator[tuple[str, _Question]]:
    """Yield what is told apart; subjects first, and the others where several subjects have each."""
    subject = pd.factorize(signals.groups)[0]
    # Recordings and windows are numbered within each subject, who is tested on some of them.
    ids = signals.table[["recording", "window"]].reset_index(drop=True)
    ids = ids.groupby(subject).transform(lambda column: pd.factorize(column)[0])
    size = ids.groupby(subject).max().add(1)
    least = int(size["recording"].min())
    held_out, part = "recordings", ids["recording"] % min(_FOLDS, least)
    if least == 1:
        held_out, part = "time blocks", ids["window"] * _FOLDS // size["window"].to_numpy()[subject]
    yield "subject", _Question(subject, list(PredefinedSplit(part).split()), held_out)
    for name, labels in (
        ("session", signals.column("session")),
        ("channel", signals.table["channel"].to_numpy()),
        ("corpus", signals.column("corpus")),
    ):
        codes = pd.factorize(labels)[0]
        least = pd.Series(subject).groupby(codes).nunique().min()
        if table.is_name(labels).all() and codes.max() > 0 and least > 1:
            splitter = StratifiedGroupKFold(min(_FOLDS, int(least)))
            yield name, _Question(codes, list(splitter.split(codes, codes, subject)), "subjects")


def _read(
    X: np.ndarray,
    signals: Windows,
    properties: pd.DataFrame,
    questions: Mapping[str, _Question],
) -> Iterator[dict[str, Any]]:
    """Yield a row for each property and each question, and those of the person."""
    values, scores = properties.to_numpy(), []
    subject, folds, held_out = questions["subject"]
    for train, test in GroupKFold(min(_FOLDS, subject.max() + 1)).split(X, groups=subject):
        ridge = make_pipeline(StandardScaler(), RidgeCV(_ALPHAS, alpha_per_target=True))
        predicted = ridge.fit(X[train], values[train]).predict(X[test])
        scores.append(r2_score(values[test], predicted, multioutput="raw_values"))
    for name, of_folds in zip(properties, np.transpose(scores), strict=True):
        yield _row(name, R2, of_folds, 0.0, "subjects")
    for name, (y, splits, unseen) in questions.items():
        yield _row(
            name, ACCURACY, subject_information.accuracies(X, y, splits), 1 / (y.max() + 1), unseen
        )
    share = subject_information.explained_variance(X, subject)
    recordings = signals.table["recording"].to_numpy()
    null = subject_information.permuted_explained_variances(
        X, subject, recordings, signals.labels
    ).mean()
    row = dict(property="variance by subject", measure=EXPLAINED, value=(share - null) / (1 - null))
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
