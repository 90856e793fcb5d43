"""Does pretraining help on these recordings? Look at them, plan, run, doubt, and answer."""

import logging
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline

from braindecode_pars._common import checks, files, tables
from braindecode_pars.baselines import CENTRED
from braindecode_pars.estimators import (
    FewLabelsClassifier,
    LinearProbe,
    PARSClassifier,
    window_features,
    windows_estimator,
)
from braindecode_pars.evaluation import (
    audits,
    data_check,
    folds,
    person,
    protocols,
    study_plan,
    study_report,
)
from braindecode_pars.evaluation.controls import control_gains, controls, describe_controls
from braindecode_pars.windows import Windows, labels

#: Draws of the controls: each is a comparison of its own.
CONTROL_DRAWS = 4
#: Windows and people of the audits of features.
AUDIT_WINDOWS, AUDIT_PEOPLE = 300, 24
#: Where there is nothing to doubt.
NO_GAIN = (
    "No method was better than the same without pretraining, so there was no gain to explain and "
    "no control was run."
)
#: A simple method with this share of the way from chance level to a perfect score is controlled:
#: of two classes, a balanced accuracy of .95.
TOO_GOOD = 0.9


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
        ``balanced_accuracy`` and ``auroc``, means of the draws; the best method first. Beside them
        the balanced accuracies ``by_recording`` and ``by_window``.
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
    check: data_check.DataCheck
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
        return study_report.write_report(self, path)


