"""Plan of a study: its methods, numbers of labelled people, draws, and how long they take here."""

import logging
import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from braindecode_pars import pretrained
from braindecode_pars._common import channel_names, checks, files, subjects, training
from braindecode_pars.baselines import CENTRED, make_methods
from braindecode_pars.estimators import (
    PARSClassifier,
    PARSEmbedder,
    fine_tuning,
    linear_probe,
    window_features,
    windows_estimator,
)
from braindecode_pars.evaluation import cache, data_check, random_effects, splitting
from braindecode_pars.pretext import base
from braindecode_pars.windows import Windows

#: Tasks of the encoders that are pretrained within each fold, where none are given.
TASKS = ("pars", "features")
#: What the names of these methods end with, what they are given, and their untrained twin.
OWN, OWN_UNTRAINED = ", own pretraining", "untrained"
_UNLABELLED = "unlabelled windows of all who are not tested"
#: Maximum number of windows in all steps of such a pretraining. After 24,000 windows, the held-out
#: loss of PARS is below 0.8 of chance on the sample of sleep. Features are learned at once.
_OWN_WINDOWS, _OF_FEATURES = 24_000, 10_000
#: Windows that a fit of a network sees at most, and the epochs of published networks, which learn
#: nothing in fewer: EEGNet on the sample of sleep is at chance level after 8, above it after 15.
_NETWORK_WINDOWS, _PUBLISHED_EPOCHS = 3_000, 15
BOUNDS = (
    f"a pretraining sees {_OWN_WINDOWS:,} windows at most (features: {_OF_FEATURES:,}), "
    f"and a fit of a network {_NETWORK_WINDOWS:,} at most"
)
#: Published networks, and methods that need several channels.
_PUBLISHED, _SPATIAL = ("eegnet", "shallow"), ("tangent-space", "shallow")
_SIMPLE = ("band-power", "tangent-space", "classical-features")
#: Folds of subjects; each is tested once in every draw.
N_FOLDS = 2
#: Draws of labelled people of classifiers on features. Networks have a quarter of them, or these.
DRAWS, FEWEST_DRAWS = 6, 3
#: Windows that a training is timed on, and first those that features are; seconds from which more
#: windows are not tried, and from which one number of epochs has to do.
_TIMED, _FIRST, _LONG, _VERY_LONG = 64, 8, 0.2, 5.0
#: Seconds after which further methods are not timed.
_LONGEST = 30.0
#: Fewest windows of each subject to subtract the mean of the subject.
CENTRING_NEEDS = 10
#: Variances of subjects, of draws, and the rest, of the gain of an encoder over an untrained one:
#: rest or arithmetic, four labelled people, 20 draws (``docs/measured/few_labels``).
TYPICAL = {(0,): 0.0077, (1,): 0.0, (0, 1): 0.0249}

