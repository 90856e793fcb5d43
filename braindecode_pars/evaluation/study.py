"""Does pretraining help on these recordings? Look at them, plan, run, doubt, and answer."""

from __future__ import annotations

import logging
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from torch.utils.data import Dataset

import braindecode_pars
from braindecode_pars._common.checks import instance, integer, listed
from braindecode_pars._common.files import (
    check_may_write,
    read_checked,
    read_json,
    replace_file,
    to_json,
)
from braindecode_pars._common.model_files import packaged_names
from braindecode_pars._common.tables import POOLED, SCORES
from braindecode_pars.baselines import CENTRED
from braindecode_pars.estimators import FewLabelsClassifier, PARSClassifier
from braindecode_pars.estimators.window_features import LogBandPower
from braindecode_pars.evaluation.audits import R2, audit_encoder
from braindecode_pars.evaluation.cache import describe_corpus, digest
from braindecode_pars.evaluation.controls import control_gains, controls, describe_controls
from braindecode_pars.evaluation.corpus import Corpus, check_list
from braindecode_pars.evaluation.data_check import DataCheck, check_data
from braindecode_pars.evaluation.folds import FoldError, collected, seen_by
from braindecode_pars.evaluation.metrics import score_predictions
from braindecode_pars.evaluation.paired_tests import holm, paired_tests
from braindecode_pars.evaluation.protocols import label_efficiency
from braindecode_pars.evaluation.random_effects import detectable_in
from braindecode_pars.evaluation.splitting import draw_subjects
from braindecode_pars.evaluation.study_answer import ahead, answer_of
from braindecode_pars.evaluation.study_plan import (
    BOUNDS,
    CENTRING_NEEDS,
    DRAWS,
    TASKS,
    TYPICAL,
    Method,
    embedder_in,
    folds_of,
    make_plan,
    numbers_of_people,
    own_encoder,
    people_of_networks,
    study_methods,
    unusable,
)
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.windows.labels import names_of_classes
from braindecode_pars.windows.once import features_computed_once

#: Draws of the controls: each is a comparison of its own.
CONTROL_DRAWS = 4
#: Windows on which the features of an encoder are audited.
AUDIT_WINDOWS = 300
#: A simple method with this share of the way from chance level to a perfect score is controlled:
#: of two classes, a balanced accuracy of .95.
TOO_GOOD = 0.9
#: Seconds of a window from which the encoder of sleep takes part.
SLEEP_SECONDS = 20
CHANCE = "chance level"
METRIC = "balanced_accuracy"
_FORMAT = {"study": 1}
#: The tests where no pretrained method could be fitted.
NO_TESTS = pd.DataFrame(
    columns=["method_a", "method_b", "n_train_subjects", "question", "mean_difference", "p"]
)


