"""Plan of a study: its methods, numbers of labelled people, draws, and how long they take here."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from braindecode_pars._common.channel_names import match_channels
from braindecode_pars.baselines import CENTRED, FROZEN, make_methods
from braindecode_pars.estimators import LinearProbe, PARSEmbedder, SubjectCentering
from braindecode_pars.estimators.encoder_start import n_parameters
from braindecode_pars.estimators.linear_probe import DEFAULT_C
from braindecode_pars.estimators.window_features import FRONTAL, SlowVoltages
from braindecode_pars.evaluation.cache import with_seed
from braindecode_pars.evaluation.corpus import Corpus
from braindecode_pars.evaluation.splitting import classes_of_subjects, draw_subjects
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.windows.once import features_computed_once
from braindecode_pars.windows.table import Windows

#: Name of the encoder that is pretrained on the people who are not tested, within each fold.
OWN, OWN_UNTRAINED = "own pretraining", "own, untrained"
#: Task of that pretraining: the best of ten on three questions, see the results.
_OWN_TASK: dict[str, Any] = dict(
    pretext="joint", pretext_params={"tasks": {"features": 1.0, "spectral": 1.0}}
)
_SIMPLE = ("band-power", "tangent-space", "classical-features")
#: Folds of subjects; each is tested once in every draw.
N_FOLDS = 4
#: Draws of labelled people: of classifiers on features and of networks, without and with hours.
DRAWS, MOST_DRAWS, FEWEST_DRAWS = 8, 20, 3
#: Longest time of networks in minutes where no hours are given.
NETWORK_MINUTES = 2.0
#: Fewest windows of each subject to subtract the mean of the subject.
CENTRING_NEEDS = 10
#: Variances of subjects, of draws, and the rest, of the gain of an encoder over an untrained one:
#: rest or arithmetic, four labelled people, 20 draws (``docs/measured/few_labels``).
TYPICAL = {(0,): 0.0077, (1,): 0.0, (0, 1): 0.0249}


class Method(NamedTuple):
    """A method of a study.

    Attributes
    ----------
    name : str
        Name in tables and figures.
    estimator : estimator
        Unfitted classifier.
    kind : str
        "simple", "untrained", "pretrained", "vote" or "network"; a pretrained or untrained one is
        also a network where ``trains`` is true.
    twin : str | None
        The same method with an encoder that was not pretrained.
    given : str
        What it is given beside the labelled people of a draw.
    trains : bool
        Whether each fit trains a network, which takes long.
    own : bool
        Whether its encoder is pretrained within each fold.
    """

    name: str
    estimator: BaseEstimator
    kind: str
    twin: str | None = None
    given: str = ""
    trains: bool = False
    own: bool = False


def study_methods(
    encoders: Mapping[str, Any],
    channels: list[str] | None = None,
    *,
    centred: bool,
    further: Mapping[str, BaseEstimator],
) -> list[Method]:
    """Return the methods of a study, plain and, if they may be, centred by subject.

    Parameters
    ----------
    encoders : dict of str to path or name
        Pretrained encoders by the name of their method.
    channels : list of str | None
        Channels of the slow voltages; None means the frontal ones.
    centred : bool
        Whether to add each method with the mean of every subject subtracted.
    further : dict of str to estimator
        Methods of the user, as they are.
    """
    found: list[Method] = []
    for by_subject in (False, True) if centred else (False,):
        found += _on_features(encoders, channels, CENTRED if by_subject else "", by_subject)
    return [*found, *_networks(encoders), *(Method(n, e, "simple") for n, e in further.items())]


def _on_features(
    encoders: Mapping[str, Any], channels: list[str] | None, mark: str, by_subject: bool
) -> list[Method]:
    how: dict[str, Any] = dict(subject_centering=by_subject, C=DEFAULT_C)
    given = "unlabelled windows of the test subject" if by_subject else ""
    found = [Method(n, e, "simple", given=given) for n, e in make_methods(_SIMPLE, **how).items()]
    slow = _probe(SlowVoltages(channels=channels), by_subject, classifier="lda")
    found.append(Method(f"slow voltages{mark}", slow, "simple", given=given))
    twins: dict[int, str] = {}
    for name, encoder in encoders.items():
        loaded = load_encoder(encoder)
        size = n_parameters(loaded.encoder)
        pair = make_methods(["probe", "random-encoder"], encoder={name: encoder}, **how)
        if size not in twins:
            twins[size] = f"random encoder{f' as {name}' if twins else ''}{mark}"
            untrained = pair[f"random encoder{mark}"]
            found.append(Method(twins[size], untrained, "untrained", given=given))
        source = "recordings of other people" if loaded.card.subjects else "synthetic signals"
        both = _joined(f"an encoder of {source}", given)
        probe = pair[f"{name} probe{mark}"]
        found.append(Method(name + mark, probe, "pretrained", twins[size], both))
    untrained = make_methods(["random-encoder"], **how)[f"random encoder{mark}"]
    found.append(Method(OWN_UNTRAINED + mark, untrained, "untrained", given=given))
    embedder = PARSEmbedder(**_OWN_TASK, pooling="channels", random_state=0, verbose=0)
    own = _probe(embedder, by_subject, C=DEFAULT_C)
    both = _joined("unlabelled windows of all who are not tested", given)
    twin = OWN_UNTRAINED + mark
    found.append(Method(OWN + mark, own, "pretrained", twin, both, own=True))
    if "small" in encoders:
        [(name, vote)] = make_methods(["few-labels"], **how).items()
        found.append(Method(name, vote, "vote", given=_joined("the encoder small", given)))
    return found


def embedder_in(probe: LinearProbe) -> tuple[str, PARSEmbedder]:
    """Return the embedder of a probe, and the name of this parameter."""
    found = probe.get_params().items()
    return next((name, part) for name, part in found if isinstance(part, PARSEmbedder))


def _probe(features: TransformerMixin, by_subject: bool, **how: Any) -> LinearProbe:
    return LinearProbe(SubjectCentering(features) if by_subject else features, **how)


def channels_of_slow_voltages(windows: Windows) -> list[str] | None:
    """Return None where there is a frontal channel, and else all that the recordings share."""
    names = [[n for n in each.names if n not in each.bads] for each in windows.montages]
    common = [name for name in names[0] if all(name in others for others in names)]
    frontal = match_channels(FRONTAL, common)
    return None if any(place is not None for place in frontal) else common


def _networks(encoders: Mapping[str, Any]) -> list[Method]:
    if not encoders:
        return []
    name, encoder = next(iter(encoders.items()))
    found = make_methods(["scratch", "eegnet"], encoder={name: encoder})
    given = "an encoder of other recordings"
    of = (f"{name}, as a network", found[name + FROZEN], "pretrained", "scratch", given)
    return [
        Method("scratch", found["scratch"], "untrained", trains=True),
        Method(*of, trains=True),
        Method("EEGNet", found["EEGNet"], "network", trains=True),
    ]


def _joined(*texts: str) -> str:
    return "; ".join(filter(None, texts))


def folds_of(corpus: Corpus, *, by_subject: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Divide the labelled subjects into folds; unlabelled windows are in every training set."""
    labelled = np.flatnonzero(corpus.labeled)
    subjects, codes = np.unique(corpus.groups[labelled].astype(str), return_inverse=True)
    n_folds = min(N_FOLDS, len(subjects))
    kind = StratifiedGroupKFold if by_subject else GroupKFold
    split = kind(n_folds, shuffle=True, random_state=0).split(labelled, corpus.y[labelled], codes)
    folds = []
    for _, test in split:
        tested = corpus.windows_of(corpus.groups[labelled[test]].tolist())
        train = np.setdiff1d(np.arange(len(corpus.y)), tested)
        folds.append((train, labelled[test]))
    return folds


