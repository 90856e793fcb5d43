"""Does pretraining help on these recordings? Look at them, plan, run, doubt, and answer."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
import torch
from sklearn.base import BaseEstimator, clone
from torch.utils.data import Dataset

import braindecode_pars
from braindecode_pars._common.checks import integer, listed, optional, positive
from braindecode_pars._common.files import (
    check_may_write,
    read_checked,
    read_json,
    replace_file,
    to_json,
)
from braindecode_pars._common.tables import POOLED
from braindecode_pars.baselines import CENTRED
from braindecode_pars.estimators import FewLabelsClassifier, PARSClassifier
from braindecode_pars.evaluation.audits import R2, audit_encoder
from braindecode_pars.evaluation.cache import describe_corpus, digest
from braindecode_pars.evaluation.controls import control_gains, controls, describe_controls
from braindecode_pars.evaluation.corpus import Corpus, check_list
from braindecode_pars.evaluation.data_check import DataCheck, check_data
from braindecode_pars.evaluation.folds import collected, seen_by
from braindecode_pars.evaluation.paired_tests import holm, paired_tests
from braindecode_pars.evaluation.protocols import label_efficiency
from braindecode_pars.evaluation.random_effects import detectable_in
from braindecode_pars.evaluation.splitting import draw_subjects
from braindecode_pars.evaluation.study_answer import ahead, answer_of
from braindecode_pars.evaluation.study_plan import (
    CENTRING_NEEDS,
    TYPICAL,
    Method,
    channels_of_slow_voltages,
    embedder_in,
    folds_of,
    make_plan,
    numbers_of_people,
    study_methods,
)
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.windows.labels import class_names
from braindecode_pars.windows.once import features_computed_once

#: Draws of the controls: each is a comparison of its own.
CONTROL_DRAWS = 5
#: Windows on which the features of an encoder are audited.
AUDIT_WINDOWS = 300
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
        (why, or nothing).
    scores : DataFrame
        Tidy scores, as of :func:`~braindecode_pars.evaluation.label_efficiency`.
    levels : DataFrame
        Mean of each method and number of people, with its interval of 95 % and the test against
        chance level.
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
    n_train_subjects: Sequence[int] | None = None,
    n_draws: int | None = None,
    hours: float | None = None,
    dataset: str = "recordings",
    unlabeled_label: Any = "auto",
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> Study:
    """Find out whether pretraining helps to classify these windows.

    It looks at the data, and ends with the reason where no answer is possible. It then compares, on
    the same held-out people and with the labels of the same few others: simple methods, encoders
    that were pretrained, the same encoders without pretraining, an encoder that is pretrained on
    the people who are not tested, a vote, and networks where there is time. What is ahead is
    compared once more on windows that lack one thing (:func:`controls`). All but the networks have
    plain features, and features centred by subject.

    Parameters
    ----------
    windows_ds : BaseConcatDataset
        Labelled windows with ``subject`` in the descriptions; also of people without labels.
    methods : dict of str to estimator | None
        Further methods, which take part as simple ones.
    encoders : dict of str to path, name or fitted estimator | None
        Pretrained encoders by the name of their method. None means ``small`` and ``noise`` of the
        package.
    n_train_subjects : sequence of int | None
        Numbers of labelled people. None means 2, 4, 8, ... as far as there are people; where each
        has one class, at least two of each class.
    n_draws : int | None
        Draws of labelled people; None means 8, or 20 with ``hours``.
    hours : float | None
        Hours that the study may take. With None, networks run where three draws of one number of
        people take two minutes at most.
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
        can be fitted, an encoder is unknown, or ``out`` has something else.
    FoldError
        When a fit fails.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import study
    >>> found = study(datasets.mental_arithmetic())  # doctest: +SKIP
    >>> print(found.answer)  # doctest: +SKIP
    >>> found.report("study.html")  # doctest: +SKIP
    """
    numbers: dict[str, Any] = dict(n_train_subjects=n_train_subjects, n_draws=n_draws, hours=hours)
    named: dict[str, Any] = dict(dataset=dataset, unlabeled_label=unlabeled_label, out=out)
    begun = begin_study(windows_ds, methods, encoders=encoders, **numbers, **named)
    return begun if isinstance(begun, Study) else begun.run(n_jobs=n_jobs, verbose=verbose)


def begin_study(
    windows_ds: Dataset,
    methods: Mapping[str, BaseEstimator] | None = None,
    *,
    encoders: Mapping[str, Any] | None = None,
    n_train_subjects: Sequence[int] | None = None,
    n_draws: int | None = None,
    hours: float | None = None,
    dataset: str = "recordings",
    unlabeled_label: Any = "auto",
    out: str | Path | None = None,
) -> Study | Planned:
    """Look at the data and plan; a study that cannot be answered ends here."""
    optional(integer(2)).check("n_draws", n_draws)
    optional(positive()).check("hours", hours)
    folder = None if out is None else Path(out).expanduser()
    if folder is not None:
        check_may_write(folder, "a study", is_ours=(folder / "study.json").is_file())
    encoders = {"small": "small", "noise": "noise"} if encoders is None else dict(encoders)
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
    _, counts = np.unique(corpus.groups.astype(str), return_counts=True)
    may_centre = not check.by_subject and counts.min() >= CENTRING_NEEDS
    known, reasons = _usable(encoders, corpus)
    slow = channels_of_slow_voltages(corpus.X) if corpus.X.chs_info else None
    found_methods = study_methods(known, slow, centred=may_centre, further=methods or {})
    names = [method.name for method in found_methods]
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
        left_out=reasons,
    )
    settings = dict(digest=about["digest"], people=people, draws=n_draws, hours=hours)
    settings["methods"] = names
    before: dict[str, Any] = {}
    if folder is not None:
        with suppress(FileNotFoundError, ValueError):  # a damaged plan is made anew
            before = read_json(folder / "plan.json")
    if before.get("settings") == settings:  # of a study that was interrupted
        plan = pd.DataFrame(before["plan"])
    else:
        plan = make_plan(corpus, found_methods, folds, people, n_draws=n_draws, hours=hours)
    if folder is not None:
        rows = plan.to_dict("records")
        replace_file(folder / "study.json", to_json(_FORMAT))
        replace_file(folder / "plan.json", to_json({"settings": settings, "plan": rows}))
    named = dict(zip(names, found_methods, strict=True))
    return Planned(windows_ds, corpus, check, folds, named, plan, folder, about)


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
    # Set by run: folder of what is finished, arguments of protocols, and folders of the scores.
    out: Path = field(init=False)
    n_jobs: int | None = field(init=False)
    options: dict[str, Any] = field(init=False)
    places: list[Path] = field(init=False, default_factory=list)

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
        with place as out:
            self.out = Path(out)
            scores = self._scores()
            found = self._judged(scores)
            left, doubts = self._doubt(found.tests)
            found = replace(
                found,
                plan=self.plan,
                scores=scores,
                controls=left,
                doubts=[text.replace(CENTRED, " (centred by subject)") for text in doubts],
                confusion=self._confusion(found.best),
                about=self.about,
            )
        return found if self.folder is None else self._saved(found, self.folder)

    def _scores(self) -> pd.DataFrame:
        """Score every method: those with the same people and draws together."""
        tables, runs = [], self.runs
        groups: dict[tuple, list[Method]] = {}
        for method in sorted((self.methods[name] for name in runs.index), key=lambda m: m.own):
            people, draws = runs.loc[method.name, ["people", "draws"]]
            kind = "networks" if method.trains else "features"
            name = "own" if method.own else f"{kind}-{len(people)}x{draws}"
            groups.setdefault((name, draws, *people), []).append(method)
        for (name, draws, *people), group in groups.items():
            for ending, estimators, folds in self._fitted(group):
                self.places.append(self.out / f"{name}{ending}")
                with features_computed_once():
                    found = label_efficiency(
                        estimators,
                        self.windows_ds,
                        n_train_subjects=people,
                        seeds=range(draws),
                        cv=folds,
                        out=self.places[-1],
                        # Processes would not share features, most of the work of the others.
                        n_jobs=self.n_jobs if group[0].trains else None,
                        **self.options,
                    )
                tables.append(found)
        return pd.concat(tables, ignore_index=True)

    def _fitted(self, group: Sequence[Method]) -> Iterator[tuple[str, dict[str, Any], list]]:
        """Yield the ending of a folder, the estimators of some methods, and folds for them.

        It is once for all folds, and once for each where there is an encoder of the fold's own.
        """
        if not any(m.own for m in group):
            yield "", {m.name: m.estimator for m in group}, self.folds
            return
        for k, fold in enumerate(self.folds):
            yield f"-{k}", {m.name: self._with_own(m, k) for m in group}, [fold]

    def _with_own(self, method: Method, k: int) -> BaseEstimator:
        """Return the method with the encoder of a fold, which is pretrained if it is not there."""
        if not method.own:
            return method.estimator
        estimator = clone(method.estimator)
        name, embedder = embedder_in(estimator)
        folder = self.out / "encoders" / f"{self.about['digest']}-fold-{k}"
        if not (folder / "encoder.json").exists():
            train, _ = self.folds[k]
            clone(embedder).fit(self.corpus.X[train]).save(folder)
        given = dict(encoder=str(folder), pretext="pars", pretext_params=None)
        return estimator.set_params(**{f"{name}__{key}": value for key, value in given.items()})

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
                pairs = [("baseline", means[simple].idxmax())]
                if self.methods[name].twin in means.index:
                    pairs.append(("pretraining", self.methods[name].twin))
                for question, other in pairs:
                    pair = of_n[of_n["method"].isin([name, other])]
                    test = paired_tests(pair, METRIC, against=other)
                    tests.append(test.assign(n_train_subjects=n, question=question))
        level = pd.concat(levels, ignore_index=True)
        level = level.rename(columns={"method_a": "method", "mean_difference": "mean"})
        level[["mean", "ci_low", "ci_high"]] += 1 / n_classes
        level["p_holm"] = holm(level["p"])
        level = level[["method", "n_train_subjects", "mean", "ci_low", "ci_high", "p", "p_holm"]]
        test = pd.concat(tests, ignore_index=True) if tests else NO_TESTS.copy()
        test["p_holm"] = test.groupby("n_train_subjects")["p"].transform(holm)
        level.attrs = test.attrs = {}
        largest = level[level["n_train_subjects"] == level["n_train_subjects"].max()]
        best = str(largest.loc[largest["mean"].idxmax(), "method"])
        answer = answer_of(level, test, 1 / n_classes)
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

    def _doubt(self, tests: pd.DataFrame) -> tuple[pd.DataFrame | None, list[str]]:
        """Repeat the comparison of what is ahead of its untrained twin without one thing each."""
        methods = self.methods
        largest = self.runs["people"].map(max).max()
        of_largest = tests["n_train_subjects"] == largest
        helped = tests[ahead(tests) & (tests["question"] == "pretraining") & of_largest]["method_a"]
        names = [name for name in helped if not methods[name].trains]
        sentences = [
            f"The controls were not run for {name}, whose fits take long."
            for name in helped
            if methods[name].trains
        ]
        gains: list[pd.DataFrame] = []
        warned: list[tuple] = []
        for twin in dict.fromkeys(str(methods[name].twin) for name in names):
            group = [methods[n] for n in names if methods[n].twin == twin] + [methods[twin]]
            seeds = range(min(CONTROL_DRAWS, self.runs["draws"][group[0].name]))
            name = twin.replace(",", "").replace(" ", "-")
            # That a control is not possible is said in the report.
            with collected(warned):
                found = [
                    controls(
                        estimators,
                        self.windows_ds,
                        n_train_subjects=[largest],
                        cv=folds,
                        seeds=seeds,
                        out=self.out / "controls" / f"{name}{ending}",
                        **self.options,
                    )
                    for ending, estimators, folds in self._fitted(group)
                ]
            joined = pd.concat(found, ignore_index=True)
            joined.attrs = found[0].attrs
            gains.append(control_gains(joined, against=twin))
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

    def _confusion(self, best: str) -> pd.DataFrame:
        """Return true and predicted classes of a method with most labelled people, all draws."""
        n, draws = max(self.runs["people"][best]), self.runs["draws"][best]
        found: dict[str, list] = {"true": [], "predicted": []}
        files = [file for place in self.places for file in sorted(place.glob("cache/*.json"))]
        for result in (read_checked(file) for file in files if file.name != "settings.json"):
            key = result["key"]
            # A folder may have further draws, of an earlier plan.
            if (key["method"], key["n_train_subjects"]) == (best, n) and key["seed"] < draws:
                for column in found:
                    found[column] += result[column]
        table = pd.DataFrame(found)
        labels = np.unique(self.corpus.y[self.corpus.labeled])
        names = class_names(labels, self.corpus.X.label_names) or {}
        return table.map(lambda label: str(names.get(label, label)))

    def _saved(self, found: Study, folder: Path) -> Study:
        """Save the tables, and a model of all labelled people that ``predict`` can use."""
        order = found.levels.sort_values(["n_train_subjects", "mean"], ascending=False)["method"]
        of_ours = (PARSClassifier, FewLabelsClassifier)
        name = next((n for n in order if isinstance(self.methods[n].estimator, of_ours)), "")
        if name:
            labelled = self.corpus.labeled
            given = self.corpus.X[labelled], self.corpus.y[labelled]
            clone(self.methods[name].estimator).fit(*given).save(folder / "model")
        found = replace(found, about=self.about | {"model": name})
        tables = dict(scores=found.scores, tests=found.tests, levels=found.levels)
        for name, table in (tables | dict(gains=found.controls)).items():
            if table is not None:
                replace_file(folder / f"{name}.csv", table.to_csv(index=False))
        content = dict(answer=found.answer, best=found.best, doubts=found.doubts, about=found.about)
        findings = [finding._asdict() for finding in found.check.findings]
        replace_file(folder / "study.json", to_json(_FORMAT | content | dict(findings=findings)))
        return found