@dataclass(frozen=True, eq=False)
class Study:
    """What a study found.

    Attributes
    ----------
    dataset, metric : str
        Names of the recordings and of the metric.
    check : DataCheck
        What was found in the recordings, and what is odd.
    plan : DataFrame
        A row for each method: ``method``, ``kind``, ``given`` (beside the labelled people),
        ``people`` (numbers of labelled people), ``draws``, ``fits``, ``minutes`` and ``left_out``
        (why, or nothing), also of a method that failed.
    scores : DataFrame
        Tidy scores, as of :func:`~braindecode_pars.evaluation.label_efficiency`.
    levels : DataFrame
        Mean of each method and number of people, with its interval of 95 %, cut at 0 and 1, and the
        test against chance level.
    tests : DataFrame
        Rows as of :func:`~braindecode_pars.evaluation.paired_tests`, with ``n_train_subjects`` and
        ``question``: "pretraining" (against the same method with an encoder that was not trained)
        or "baseline" (against the best simple method). Holm's correction is over all rows with one
        number of people.
    controls : DataFrame | None
        What the controls leave of each gain, see
        :func:`~braindecode_pars.evaluation.control_gains`.
    doubts : list of str
        What controls and audits say, in sentences.
    answer : str
        The answer in a sentence or two, with its interval.
    best : str
        Method with the highest mean at the largest number of labelled people.
    confusion : DataFrame
        True and predicted classes of the best method, all draws.
    people : DataFrame | None
        Where each subject has one class: decisions by person with most labelled people, by the
        mean probability of the windows. For each method ``right`` of ``people``,
        ``balanced_accuracy`` and ``auroc``, means of the draws; the best method first.
    decided : DataFrame
        True and decided class of each person by that method, all draws.
    about : dict
        Digest of the data, versions, seeds and the like.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import study
    >>> found = study(datasets.mental_arithmetic(["Subject00", "Subject01"]))  # too few people
    >>> found.answer.split(".")[0], len(found.scores)
    ('There is no answer', 0)
    """

    dataset: str
    metric: str
    check: DataCheck
    plan: pd.DataFrame = field(default_factory=pd.DataFrame)
    scores: pd.DataFrame = field(default_factory=pd.DataFrame)
    levels: pd.DataFrame = field(default_factory=pd.DataFrame)
    tests: pd.DataFrame = field(default_factory=pd.DataFrame)
    controls: pd.DataFrame | None = None
    doubts: list[str] = field(default_factory=list)
    answer: str = ""
    best: str = ""
    confusion: pd.DataFrame = field(default_factory=pd.DataFrame)
    people: pd.DataFrame | None = None
    decided: pd.DataFrame = field(default_factory=pd.DataFrame)
    about: dict[str, Any] = field(default_factory=dict)

    def report(self, path: str | Path) -> Path:
        """Write a page for readers who know EEG, without scripts or other files.

        Parameters
        ----------
        path : path
            File, or folder for ``report.html``.

        Returns
        -------
        Path
            The file.
        """
        from braindecode_pars.evaluation.study_report import write_report  # draws figures

        return write_report(self, path)