def study(
    windows_ds: Any,
    methods: Mapping[str, BaseEstimator] | None = None,
    *,
    encoders: Mapping[str, Any] | None = None,
    tasks: Sequence[str] = study_plan.TASKS,
    n_train_subjects: Sequence[int] | None = None,
    draws: int = study_plan.DRAWS,
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
        package, and ``pars-sleep`` for windows of 20 s or more.
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
    study_plan.check_study(draws, tasks, out)
    check = data_check.check_data(windows_ds)
    if check.stops:
        return unanswered(check, dataset, out)
    given: dict[str, Any] = dict(encoders=encoders, tasks=tasks, n_train_subjects=n_train_subjects)
    given |= dict(draws=draws, dataset=dataset, unlabeled_label=unlabeled_label, verbose=verbose)
    place: Any = nullcontext(out)
    if out is None:
        place = tempfile.TemporaryDirectory(prefix="braindecode-pars-study-")
    with place as folder:
        planned = study_plan.plan_study(windows_ds, check, methods, out=folder, **given)
        return run_study(planned, save=out is not None, n_jobs=n_jobs, verbose=verbose)


def unanswered(check: data_check.DataCheck, dataset: str, out: str | Path | None = None) -> Study:
    """Return the study of recordings that can have no answer."""
    answer = f"There is no answer. {' '.join(check.stops)}"
    if out is not None:
        content = study_plan.FORMAT | {"answer": answer}
        files.replace_file(Path(out).expanduser() / "study.json", files.to_json(content))
    return Study(dataset, study_plan.METRIC, check, answer=answer)


def run_study(
    planned: study_plan.Planned, *, save: bool = True, n_jobs: int | None = None, verbose: int = 1
) -> Study:
    """Score all methods, control the best ones, and answer; save what was found with a model."""
    told: list[str] = []
    with _said_once(told):
        found = _answered(planned, n_jobs, verbose)
    about = planned.about | {"warnings": [*planned.about.get("warnings", []), *told]}
    found = replace(found, about=about)
    return _saved(planned, found) if save else found


def _answered(planned: study_plan.Planned, n_jobs: int | None, verbose: int) -> Study:
    """Judge the scores, doubt what is ahead, and look at what the best method confuses."""
    corpus, check = planned.corpus, planned.check
    scores, failed = _scores(planned, n_jobs, verbose)
    plan = planned.plan.copy()
    for name, why in failed.items():
        plan.loc[plan["method"] == name, "left_out"] = f"failed ({why})"
    planned = replace(planned, plan=plan)
    found = Study(corpus.name, study_plan.METRIC, check, plan=plan, scores=scores)
    if scores.empty:
        answer = f"There is no answer. Every method failed: {next(iter(failed.values()))}."
        levels = pd.DataFrame(columns=["method", "n_train_subjects", "mean"])
        return replace(found, scores=pd.DataFrame(), levels=levels, answer=answer)
    rows = study_report.weighted(scores, corpus) if check.by_subject else scores
    chance = 1 / len(set(corpus.y[corpus.labeled].tolist()))
    levels, tests = study_report.judged(rows, planned.methods, chance)
    largest = levels[levels["n_train_subjects"] == levels["n_train_subjects"].max()]
    best = str(largest.loc[largest["mean"].idxmax(), "method"])
    answer = study_report.answer_of(levels, tests, chance)
    if failed:
        answer += f" Failed, and without a score: {checks.listed(list(failed))}."
    left, doubts = _doubt(planned, levels, tests, verbose)
    doubts = [*(doubts or [NO_GAIN]), *_about_the_person(planned, largest)]
    results = [result for result in _results(planned) if result["key"]["method"] == best]
    columns = {name: [x for each in results for x in each[name]] for name in ("true", "predicted")}
    confusion, people, decided = pd.DataFrame(columns), None, pd.DataFrame()
    if check.by_subject:
        people, decided = study_report.decided_by_person(_results(planned), corpus)
        first = people.iloc[0]
        answer += (
            f" By person, with the mean probability of the windows, {first['method']} decides "
            f"best: {first['right']:.3g} of {first['people']:.0f} people are right (mean of the "
            f"draws), balanced accuracy {first['balanced_accuracy']:.3f}, AUROC "
            f"{first['auroc']:.3f}."
        )
    answer, *doubts = (text.replace(CENTRED, " (centred by subject)") for text in (answer, *doubts))
    # Classes by name
    classes = np.unique(corpus.y[corpus.labeled])
    names = labels.names_of_classes(classes, corpus.X.label_names) or {}
    shown = {str(label): str(name) for label, name in names.items()}
    confusion, decided = (
        table.map(lambda label: shown.get(str(label), str(label))) for table in (confusion, decided)
    )
    found = replace(found, levels=levels, tests=tests, controls=left, doubts=doubts, answer=answer)
    return replace(found, best=best, confusion=confusion, people=people, decided=decided)


def _groups(
    planned: study_plan.Planned,
) -> Iterator[tuple[list[study_plan.Method], int | None, Path]]:
    """Yield methods that are scored together, their fold or None for all, and their folder."""
    groups: dict[tuple, list[study_plan.Method]] = {}
    for method in (planned.methods[name] for name in planned.runs.index):
        kind = "networks" if method.trains else "features"
        groups.setdefault((kind, method.own), []).append(method)
    for (kind, task), group in groups.items():
        for k in [None] if task is None else range(len(planned.folds)):
            parts = [kind] if k is None else [kind, task.replace("/", "-"), str(k)]
            yield group, k, planned.folder / "-".join(parts)


def _options(planned: study_plan.Planned, k: int | None, verbose: int) -> dict[str, Any]:
    """Return the arguments of protocols for all folds, or for one."""
    corpus, parts = planned.corpus, planned.folds
    how: dict[str, Any] = dict(dataset=corpus.name, unlabeled_label=corpus.unlabeled_label)
    how |= dict(cv=parts if k is None else [parts[k]], metrics=[study_plan.METRIC])
    return how | dict(equal_sizes=False, verbose=verbose)


def _scores(
    planned: study_plan.Planned, n_jobs: int | None, verbose: int
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Score every method; return also why methods failed."""
    found: list[pd.DataFrame] = [pd.DataFrame(columns=tables.SCORES)]
    failed: dict[str, str] = {}
    for group, k, place in _groups(planned):
        people, draws = planned.runs.loc[group[0].name, ["people", "draws"]]
        how = _options(planned, k, verbose) | dict(n_train_subjects=people, seeds=range(draws))
        # Processes would not share features, most of the work of the others.
        how |= dict(out=place, n_jobs=n_jobs if group[0].trains else None)
        with windows_estimator.features_computed_once():
            while left := [m for m in group if m.name not in failed]:
                try:
                    estimators = {m.name: _with_own(planned, m, k) for m in left}
                    found.append(protocols.label_efficiency(estimators, planned.windows_ds, **how))
                    break
                except folds.FoldError as error:
                    names = [m.name for m in left if error.method in (m.name, None)]
                    failed |= dict.fromkeys(names, error.reason)
    scores = pd.concat(found, ignore_index=True).astype({"value": float})
    return scores[~scores["method"].isin(list(failed))].reset_index(drop=True), failed


def _with_own(
    planned: study_plan.Planned, method: study_plan.Method, k: int | None
) -> BaseEstimator:
    """Return the method with the encoder of a fold, or of all people, pretrained if need be."""
    if method.own is None:
        return method.estimator
    X = planned.corpus.X
    name = f"{planned.about['digest']}-{method.own.replace('/', '-')}"
    folder = planned.folder / "encoders" / f"{name}-{'all' if k is None else f'fold-{k}'}"
    if not (folder / "encoder.json").exists():
        train = np.arange(len(X)) if k is None else planned.folds[k][0]
        try:
            study_plan.own_encoder(method.own).fit(X[train]).save(folder)
        except Exception as error:
            raise folds.FoldError.of(f"The pretraining with {method.own}", error) from error
    names = windows_estimator.parameters_called("encoder", method.estimator)
    return clone(method.estimator).set_params(**dict.fromkeys(names, str(folder)))


def _doubt(
    planned: study_plan.Planned, levels: pd.DataFrame, tests: pd.DataFrame, verbose: int
) -> tuple[pd.DataFrame | None, list[str]]:
    """Repeat comparisons on windows that lack one thing each.

    They are those of what outperforms its untrained twin, and of a simple method that is nearly
    perfect with chance level.
    """
    methods, largest = planned.methods, planned.runs["people"].map(max).max()
    levels, tests = (each[each["n_train_subjects"] == largest] for each in (levels, tests))
    is_ahead = study_report.ahead(tests) & (tests["question"] == "pretraining")
    groups: dict[str, list[study_plan.Method]] = {}
    encoders, sentences = {}, []
    for method in (methods[name] for name in tests["method_a"][is_ahead]):
        if method.trains:
            why = f"The controls were not run for {method.name}, whose fits take long."
            sentences.append(why)
            continue
        groups.setdefault(str(method.twin), []).append(method)
        named = windows_estimator.parameters_called("encoder", _with_own(planned, method, 0))
        encoders[method.name.removesuffix(CENTRED)] = next(iter(named.values()))
    groups = {twin: [*group, methods[twin]] for twin, group in groups.items()}
    chance, means = 1 / len(planned.check.classes), levels.set_index("method")["mean"]
    means = means[[methods[name].kind == "simple" for name in means.index]]
    if len(means) and means.max() > chance + TOO_GOOD * (1 - chance):
        guesses = make_pipeline(window_features.LogBandPower(), DummyClassifier())
        guess = study_plan.Method(study_plan.CHANCE, guesses, "simple")
        groups[study_plan.CHANCE] = [methods[str(means.idxmax())], guess]
    gains: list[pd.DataFrame] = []
    warned: list[tuple] = []
    for own in (False, True):  # an own pretraining has an encoder for each fold
        those = {name: each for name, each in groups.items() if any(m.own for m in each) == own}
        found, failures = _controlled(planned, those, own, largest, verbose, warned)
        gains, sentences = gains + found, sentences + failures
    if not gains:
        return None, sentences
    sentences += [*map(describe_controls, gains), *_audited(encoders, planned.corpus.X)]
    table = pd.concat(gains, ignore_index=True)
    table.attrs = {"metric": study_plan.METRIC}
    return table, [*sentences, *dict.fromkeys(str(text) for text, *_ in warned)]


def _controlled(
    planned: study_plan.Planned,
    groups: Mapping[str, Sequence[study_plan.Method]],
    own: bool,
    n: int,
    verbose: int,
    warned: list[tuple],
) -> tuple[list[pd.DataFrame], list[str]]:
    """Return the gains in all controls by what a group is compared with; say also what failed.

    The methods run together, so that plain and centred ones share the features of changed windows.
    """
    if not groups:
        return [], []
    methods = {m.name: m for group in groups.values() for m in group}
    draws = min(planned.runs["draws"].get(name, CONTROL_DRAWS) for name in methods)
    seeds, found = range(min(CONTROL_DRAWS, draws)), []
    try:
        for k in range(len(planned.folds)) if own else [None]:
            how = _options(planned, k, verbose) | dict(n_train_subjects=[n], seeds=seeds)
            how["out"] = planned.folder / "controls" / (f"own-{k}" if own else "given")
            estimators = {name: _with_own(planned, m, k) for name, m in methods.items()}
            with folds.collected(warned):  # that a control is not possible is in the report
                found.append(controls(estimators, planned.windows_ds, **how))
    except folds.FoldError as error:
        failed = [
            against
            for against, group in groups.items()
            if error.method is None or error.method in [m.name for m in group]
        ]
        told = [f"The controls of gains over {each} failed: {error.reason}." for each in failed]
        left = {against: group for against, group in groups.items() if against not in failed}
        gains, failures = _controlled(planned, left, own, n, verbose, warned)
        return gains, told + failures
    scores = pd.concat(found, ignore_index=True)
    if planned.check.by_subject:
        scores = study_report.weighted(scores, planned.corpus)
    guessed = scores["method"] == study_plan.CHANCE
    scores.loc[guessed, "value"] = 1 / len(planned.check.classes)
    scores.attrs = found[0].attrs
    of_group = {a: scores["method"].isin([m.name for m in each]) for a, each in groups.items()}
    return [control_gains(scores[rows], against=a) for a, rows in of_group.items()], []


def _audited(encoders: Mapping[str, Any], windows: Windows) -> Iterator[str]:
    """Say what the features of each encoder hold more of than before its pretraining."""
    if not encoders:
        return
    table = audits.audit_encoder(encoders, windows, n_windows=AUDIT_WINDOWS)
    for name, rows in table[table["measure"] == audits.R2].groupby("encoder", sort=False):
        wide = rows.pivot(index="property", columns="features", values="value")
        before = wide[["tokens", "random encoder"]].max(axis=1)
        most = (wide["encoder"] - before).nlargest(3).index
        held = [f"{p} (R2 {wide['encoder'][p]:.2f}, before {before[p]:.2f})" for p in most]
        yield (
            f"What a linear model reads from the features of {name} more than before its "
            f"pretraining, on people who are held out: {', '.join(held)}."
        )


def _about_the_person(planned: study_plan.Planned, levels: pd.DataFrame) -> Iterator[str]:
    """Say how much of the features of a method, pretrained where one ran, is the person."""
    order = levels.sort_values("mean", ascending=False)["method"]
    plain = [planned.methods[name] for name in order if not name.endswith(CENTRED)]
    plain = [method for method in plain if isinstance(method.estimator, LinearProbe)]
    if not plain:
        return
    method = min(plain, key=lambda each: each.kind != "pretrained")  # the best of its kind
    corpus, rng = planned.corpus, np.random.default_rng(0)
    drawn = rng.permutation(len(corpus.subjects))[:AUDIT_PEOPLE]
    rows = corpus.rows_of([corpus.subjects[i] for i in drawn])
    rows = rng.permutation(rows[corpus.labeled[rows]])[:AUDIT_WINDOWS]
    windows, y, people = (each[np.sort(rows)] for each in (corpus.X, corpus.y, corpus.groups))
    in_class = pd.Series(people).groupby(y).nunique()
    if len(in_class) < 2 or in_class.min() < 2:
        return
    estimator: Any = _with_own(planned, method, 0)
    features = clone(estimator.transformer).fit_transform(windows, y)
    recordings = windows.table["recording"].to_numpy()
    table = person.audit_person(features, y, people, recordings)
    found = {(row.measure, row.property, row.erased): row for row in table.itertuples()}
    share, alike = (found[person.SHARE, what, "nothing"] for what in ("person", "class"))
    yield (
        f"Of the variance of the features of {method.name}, {share.value:.0%} are between people "
        f"({share.null:.0%} if recordings are given to other people), and {alike.value:.0%} "
        "between classes."
    )
    erased = ("nothing", "training people", "all people")
    before, after, given = (found[person.ACCURACY, "class", each].value for each in erased)
    yield (
        "On people who are held out, a linear model of these features has a balanced accuracy of "
        f"{before:.3f} (chance level {1 / len(in_class):.2f}): {after:.3f} without what differs "
        f"linearly between the training people, {given:.3f} without what differs between all "
        "people, as their unlabelled windows tell (transductive)."
    )
    if way := found.get((person.COSINE, "class", "nothing")):
        yield (
            f"The direction from class to class has a mean cosine of {way.value:.2f} between "
            f"people; permuted labels have {way.null_high:.2f} or less in 95 %."
        )


def _results(planned: study_plan.Planned) -> Iterator[dict[str, Any]]:
    """Yield the predictions of each method with most labelled people, fold by fold."""
    runs = planned.runs
    for *_, place in _groups(planned):
        for file in sorted(place.glob("cache/*_*.json")):
            key = (result := files.read_checked(file))["key"]
            name, n, seed = (key[k] for k in ("method", "n_train_subjects", "seed"))
            # A folder may have further draws, of an earlier plan, and methods that failed.
            if name in runs.index and n == max(runs["people"][name]) and seed < runs["draws"][name]:
                yield result


def _saved(planned: study_plan.Planned, found: Study) -> Study:
    """Save the tables, and a model of all labelled people that ``predict`` can use."""
    corpus, methods, folder = planned.corpus, planned.methods, planned.folder
    order = found.levels.sort_values(["n_train_subjects", "mean"], ascending=False)["method"]
    of_ours = (PARSClassifier, FewLabelsClassifier)
    name = next((n for n in order if isinstance(methods[n].estimator, of_ours)), "")
    if name:
        given = corpus.X[corpus.labeled], corpus.y[corpus.labeled]
        clone(_with_own(planned, methods[name], None)).fit(*given).save(folder / "model")
    found = replace(found, about=found.about | {"model": name})
    written = dict(scores=found.scores, tests=found.tests, levels=found.levels)
    for name, table in (written | dict(gains=found.controls, people=found.people)).items():
        if table is not None:
            files.replace_file(folder / f"{name}.csv", table.to_csv(index=False))
    content = dict(answer=found.answer, best=found.best, doubts=found.doubts, about=found.about)
    findings = [finding._asdict() for finding in found.check.findings]
    files.replace_file(
        folder / "study.json", files.to_json(study_plan.FORMAT | content | dict(findings=findings))
    )
    return found


@contextmanager
def _said_once(told: list[str]) -> Iterator[None]:
    """Hold back what is logged and warned of, and show each kind once at the end with its number.

    The texts of the warnings are added to ``told``.
    """
    log, keeper = logging.getLogger("braindecode_pars"), BufferingHandler(sys.maxsize)
    warned: list[tuple] = []
    before = log.handlers, log.propagate
    log.handlers, log.propagate = [keeper], False
    try:
        with folds.collected(warned):
            yield
    finally:
        log.handlers, log.propagate = before
        for text, record in _counted((r.getMessage(), r) for r in keeper.buffer):
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