#: Seconds of a window from which the encoder of sleep takes part.
SLEEP_SECONDS = 20
#: The format of ``study.json``, what is scored, and the name of guesses in tables of levels.
FORMAT, METRIC, CHANCE = {"study": 1}, "balanced_accuracy", "chance level"


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
    own : str | None
        Task of the encoder that is pretrained for it within each fold.
    """

    name: str
    estimator: BaseEstimator
    kind: str
    twin: str | None = None
    given: str = ""
    trains: bool = False
    own: str | None = None


@dataclass(frozen=True, eq=False)
class Planned:
    """A study that can be run.

    Attributes
    ----------
    windows_ds : Dataset
        Windows of the labelled people.
    corpus : Corpus
        The windows as protocols read them.
    check : DataCheck
        What was found.
    folds : list of (ndarray, ndarray)
        Numbers of the training and test windows of each fold.
    methods : dict of str to Method
        All methods by name, also those that the plan leaves out.
    plan : DataFrame
        A row for each method: ``method``, ``kind``, ``given``, ``people`` (numbers of labelled
        people), ``draws``, ``fits``, ``minutes``, ``left_out`` (the reason, or nothing).
    folder : Path
        Folder of the study.
    about : dict
        What the report names: versions, seeds, digest of the data.
    """

    windows_ds: Any
    corpus: splitting.Corpus
    check: data_check.DataCheck
    folds: list[tuple[np.ndarray, np.ndarray]]
    methods: dict[str, Method]
    plan: pd.DataFrame
    folder: Path
    about: dict[str, Any]

    @property
    def runs(self) -> pd.DataFrame:
        """Rows of the plan for the methods that run, by name."""
        return self.plan[self.plan["left_out"] == ""].set_index("method")

    @property
    def detectable(self) -> float:
        """Difference that 80 % of tests would find, with the variances of rest or arithmetic."""
        n_subjects = len(self.corpus.subjects_of(self.corpus.labeled))
        return random_effects.detectable_in(TYPICAL, (n_subjects, int(self.runs["draws"].max())))


def plan_study(
    windows_ds: Any,
    check: data_check.DataCheck,
    methods: Mapping[str, BaseEstimator] | None = None,
    *,
    out: str | Path,
    encoders: Mapping[str, Any] | None = None,
    tasks: Sequence[str] = TASKS,
    n_train_subjects: Sequence[int] | None = None,
    draws: int = DRAWS,
    dataset: str = "recordings",
    unlabeled_label: Any = "auto",
    verbose: int = 1,
) -> Planned:
    """Choose methods, folds and numbers of people, and time the methods.

    The arguments are those of :func:`~braindecode_pars.evaluation.study`; ``check`` has no stops.
    """
    by_subject = check.by_subject
    corpus = splitting.Corpus.of(windows_ds, dataset, unlabeled_label)
    folds = folds_of(corpus, by_subject=by_subject)
    people = list(n_train_subjects or numbers_of_people(corpus, folds, by_subject=by_subject))
    splitting.check_list("n_train_subjects", people, checks.integer(1))
    for train, _ in folds:  # raises if there are fewer
        splitting.draw_subjects(corpus.subjects_of(train[corpus.labeled[train]]), max(people), 0)
    # Methods, and why others are left out
    usable, reasons = usable_encoders(encoders, corpus)
    n_people = len(corpus.subjects_of(corpus.labeled))
    n_drawn = int(corpus.labeled.sum()) * people_of_networks(people) // n_people
    cannot = unusable(len(corpus.X[0]), n_drawn)
    reasons += [f"The method {name} was left out: {why}." for name, why in cannot.items()]
    counts = pd.Series(corpus.groups.astype(str)).value_counts()
    centred = not by_subject and counts.min() >= CENTRING_NEEDS
    if not centred:
        needs = f"that needs {CENTRING_NEEDS} windows of each"
        why = "every subject has one class, which would be lost" if by_subject else needs
        reasons.append(f"Nothing was centred by subject: {why}.")
    given: dict[str, Any] = dict(tasks=tasks, n_drawn=n_drawn, centred=centred)
    found = study_methods(usable, corpus.X, **given, further=methods or {})
    names = [method.name for method in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"Two methods are called {checks.listed(twice)}; give one of them another name."
        )
    # The plan, that of a study that was interrupted where there is one
    about: dict[str, Any] = dict(
        digest=cache.digest(cache.describe_corpus(corpus)),
        versions=cache.versions(),
        date=time.strftime("%Y-%m-%d"),
        seeds="draws 0, 1, ...; folds and own pretraining 0",
        bounds=BOUNDS,
        left_out=reasons,
    )
    settings = dict(digest=about["digest"], people=people, draws=draws, methods=names)
    folder, before = Path(out).expanduser(), {}
    with suppress(FileNotFoundError, ValueError):  # a damaged plan is made anew
        before = files.read_json(folder / "plan.json")
    if before.get("settings") == settings:
        plan = pd.DataFrame(before["plan"])
    else:
        plan = make_plan(corpus, found, folds, people, draws=draws, verbose=verbose)
    kept = {"settings": settings, "plan": plan.to_dict("records")}
    for name, content in (("study.json", FORMAT), ("plan.json", kept)):
        files.replace_file(folder / name, files.to_json(content))
    named = dict(zip(names, found, strict=True))
    return Planned(windows_ds, corpus, check, folds, named, plan, folder, about)


def check_study(draws: int, tasks: Sequence[str], out: str | Path | None) -> None:
    """Check the arguments of a study, and that its folder has nothing else, before all else."""
    checks.integer(2).check("draws", draws)
    splitting.check_list("tasks", tasks, checks.instance("names of pretext tasks", str))
    for task in tasks:
        base.find_task(task)
    if out is not None:
        folder = Path(out).expanduser()
        files.check_may_write(folder, "a study", is_ours=(folder / "study.json").is_file())


def usable_encoders(
    encoders: Mapping[str, Any] | None, corpus: splitting.Corpus
) -> tuple[dict[str, Any], list[str]]:
    """Return encoders that fit the windows and know none of the people, and why not the others.

    None means those of the package, that of sleep for windows as long as in scoring.
    """
    if encoders is None:
        is_sleep = corpus.X[0].shape[1] >= SLEEP_SECONDS * (corpus.X.sfreq or np.inf)
        encoders = {name: name for name in ("small", "noise", *["pars-sleep"] * is_sleep)}
    usable, reasons = {}, []
    # Numbers such as 17 are in many corpora: only those of a known corpus tell who it is.
    is_known = corpus.X.recordings["corpus"].notna().any()
    for name, encoder in encoders.items():
        card = pretrained.load_encoder(encoder).card
        before = subjects.SubjectKeys(card.seen_subjects if is_known else ())
        seen = [person for person in corpus.people.values() if person in before]
        if card.sfreq not in (None, corpus.X.sfreq):
            reasons.append(
                f"The encoder {name} was left out: it needs {card.sfreq:g} Hz, and the windows "
                f"have {corpus.X.sfreq:g} Hz. Read the recordings with sfreq={card.sfreq:g}."
            )
        elif seen:
            reasons.append(
                f"The encoder {name} was left out: it was pretrained on {len(seen)} of the people."
            )
        else:
            usable[name] = encoder
    return usable, reasons


def study_methods(
    encoders: Mapping[str, Any],
    windows: Windows,
    *,
    tasks: Sequence[str] = TASKS,
    n_drawn: int = 0,
    centred: bool,
    further: Mapping[str, BaseEstimator],
) -> list[Method]:
    """Return the methods of a study, plain and, if they may be, centred by subject.

    Parameters
    ----------
    encoders : dict of str to path or name
        Pretrained encoders by the name of their method.
    windows : Windows
        The windows, for their channels. Of a single one, there is no tangent space.
    tasks : sequence of str
        Pretext tasks of the encoders that are pretrained within each fold. The networks have that
        of the first.
    n_drawn : int
        Labelled windows of a fit of a network.
    centred : bool
        Whether to add each method with the mean of every subject subtracted.
    further : dict of str to estimator
        Methods of the user, as they are.
    """
    found = _on_features(encoders, windows, tasks, by_subject=False)
    for each in _on_features(encoders, windows, tasks, by_subject=True) if centred else ():
        given = (each.given, "unlabelled windows of the test subject")
        found.append(each._replace(given="; ".join(filter(None, given))))
    found += _networks(tasks[0], len(windows[0]), n_drawn)
    return [*found, *(Method(name, each, "simple") for name, each in further.items())]


def unusable(n_chans: int, n_drawn: int = 0) -> dict[str, str]:
    """Return why methods are left out, by their name for ``make_methods``."""
    found = {}
    if n_drawn * _PUBLISHED_EPOCHS > _NETWORK_WINDOWS:
        why = f"its {_PUBLISHED_EPOCHS} epochs would see more than {_NETWORK_WINDOWS:,} windows"
        found = dict.fromkeys(_PUBLISHED, why)
    return found | (
        dict.fromkeys(_SPATIAL, "it needs at least two channels") if n_chans == 1 else {}
    )


def _on_features(
    encoders: Mapping[str, Any], windows: Windows, tasks: Sequence[str], *, by_subject: bool
) -> list[Method]:
    """Return linear classifiers of features: simple ones, and of each encoder beside its twin."""
    mark = CENTRED if by_subject else ""
    how: dict[str, Any] = dict(subject_centering=by_subject, C=linear_probe.DEFAULT_C)
    simple = make_methods([n for n in _SIMPLE if n not in unusable(len(windows[0]))], **how)
    channels = channels_of_slow_voltages(windows) if windows.chs_info else None
    simple |= make_methods(["slow-voltages"], subject_centering=by_subject, channels=channels)
    found = [Method(name, estimator, "simple") for name, estimator in simple.items()]
    twins: dict[str, str] = {}
    for name, encoder in encoders.items():
        loaded = pretrained.load_encoder(encoder)
        names = ["probe", "random-encoder"]
        probe, untrained, *_ = make_methods(names, encoder={name: encoder}, **how).values()
        size = str(loaded.encoder.config)
        if size not in twins:
            twins[size] = f"{OWN_UNTRAINED} as {name}{mark}"
            found.append(Method(twins[size], untrained, "untrained"))
        source = "recordings of other people" if loaded.card.subjects else "synthetic signals"
        given = f"an encoder of {source}"
        found.append(Method(name + mark, probe, "pretrained", twins[size], given))
    [own] = make_methods(["random-encoder"], **how).values()
    twin = OWN_UNTRAINED + mark
    found.append(Method(twin, own, "untrained"))
    for task in tasks:
        name = shown_task(task) + OWN + mark
        found.append(Method(name, own, "pretrained", twin, _UNLABELLED, own=task))
    if "small" in encoders:
        [(name, vote)] = make_methods(["few-labels"], **how).items()
        found.append(Method(name, vote, "vote", given="the encoder small"))
    return found


def shown_task(task: str) -> str:
    """Return the name of a pretext task in tables: PARS, MAE, features, Slope of my_task.py:Slope.

    Raises
    ------
    ValueError
        When the task is unknown.
    """
    name = base.find_task(task).__name__
    return name if name.lower() == task.lower() else task.rpartition(":")[2]


def _windows_seen(task: str) -> int:
    return _OF_FEATURES if task == "features" else _OWN_WINDOWS


def own_encoder(task: str) -> PARSEmbedder:
    """Return the embedder that is pretrained on the training subjects of a fold."""
    steps = math.ceil(_windows_seen(task) / PARSEmbedder.pretrain_batch_size)
    return PARSEmbedder(task, pretrain_max_steps=steps, random_state=0, verbose=0)


def channels_of_slow_voltages(windows: Windows) -> list[str] | None:
    """Return None where there is a frontal channel, and else all that the recordings share."""
    names = [[n for n in each.names if n not in each.bads] for each in windows.montages]
    common = [name for name in names[0] if all(name in others for others in names)]
    frontal = channel_names.match_channels(window_features.FRONTAL, common)
    return None if any(place is not None for place in frontal) else common


def _networks(task: str, n_chans: int, n_drawn: int) -> list[Method]:
    """Return networks from scratch, and from an own pretraining: frozen and all weights trained."""
    most = max(1, _NETWORK_WINDOWS // max(n_drawn, 1))
    how: dict[str, Any] = dict(head="auto", verbose=0)
    how |= dict(finetune_epochs=None if most >= fine_tuning.EPOCHS else most)
    frozen = how | dict(freeze_encoder=True)
    # A given encoder is trained as a new one is.
    trained = how | dict(freeze_encoder=False, head_epochs=0, encoder_lr_factor=1.0)
    name, untrained = f"{shown_task(task)} network", "untrained network, frozen"
    own: Any = dict(kind="pretrained", given=_UNLABELLED, own=task)
    published = [name for name in _PUBLISHED if name not in unusable(n_chans, n_drawn)]
    further = make_methods(published, finetune_epochs=_PUBLISHED_EPOCHS)
    found = [
        Method("scratch", PARSClassifier(None, **trained), "untrained"),
        Method(untrained, PARSClassifier(None, **frozen), "untrained"),
        Method(f"{name}, frozen", PARSClassifier(None, **frozen), twin=untrained, **own),
        Method(f"{name}, all weights", PARSClassifier(None, **trained), twin="scratch", **own),
        *(Method(n, estimator, "network") for n, estimator in further.items()),
    ]
    return [method._replace(trains=True) for method in found]


def folds_of(corpus: splitting.Corpus, *, by_subject: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Divide the labelled subjects into folds; unlabelled windows are in every training set."""
    labelled = np.flatnonzero(corpus.labeled)
    subjects, codes = np.unique(corpus.groups[labelled].astype(str), return_inverse=True)
    n_folds = min(N_FOLDS, len(subjects))
    kind = StratifiedGroupKFold if by_subject else GroupKFold
    split = kind(n_folds, shuffle=True, random_state=0).split(labelled, corpus.y[labelled], codes)
    folds = []
    for _, test in split:
        tested = corpus.rows_of(corpus.groups[labelled[test]].tolist())
        train = np.setdiff1d(np.arange(len(corpus.y)), tested)
        folds.append((train, labelled[test]))
    return folds