def study(
    windows_ds: Dataset,
    methods: Mapping[str, BaseEstimator] | None = None,
    *,
    encoders: Mapping[str, Any] | None = None,
    tasks: Sequence[str] = TASKS,
    n_train_subjects: Sequence[int] | None = None,
    draws: int = DRAWS,
    dataset: str = "recordings",
    unlabeled_label: Any = "auto",
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> Study:
    """Find out whether pretraining helps to classify these windows.

    It looks at the data, and ends with the reason where no answer is possible. It then compares, on
    the same held-out people and with the labels of the same few others: simple methods, encoders
    that were pretrained, the same encoders without pretraining, encoders that are pretrained on the
    people who are not tested, a vote, and networks. What is ahead is compared once more on windows
    that lack one thing (:func:`controls`). All but the networks have plain features, and features
    centred by subject. A method that fails is left out and named.

    Parameters
    ----------
    windows_ds : BaseConcatDataset
        Labelled windows with ``subject`` in the descriptions; also of people without labels.
    methods : dict of str to estimator | None
        Further methods, which take part as simple ones.
    encoders : dict of str to path, name or fitted estimator | None
        Pretrained encoders by the name of their method. None means ``small`` and ``noise`` of the
        package, and ``pars-sleep``, if it has that, for windows of 20 s or more.
    tasks : sequence of str
        Pretext tasks of the encoders that are pretrained in the study, on the people who are not
        tested. Networks have the encoder of the first.
    n_train_subjects : sequence of int | None
        Numbers of labelled people. None means 2, 4, 8, ... as far as there are people; where each
        has one class, at least two of each class.
    draws : int
        Draws of labelled people. Networks have a quarter of them, three at least, with one number
        of people.
    dataset : str
        Name of the recordings in tables and figures.
    unlabeled_label
        As in :func:`~braindecode_pars.evaluation.label_efficiency`.
    n_jobs : int | None
        Processes for the fits of networks, as in
        :func:`~braindecode_pars.evaluation.label_efficiency`.
    out : path | None
        Folder for ``scores.csv``, ``tests.csv``, ``study.json`` and all that is finished, from
        which the same call goes on after an interruption, and ``model``, a classifier of all
        labelled people.
    verbose : int
        Verbosity; 1 shows progress bars.

    Returns
    -------
    Study

    Raises
    ------
    ValueError
        When two methods have one name, there are fewer people than ``n_train_subjects``, no method
        can be fitted, an encoder or a task is unknown, or ``out`` has something else.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import study
    >>> found = study(datasets.mental_arithmetic())  # doctest: +SKIP
    >>> print(found.answer)  # doctest: +SKIP
    >>> found.report("study.html")  # doctest: +SKIP
    """
    compared: dict[str, Any] = dict(encoders=encoders, tasks=tasks, draws=draws)
    named: dict[str, Any] = dict(dataset=dataset, unlabeled_label=unlabeled_label, out=out)
    named |= dict(n_train_subjects=n_train_subjects, verbose=verbose)
    begun = begin_study(windows_ds, methods, **compared, **named)
    return begun if isinstance(begun, Study) else begun.run(n_jobs=n_jobs, verbose=verbose)


def begin_study(
    windows_ds: Dataset,
    methods: Mapping[str, BaseEstimator] | None = None,
    *,
    encoders: Mapping[str, Any] | None = None,
    tasks: Sequence[str] = TASKS,
    n_train_subjects: Sequence[int] | None = None,
    draws: int = DRAWS,
    dataset: str = "recordings",
    unlabeled_label: Any = "auto",
    out: str | Path | None = None,
    verbose: int = 1,
) -> Study | Planned:
    """Look at the data and plan; a study that cannot be answered ends here."""
    integer(2).check("draws", draws)
    check_list("tasks", tasks, instance("names of pretext tasks", str))
    folder = None if out is None else Path(out).expanduser()
    if folder is not None:
        check_may_write(folder, "a study", is_ours=(folder / "study.json").is_file())
    check = check_data(windows_ds)
    if check.stops:
        answer = f"There is no answer. {' '.join(check.stops)}"
        found = Study(dataset, METRIC, check, answer=answer)
        if folder is not None:
            replace_file(folder / "study.json", to_json(_FORMAT | {"answer": answer}))
        return found
    corpus = Corpus.of(windows_ds, dataset, unlabeled_label)
    folds = folds_of(corpus, by_subject=check.by_subject)
    people = list(n_train_subjects or numbers_of_people(corpus, folds, by_subject=check.by_subject))
    check_list("n_train_subjects", people, integer(1))
    for train, _ in folds:  # raises if there are fewer
        draw_subjects(corpus.subjects_of(train[corpus.labeled[train]]), max(people), 0)
    counts = pd.Series(corpus.groups.astype(str)).value_counts()
    may_centre = not check.by_subject and counts.min() >= CENTRING_NEEDS
    known, reasons = _usable(_default_encoders(corpus) if encoders is None else encoders, corpus)
    n_people = len(corpus.subjects_of(corpus.labeled))
    n_drawn = int(corpus.labeled.sum()) * people_of_networks(people) // n_people
    given: dict[str, Any] = dict(tasks=tasks, n_drawn=n_drawn, centred=may_centre)
    found_methods = study_methods(known, corpus.X, **given, further=methods or {})
    names = [method.name for method in found_methods]
    cannot = unusable(len(corpus.X[0]), n_drawn)
    reasons += [f"The method {name} was left out: {why}." for name, why in cannot.items()]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"Two methods are called {listed(twice)}; give one of them another name.")
    if not may_centre:
        needs = f"that needs {CENTRING_NEEDS} windows of each"
        why = "every subject has one class, which would be lost" if check.by_subject else needs
        reasons.append(f"Nothing was centred by subject: {why}.")
    packages = (braindecode_pars, torch, sklearn)
    about: dict[str, Any] = dict(
        digest=digest(describe_corpus(corpus)),
        versions={package.__name__: package.__version__ for package in packages},
        date=str(date.today()),
        seeds="draws 0, 1, ...; folds and own pretraining 0",
        bounds=BOUNDS,
        left_out=reasons,
    )
    settings = dict(digest=about["digest"], people=people, draws=draws, methods=names)
    before: dict[str, Any] = {}
    if folder is not None:
        with suppress(FileNotFoundError, ValueError):  # a damaged plan is made anew
            before = read_json(folder / "plan.json")
    if before.get("settings") == settings:  # of a study that was interrupted
        plan = pd.DataFrame(before["plan"])
    else:
        plan = make_plan(corpus, found_methods, folds, people, draws=draws, verbose=verbose)
    if folder is not None:
        rows = plan.to_dict("records")
        replace_file(folder / "study.json", to_json(_FORMAT))
        replace_file(folder / "plan.json", to_json({"settings": settings, "plan": rows}))
    named = dict(zip(names, found_methods, strict=True))
    return Planned(windows_ds, corpus, check, folds, named, plan, folder, about)


def _default_encoders(corpus: Corpus) -> dict[str, str]:
    """Return names of encoders in the package, that of sleep for windows as long as in scoring."""
    is_sleep = corpus.X[0].shape[1] >= SLEEP_SECONDS * (corpus.X.sfreq or np.inf)
    of_sleep = [name for name in packaged_names() if name == "pars-sleep" and is_sleep]
    return {name: name for name in ("small", "noise", *of_sleep)}


def _usable(encoders: Mapping[str, Any], corpus: Corpus) -> tuple[dict[str, Any], list[str]]:
    """Return encoders that fit the windows and know none of the people, and why not the others."""
    usable, reasons = {}, []
    for name, encoder in encoders.items():
        card = load_encoder(encoder).card
        # Numbers such as 17 are in many corpora: only those of a known corpus tell who it is.
        is_known = corpus.X.recordings["corpus"].notna().any()
        seen = seen_by([card], corpus.people) if is_known else []
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


@dataclass(eq=False)
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
    folder : Path | None
        Folder of the study.
    about : dict
        What the report names: versions, seeds, digest of the data.
    """

    windows_ds: Dataset
    corpus: Corpus
    check: DataCheck
    folds: list[tuple[np.ndarray, np.ndarray]]
    methods: dict[str, Method]
    plan: pd.DataFrame
    folder: Path | None
    about: dict[str, Any]
    # Set by run: folder of what is finished, arguments of protocols, folders of the scores, and why
    # methods failed.
    out: Path = field(init=False)
    n_jobs: int | None = field(init=False)
    options: dict[str, Any] = field(init=False)
    places: list[Path] = field(init=False, default_factory=list)
    failed: dict[str, str] = field(init=False, default_factory=dict)

    @property
    def runs(self) -> pd.DataFrame:
        """Rows of the plan for the methods that run, by name."""
        return self.plan[self.plan["left_out"] == ""].set_index("method")

    @property
    def detectable(self) -> float:
        """Difference that 80 % of tests would find, with the variances of rest or arithmetic."""
        n_subjects = len(self.corpus.subjects_of(self.corpus.labeled))
        return detectable_in(TYPICAL, (n_subjects, int(self.runs["draws"].max())))

    def run(self, *, n_jobs: int | None = None, verbose: int = 1) -> Study:
        """Score all methods, control those that are ahead, and answer."""
        self.n_jobs = n_jobs
        self.options = dict(dataset=self.corpus.name, unlabeled_label=self.corpus.unlabeled_label)
        self.options |= dict(metrics=[METRIC], equal_sizes=False, verbose=verbose)
        place: Any = nullcontext(self.folder)
        if self.folder is None:
            place = tempfile.TemporaryDirectory(prefix="braindecode-pars-study-")
        told: list[str] = []
        with place as out:
            self.out = Path(out)
            with _said_once(told):
                found = self._found(self._scores())
            self.about["warnings"] = [*self.about.get("warnings", []), *told]
            found = replace(found, plan=self.plan, about=self.about)
            return found if self.folder is None else self._saved(found, self.folder)

    def _found(self, scores: pd.DataFrame) -> Study:
        """Judge the scores, doubt what is ahead, and look at what the best method confuses."""
        if scores.empty:
            answer = f"There is no answer. Every method failed: {next(iter(self.failed.values()))}."
            levels = pd.DataFrame(columns=["method", "n_train_subjects", "mean"])
            return Study(self.corpus.name, METRIC, self.check, levels=levels, answer=answer)
        found = self._judged(scores)
        left, doubts = self._doubt(found)
        doubts = [text.replace(CENTRED, " (centred by subject)") for text in doubts]
        found = replace(found, scores=scores, controls=left, doubts=doubts)
        found = replace(found, confusion=self._confusion(found.best))
        if not self.check.by_subject:
            return found
        decisions = self._decisions()
        people = self._people(decisions)
        best = people.iloc[0]
        answer = (
            f"{found.answer} By person, with the mean probability of the windows, {best['method']} "
            f"decides best: {best['right']:.3g} of {best['people']:.0f} people are right (mean of "
            f"the draws), balanced accuracy {best['balanced_accuracy']:.3f}, AUROC "
            f"{best['auroc']:.3f}."
        ).replace(CENTRED, " (centred by subject)")
        decided = decisions.loc[decisions["method"] == best["method"], ["true", "predicted"]]
        return replace(found, answer=answer, people=people, decided=self._named(decided))

    def _scores(self) -> pd.DataFrame:
        """Score every method: those of one kind together, and in each fold those of its encoder."""
        tables: list[pd.DataFrame] = [pd.DataFrame(columns=SCORES)]
        groups: dict[tuple, list[Method]] = {}
        for method in (self.methods[name] for name in self.runs.index):
            kind = "networks" if method.trains else "features"
            groups.setdefault((kind, method.own), []).append(method)
        for (kind, task), group in groups.items():
            people, draws = self.runs.loc[group[0].name, ["people", "draws"]]
            for k in [None] if task is None else range(len(self.folds)):
                parts = [kind] if k is None else [kind, task.replace("/", "-"), str(k)]
                self.places.append(self.out / "-".join(parts))
                how: dict[str, Any] = dict(n_train_subjects=people, seeds=range(draws))
                # Processes would not share features, most of the work of the others.
                how |= dict(n_jobs=self.n_jobs if kind == "networks" else None)
                tables += self._in_folds(group, k, out=self.places[-1], **how)
        for name, why in self.failed.items():
            self.plan.loc[self.plan["method"] == name, "left_out"] = f"failed ({why})"
        scores = pd.concat(tables, ignore_index=True).astype({"value": float})
        return scores[~scores["method"].isin(list(self.failed))].reset_index(drop=True)

    def _in_folds(self, group: list[Method], k: int | None, **how: Any) -> list[pd.DataFrame]:
        """Score methods in all folds, or with the encoders of one; note those that fail."""
        how |= dict(cv=self.folds if k is None else [self.folds[k]], **self.options)
        with features_computed_once():
            while group := [m for m in group if m.name not in self.failed]:
                try:
                    estimators = {m.name: self._with_own(m, k) for m in group}
                    return [label_efficiency(estimators, self.windows_ds, **how)]
                except FoldError as error:
                    names = [m.name for m in group if error.method in (m.name, None)]
                    self.failed |= dict.fromkeys(names, error.reason)
        return []

    def _with_own(self, method: Method, k: int | None) -> BaseEstimator:
        """Return the method with the encoder of a fold, or of all people, pretrained if need be."""
        if method.own is None:
            return method.estimator
        of = "all" if k is None else f"fold-{k}"
        task = method.own.replace("/", "-")
        folder = self.out / "encoders" / f"{self.about['digest']}-{task}-{of}"
        if not (folder / "encoder.json").exists():
            train = np.arange(len(self.corpus.y)) if k is None else self.folds[k][0]
            try:
                own_encoder(method.own, len(train)).fit(self.corpus.X[train]).save(folder)
            except Exception as error:
                raise FoldError.of(f"The pretraining with {method.own}", error) from error
        parts = method.estimator.get_params()
        name = next(key for key in parts if key.rpartition("__")[2] == "encoder")
        return clone(method.estimator).set_params(**{name: str(folder)})

    def _judged(self, scores: pd.DataFrame) -> Study:
        """Test against chance level, untrained encoders and the best simple method, and answer."""
        rows = self._weighted(scores[scores["subject"] != POOLED])
        n_classes = len(set(self.corpus.y[self.corpus.labeled].tolist()))
        levels, tests = [], []
        for n, of_n in rows.groupby("n_train_subjects"):
            chance = of_n[of_n["method"] == of_n["method"].iloc[0]]
            chance = chance.assign(method=CHANCE, value=1 / n_classes)
            against = paired_tests(pd.concat([of_n, chance]), METRIC, against=CHANCE)
            levels.append(against.assign(n_train_subjects=n))
            means = of_n.groupby("method")["value"].mean()
            for name in means.index:
                if self.methods[name].kind not in ("pretrained", "vote"):
                    continue
                simple = [
                    other
                    for other in means.index
                    if self.methods[other].kind == "simple"
                    and other.endswith(CENTRED) == name.endswith(CENTRED)
                ]
                pairs = [("baseline", means[simple].idxmax())] if simple else []
                if self.methods[name].twin in means.index:
                    pairs.append(("pretraining", self.methods[name].twin))
                for question, other in pairs:
                    pair = of_n[of_n["method"].isin([name, other])]
                    test = paired_tests(pair, METRIC, against=other)
                    tests.append(test.assign(n_train_subjects=n, question=question))
        level = pd.concat(levels, ignore_index=True)
        level = level.rename(columns={"method_a": "method", "mean_difference": "mean"})
        level[["mean", "ci_low", "ci_high"]] += 1 / n_classes
        level[["ci_low", "ci_high"]] = level[["ci_low", "ci_high"]].clip(0, 1)
        level["p_holm"] = holm(level["p"])
        level = level[["method", "n_train_subjects", "mean", "ci_low", "ci_high", "p", "p_holm"]]
        test = pd.concat(tests, ignore_index=True) if tests else NO_TESTS.copy()
        test["p_holm"] = test.groupby("n_train_subjects")["p"].transform(holm)
        level.attrs = test.attrs = {}
        largest = level[level["n_train_subjects"] == level["n_train_subjects"].max()]
        best = str(largest.loc[largest["mean"].idxmax(), "method"])
        answer = answer_of(level, test, 1 / n_classes)
        if self.failed:
            answer += f" Failed, and without a score: {listed(list(self.failed))}."
        given = self.corpus.name, METRIC, self.check
        return Study(*given, levels=level, tests=test, answer=answer, best=best)

    def _weighted(self, scores: pd.DataFrame) -> pd.DataFrame:
        """Weigh subjects that have one class each so that every class counts the same."""
        if not self.check.by_subject:
            return scores
        labelled = self.corpus.labeled
        people = self.corpus.groups[labelled].astype(str)
        labels = pd.Series(self.corpus.y[labelled], people).groupby(level=0).first()
        weights = len(labels) / (labels.nunique() * labels.map(labels.value_counts()))
        return scores.assign(value=scores["value"] * scores["subject"].astype(str).map(weights))

    def _doubt(self, judged: Study) -> tuple[pd.DataFrame | None, list[str]]:
        """Repeat comparisons on windows that lack one thing each.

        They are those of what is ahead of its untrained twin, and of a simple method that is nearly
        perfect with chance level.
        """
        methods, tests, levels = self.methods, judged.tests, judged.levels
        largest = self.runs["people"].map(max).max()
        of_largest = tests["n_train_subjects"] == largest
        helped = tests[ahead(tests) & (tests["question"] == "pretraining") & of_largest]["method_a"]
        names = [name for name in helped if not methods[name].trains]
        sentences = [
            f"The controls were not run for {name}, whose fits take long."
            for name in helped
            if methods[name].trains
        ]
        groups = {
            twin: [methods[name] for name in names if methods[name].twin == twin] + [methods[twin]]
            for twin in dict.fromkeys(str(methods[name].twin) for name in names)
        }
        chance, means = 1 / len(self.check.classes), levels.set_index("method")["mean"]
        means = means[(levels["n_train_subjects"] == largest).to_numpy()]
        means = means[[methods[name].kind == "simple" for name in means.index]]
        if len(means) and means.max() > chance + TOO_GOOD * (1 - chance):
            guess = Method(CHANCE, make_pipeline(LogBandPower(), DummyClassifier()), "simple")
            groups[CHANCE] = [methods[str(means.idxmax())], guess]
        gains: list[pd.DataFrame] = []
        warned: list[tuple] = []
        for against, group in groups.items():
            folds = range(len(self.folds)) if any(m.own for m in group) else [None]
            name = against.replace(",", "").replace(" ", "-")
            how: dict[str, Any] = dict(n_train_subjects=[largest], **self.options)
            how |= dict(seeds=range(min(CONTROL_DRAWS, self.runs["draws"][group[0].name])))
            found = []
            try:
                for k in folds:
                    estimators = {m.name: self._with_own(m, k) for m in group}
                    how["cv"] = self.folds if k is None else [self.folds[k]]
                    how["out"] = self.out / "controls" / (name if k is None else f"{name}-{k}")
                    with collected(warned):  # that a control is not possible is in the report
                        found.append(controls(estimators, self.windows_ds, **how))
            except FoldError as error:
                sentences.append(f"The controls of gains over {against} failed: {error.reason}.")
                continue
            joined = self._weighted(pd.concat(found, ignore_index=True))
            joined.loc[joined["method"] == CHANCE, "value"] = chance
            joined.attrs = found[0].attrs
            gains.append(control_gains(joined, against=against))
        if not gains:
            return None, sentences
        sentences += [*map(describe_controls, gains)]
        sentences += self._audited(methods[name] for name in names)
        table = pd.concat(gains, ignore_index=True)
        table.attrs = {"metric": METRIC}
        return table, [*sentences, *dict.fromkeys(str(text) for text, *_ in warned)]

    def _audited(self, ahead_methods: Iterable[Method]) -> Iterator[str]:
        """Say what the features of each encoder hold more of than before its pretraining."""
        encoders = {}
        for method in ahead_methods:
            embedder = embedder_in(self._with_own(method, 0))[1]
            encoders[method.name.removesuffix(CENTRED)] = embedder.encoder
        if not encoders:
            return
        audits = audit_encoder(encoders, self.corpus.X, n_windows=AUDIT_WINDOWS)
        for name, rows in audits[audits["measure"] == R2].groupby("encoder", sort=False):
            wide = rows.pivot(index="property", columns="features", values="value")
            before = wide[["tokens", "random encoder"]].max(axis=1)
            most = (wide["encoder"] - before).nlargest(3).index
            held = [f"{p} (R2 {wide['encoder'][p]:.2f}, before {before[p]:.2f})" for p in most]
            yield (
                f"What a linear model reads from the features of {name} more than before its "
                f"pretraining, on people who are held out: {', '.join(held)}."
            )

    def _results(self) -> Iterator[dict[str, Any]]:
        """Yield the predictions of each method with most labelled people, fold by fold."""
        runs = self.runs
        files = (file for place in self.places for file in sorted(place.glob("cache/*.json")))
        for result in (read_checked(file) for file in files if file.name != "settings.json"):
            name, n, seed = (result["key"][k] for k in ("method", "n_train_subjects", "seed"))
            # A folder may have further draws, of an earlier plan, and methods that failed.
            if name in runs.index and n == max(runs["people"][name]) and seed < runs["draws"][name]:
                yield result

    def _confusion(self, best: str) -> pd.DataFrame:
        """Return true and predicted classes of a method with most labelled people, all draws."""
        found: dict[str, list] = {"true": [], "predicted": []}
        for result in self._results():
            if result["key"]["method"] == best:
                for column in found:
                    found[column] += result[column]
        return self._named(pd.DataFrame(found))

    def _named(self, table: pd.DataFrame) -> pd.DataFrame:
        labels = np.unique(self.corpus.y[self.corpus.labeled])
        names = names_of_classes(labels, self.corpus.X.label_names) or {}
        names = {str(label): str(name) for label, name in names.items()}
        return table.map(lambda label: names.get(str(label), str(label)))

    def _decisions(self) -> pd.DataFrame:
        """Return each person's class in each draw: that with the highest mean probability."""
        classes = [str(label) for label in np.unique(self.corpus.y[self.corpus.labeled])]
        parts = []
        for result in self._results():
            own, key = result["probabilities"], result["key"]
            shares = pd.get_dummies(pd.Series(result["predicted"]))
            if "columns" in own:
                shares = pd.DataFrame(dict(zip(own["classes"], own["columns"], strict=True)))
            shares = shares.astype(float).rename(columns=str).reindex(columns=classes, fill_value=0)
            by_person = shares.groupby(result["subjects"]).mean()
            true = pd.Series(result["true"]).map(str).groupby(result["subjects"]).first()
            told = dict(method=key["method"], seed=key["seed"], true=true)
            parts.append(by_person.assign(predicted=by_person.idxmax(axis=1), **told))
        return pd.concat(parts)

    def _people(self, decisions: pd.DataFrame) -> pd.DataFrame:
        """Score the decisions on people; the scores are the means of draws."""
        rows = []
        classes = [str(label) for label in np.unique(self.corpus.y[self.corpus.labeled])]
        for (method, _), own in decisions.groupby(["method", "seed"], sort=False):
            true, predicted = own["true"].to_numpy(), own["predicted"].to_numpy()
            shares = own[classes].to_numpy()
            given = dict(probabilities=shares / shares.sum(axis=1, keepdims=True), classes=classes)
            row = dict(method=method, right=(true == predicted).sum(), people=len(own))
            scores = ("balanced_accuracy", "auroc")
            row |= {name: score_predictions(true, predicted, name, **given) for name in scores}
            rows.append(row)
        table = pd.DataFrame(rows).groupby("method", as_index=False).mean()
        return table.sort_values("balanced_accuracy", ascending=False, ignore_index=True)

    def _saved(self, found: Study, folder: Path) -> Study:
        """Save the tables, and a model of all labelled people that ``predict`` can use."""
        order = found.levels.sort_values(["n_train_subjects", "mean"], ascending=False)["method"]
        of_ours = (PARSClassifier, FewLabelsClassifier)
        name = next((n for n in order if isinstance(self.methods[n].estimator, of_ours)), "")
        if name:
            labelled = self.corpus.labeled
            given = self.corpus.X[labelled], self.corpus.y[labelled]
            clone(self._with_own(self.methods[name], None)).fit(*given).save(folder / "model")
        found = replace(found, about=self.about | {"model": name})
        tables = dict(scores=found.scores, tests=found.tests, levels=found.levels)
        for name, table in (tables | dict(gains=found.controls, people=found.people)).items():
            if table is not None:
                replace_file(folder / f"{name}.csv", table.to_csv(index=False))
        content = dict(answer=found.answer, best=found.best, doubts=found.doubts, about=found.about)
        findings = [finding._asdict() for finding in found.check.findings]
        replace_file(folder / "study.json", to_json(_FORMAT | content | dict(findings=findings)))
        return found


@contextmanager
def _said_once(told: list[str]) -> Iterator[None]:
    """Hold back what is logged and warned of, and show each kind once at the end with its number.

    The texts of the warnings are added to ``told``.
    """
    log = logging.getLogger("braindecode_pars")
    records: list[logging.LogRecord] = []
    warned: list[tuple] = []
    keeper = logging.Handler()
    keeper.emit = records.append  # type: ignore[assignment, method-assign]
    before = log.handlers, log.propagate
    log.handlers, log.propagate = [keeper], False
    try:
        with collected(warned):
            yield
    finally:
        log.handlers, log.propagate = before
        for text, record in _counted((r.getMessage(), r) for r in records):
            record.msg, record.args = text, ()
            log.handle(record)
        for text, where in _counted((text, where) for text, *where in warned):
            told.append(text)
            warnings.warn_explicit(text, *where)


def _counted(texts: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the first text of each kind with the number of its fits; other numbers may differ."""
    kinds: dict[str, list[Any]] = {}
    for text, value in texts:
        # Of a protocol, which tells how many of its folds have it
        of_folds = re.match(r"In (\d+) of \d+ folds: ", text)
        n, text = (int(of_folds[1]), text[of_folds.end() :]) if of_folds else (1, text)
        kinds.setdefault(re.sub(r"\d[\d,.]*", "", text), [0, text, value])[0] += n
    for n, text, value in kinds.values():
        yield f"{text} ({n} times)" if n > 1 else text, value