def numbers_of_people(corpus: Corpus, folds: Sequence[tuple], *, by_subject: bool) -> list[int]:
    """Return 2, 4, 8, 16, ... as far as the training subjects of every fold reach."""
    most = min(len(corpus.subjects_of(train[corpus.labeled[train]])) for train, _ in folds)
    n_classes = len(set(corpus.y[corpus.labeled].tolist()))
    fewest = 2 * n_classes if by_subject else 2
    return [n for n in (2, 4, 8, 16, 32, 64) if fewest <= n <= most] or [most]


def make_plan(
    corpus: Corpus,
    methods: Sequence[Method],
    folds: Sequence[tuple[np.ndarray, np.ndarray]],
    people: Sequence[int],
    *,
    n_draws: int | None,
    hours: float | None,
) -> pd.DataFrame:
    """Time one fit of each method, and choose the draws and the networks that fit into the hours.

    Classifiers on features always run. Networks take what is left; without ``hours``, they run
    where three draws of one number of people take two minutes at most. The table is described in
    :class:`~braindecode_pars.evaluation.study.Planned`.
    """
    seconds: dict[str, tuple[float, float]] = {}
    refused: dict[str, str] = {}
    with _silent():
        for method in methods:
            try:
                seconds[method.name] = _seconds_of(method, corpus, folds[0], people)
            except ValueError as error:  # such as windows too short, or a single channel
                refused[method.name] = str(error)
    if not seconds:
        raise ValueError(f"No method can be fitted: {next(iter(refused.values()))}")

    def total(method: Method, numbers: Sequence[int], n: int) -> float:
        """Return the seconds of all fits; an untrained encoder is another one in each draw."""
        once, each = seconds[method.name]
        n_encoders = n if method.kind == "untrained" else 1
        return once * len(corpus.y) * n_encoders + each * len(folds) * len(numbers) * n

    timed = [m for m in methods if m.name in seconds]
    on_features = [m for m in timed if not m.trains]
    draws = n_draws or (DRAWS if hours is None else MOST_DRAWS)
    needed = sum(total(m, people, draws) for m in on_features)
    if n_draws is None and hours is not None and needed > 0.6 * 3600 * hours:
        draws = max(5, int(draws * 0.6 * 3600 * hours / needed))
        needed *= draws / MOST_DRAWS
    rows = {m.name: (list(people), draws, "") for m in on_features}
    # With hours, what features and controls leave
    left = NETWORK_MINUTES * 60 if hours is None else hours * 3600 - 1.3 * needed
    fewest = min(FEWEST_DRAWS, draws)
    # A pretrained network and its untrained twin run both, or neither
    networks = [m for m in timed if m.trains]
    pair = [m for m in networks if m.kind != "network"]
    for group in [pair, *([m] for m in networks if m not in pair)]:
        of_draw = sum(len(folds) * seconds[m.name][1] for m in group)
        numbers = list(people)
        if hours is None or len(numbers) * of_draw * fewest > left:
            numbers = [min(people, key=lambda n: abs(n - 4))]
        most = fewest if hours is None else draws
        n, why = int(min(left / max(of_draw * len(numbers), 1e-9), most)), ""
        if n < fewest:
            least = (1.3 * needed + fewest * of_draw) / 3600
            why = f"its fits would take too long; --hours {least:.1f} takes it in"
            numbers, n = [], 0
        left -= n * len(numbers) * of_draw
        rows |= {m.name: (numbers, n, why) for m in group}
    rows |= {name: ([], 0, why) for name, why in refused.items()}
    table = []
    for m in methods:
        numbers, n, why = rows[m.name]
        minutes = total(m, numbers, n) / 60 if n else 0.0
        size = dict(people=numbers, draws=n, fits=len(folds) * len(numbers) * n, minutes=minutes)
        table.append(dict(method=m.name, kind=m.kind, given=m.given) | size | dict(left_out=why))
    return pd.DataFrame(table)