def numbers_of_people(
    corpus: splitting.Corpus, folds: Sequence[tuple], *, by_subject: bool
) -> list[int]:
    """Return 2, 4, 8, 16, ... as far as the training subjects of every fold reach."""
    most = min(len(corpus.subjects_of(train[corpus.labeled[train]])) for train, _ in folds)
    n_classes = len(set(corpus.y[corpus.labeled].tolist()))
    fewest = 2 * n_classes if by_subject else 2
    return [n for n in (2, 4, 8, 16, 32, 64) if fewest <= n <= most] or [most]


def people_of_networks(people: Sequence[int]) -> int:
    """Return the number of labelled people that networks are fitted with: that next to four."""
    return min(people, key=lambda n: abs(n - 4))


def make_plan(
    corpus: splitting.Corpus,
    methods: Sequence[Method],
    folds: Sequence[tuple[np.ndarray, np.ndarray]],
    people: Sequence[int],
    *,
    draws: int = DRAWS,
    verbose: int = 0,
) -> pd.DataFrame:
    """Time each method on few windows and steps for a minute, and say how many fits it has.

    Networks have a quarter of the draws, three at least, and one number of people: that next to
    four. The table is described in :class:`Planned`.
    """
    bar = training.ProgressBar(methods, desc="timing", unit=" methods", disable=not verbose)
    timed: dict[str, tuple[float, float, float]] = {}
    table, begin, few = [], time.perf_counter(), people_of_networks(people)
    for method in bar:
        numbers, n_draws, minutes, why = list(people), draws, 0.0, ""
        if method.trains:  # of two draws, an interval can be from 0 to 1
            numbers, n_draws = [few], min(draws, max(FEWEST_DRAWS, draws // 4))
        try:
            seconds = (math.nan,) * 3
            if plain := timed.get(method.name.removesuffix(CENTRED)):  # the centred come later
                seconds = 0.0, 0.0, plain[2]
            elif time.perf_counter() - begin <= _LONGEST:
                with _silent():
                    seconds = _seconds_of(method, corpus, folds[0], max(numbers))
            own, features, fit = timed[method.name] = seconds
            # An untrained encoder is another one in each draw, and an own one in each fold.
            n_encoders = {"untrained": n_draws, "pretrained": len(folds) if method.own else 1}
            fits = len(folds) * n_draws * sum(numbers) / max(numbers)
            features *= n_encoders.get(method.kind, 1)
            minutes = (own * len(folds) + features + fit * fits) / 60
        except Exception as error:  # such as windows too short
            numbers, n_draws, why = [], 0, str(error)
        row = dict(method=method.name, kind=method.kind, given=method.given, people=numbers)
        row |= dict(draws=n_draws, fits=len(folds) * len(numbers) * n_draws, minutes=minutes)
        table.append(row | dict(left_out=why))
    plan = pd.DataFrame(table)
    if (plan["left_out"] != "").all():
        raise ValueError(f"No method can be fitted: {plan['left_out'].iloc[0]}")
    return plan


def _seconds_of(
    method: Method, corpus: splitting.Corpus, fold: tuple[np.ndarray, np.ndarray], n: int
) -> tuple[float, float, float]:
    """Return the seconds of a pretraining, of the features of all windows, and of a fit on them.

    The fit has the labels of ``n`` people. All are scaled up from few windows and epochs.
    """
    train, _ = fold
    labelled = train[corpus.labeled[train]]
    class_of = splitting.classes_of_subjects(corpus)
    people = splitting.draw_subjects(corpus.subjects_of(labelled), n, 0, class_of)
    drawn = np.intersect1d(labelled, corpus.rows_of(people))
    # Classes take turns, so that few windows have all.
    shuffled = np.random.default_rng(0).permutation(drawn)
    turns = pd.Series(corpus.y[shuffled]).groupby(corpus.y[shuffled]).cumcount()
    drawn = shuffled[np.argsort(turns, kind="stable")]
    X, y, estimator = corpus.X, corpus.y, splitting.with_seed(clone(method.estimator), 0)
    if method.trains:
        steps = math.ceil(len(drawn) / estimator.finetune_batch_size)
        epochs = estimator.finetune_epochs or training.default_epochs(
            fine_tuning.EPOCHS, fine_tuning.STEPS, steps
        )
        return 0.0, 0.0, _time_training(estimator, "finetune", epochs, X[drawn], y[drawn])
    own = 0.0
    if method.own:
        encoder = own_encoder(method.own).set_params(pretrain_max_steps=None)
        epochs = _windows_seen(method.own) / len(train)
        own = _time_training(encoder, "pretrain", epochs, X[train])
    rows, points = drawn[: max(_FIRST, 2 * len(set(y[drawn].tolist())))], []
    while True:
        few = X[rows], y[rows]
        with windows_estimator.features_computed_once():
            first, again = _timed(estimator, *few), _timed(estimator, *few)
        points.append((len(rows), first - again, again))
        if len(rows) == len(drawn) or (first > _LONG and len(points) > 1):
            break
        rows = drawn[: 4 * len(rows)]
    sizes, features, fits = zip(*points, strict=True)
    return own, _extended(sizes, features, len(y)), _extended(sizes, fits, len(drawn))


def _time_training(
    estimator: BaseEstimator, phase: str, epochs: float, X: Windows, *y: np.ndarray
) -> float:
    """Return the seconds of a training, from those of one and of four epochs of few windows."""
    few: Any = [X[:_TIMED], *(labels[:_TIMED] for labels in y)]
    size = round(epochs * len(X))
    one, four = (clone(estimator).set_params(**{f"{phase}_epochs": n}) for n in (1, 4))
    if (first := _timed(one, *few)) > _VERY_LONG:
        return _extended([len(few[0])], [first], size)
    seconds = _timed(one, *few), _timed(four, *few)  # the first one was to warm up
    return _extended([len(few[0]), 4 * len(few[0])], seconds, size)


def _extended(sizes: Sequence[float], seconds: Sequence[float], size: int) -> float:
    """Return the seconds for a larger size, along a line through the last two sizes."""
    if len(sizes) == 1:
        return max(0.0, seconds[0]) * size / sizes[0]
    slope = max(0.0, seconds[-1] - seconds[-2]) / (sizes[-1] - sizes[-2])
    return max(0.0, seconds[-1]) + slope * (size - sizes[-1])


def _timed(estimator: BaseEstimator, X: Windows, *y: np.ndarray) -> float:
    """Return the seconds of a fit and, where there are labels, of predictions."""
    begin = time.perf_counter()
    fitted = clone(estimator).fit(X, *y)
    if y:
        fitted.predict(X)
    return time.perf_counter() - begin


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