def _seconds_of(
    method: Method, corpus: Corpus, fold: tuple[np.ndarray, np.ndarray], people: Sequence[int]
) -> tuple[float, float]:
    """Return the seconds for the features of a window, and for a fit without them."""
    train, test = fold
    labelled = train[corpus.labeled[train]]
    class_of = classes_of_subjects(corpus)
    people_drawn = draw_subjects(corpus.subjects_of(labelled), max(people), 0, class_of)
    drawn = np.intersect1d(labelled, corpus.windows_of(people_drawn))
    tested = np.intersect1d(test, corpus.windows_of(corpus.groups[test[:1]].tolist()))
    X, y, estimator = corpus.X, corpus.y, with_seed(clone(method.estimator), 0)
    if method.trains:
        return 0.0, _of_training(estimator, "finetune", X[drawn], y[drawn])
    if method.own:  # trained once in a fold, for plain and centred features
        if method.name != OWN:
            return 0.0, 0.02
        _, embedder = embedder_in(estimator)
        return _of_training(embedder, "pretrain", X[train]) * N_FOLDS / len(corpus.y), 0.02
    with features_computed_once():
        first, again = (
            _timed(lambda: clone(estimator).fit(X[drawn], y[drawn]).predict(X[tested]))
            for _ in range(2)
        )
    return max(0.0, first - again) / (len(drawn) + len(tested)), again


def _of_training(estimator: BaseEstimator, phase: str, *data: Any) -> float:
    """Return the seconds of a training, from those of four epochs."""
    short = clone(estimator).set_params(**{f"{phase}_epochs": 4})
    costs = [one.training_cost(*data) for one in (estimator, short)]
    steps = [c.pretraining_steps if phase == "pretrain" else c.finetuning_steps for c in costs]
    return _timed(lambda: short.fit(*data)) * steps[0] / steps[1]


@contextmanager
def _silent() -> Iterator[None]:
    """Keep back what trainings of a few steps log, and that they have learned nothing."""
    log = logging.getLogger("braindecode_pars")
    level = log.level
    log.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        log.setLevel(level)


def _timed(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin
