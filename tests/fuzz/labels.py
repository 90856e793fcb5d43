"""Labels and groups of odd types and lengths."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import torch
from hypothesis import strategies as st

from fuzz import small
from fuzz.outcomes import Case, refused

N = 12
ZERO_ONE = small.LABELS

#: Twelve labels of two classes -> the two classes, sorted. All mean the same as 0 and 1.
RENAMED = {
    "int64": (ZERO_ONE, [0, 1]),
    "uint8": (ZERO_ONE.astype("uint8"), [0, 1]),
    "big-endian": (ZERO_ONE.astype(">i4"), [0, 1]),
    "list": (ZERO_ONE.tolist(), [0, 1]),
    "tuple": (tuple(ZERO_ONE.tolist()), [0, 1]),
    "tensor": (torch.from_numpy(ZERO_ONE), [0, 1]),
    "Series": (pd.Series(ZERO_ONE, index=range(100, 112)), [0, 1]),
    "Categorical": (pd.Series(pd.Categorical(np.array(["a", "b"])[ZERO_ONE])), ["a", "b"]),
    "column": (ZERO_ONE[:, None], [0, 1]),
    "booleans": (ZERO_ONE.astype(bool), [False, True]),
    "strings": (np.array(["left", "right"])[ZERO_ONE], ["left", "right"]),
    "objects": (np.array(["left", "right"], dtype=object)[ZERO_ONE], ["left", "right"]),
    "list of strings": (np.array(["N1", "W"])[ZERO_ONE].tolist(), ["N1", "W"]),
    "string dtype": (pd.Series(np.array(["a", "b"])[ZERO_ONE], dtype="string"), ["a", "b"]),
    "whole floats": (ZERO_ONE.astype(float), [0.0, 1.0]),
    "large": (np.array([7, 10**12])[ZERO_ONE], [7, 10**12]),
    "negative": (np.array([-7, -2])[ZERO_ONE], [-7, -2]),
    "unicode": (np.array(["Jörg", "睡眠"])[ZERO_ONE], ["Jörg", "睡眠"]),
    "brackets": (np.array(["[W]", "[bold]"])[ZERO_ONE], ["[W]", "[bold]"]),
    "numpy integers in a list": (list(map(np.int8, ZERO_ONE)), [0, 1]),
}
#: Labels of which some mean "unlabeled", unless the user says otherwise: a warning is due.
WITH_MINUS_ONE = {
    "-1, 0, 1": np.arange(N) % 3 - 1,
    "-1, 0, 1 as floats": np.arange(N) % 3 - 1.0,
    "-1, 1, 2": np.array([-1, 1, 2])[np.arange(N) % 3],
    "-1, 0, 1 as a list": (np.arange(N) % 3 - 1).tolist(),
    "-1, 0, 1 as int8": (np.arange(N) % 3 - 1).astype("int8"),
    "-1, 0, 1 as objects": (np.arange(N) % 3 - 1).astype(object),
    "-1, 0, 1 in a Series": pd.Series(np.arange(N) % 3 - 1),
}
UNUSABLE = {
    "None": None,
    "one class": np.zeros(N, int),
    "too few": ZERO_ONE[:-1],
    "too many": np.append(ZERO_ONE, 0),
    "none": [],
    "continuous": np.linspace(0, 1, N),
    "continuous objects": np.linspace(0, 1, N).astype(object),
    "NaN": np.where(ZERO_ONE, np.nan, 0),
    "None among strings": [None, "a"] * 6,
    "strings and integers": ["a", 1] * 6,
    "1 and '1'": [1, "1"] * 6,
    "1, '1' and 0": [1, "1", 0] * 4,
    "one-hot": np.eye(2)[ZERO_ONE],
    "a DataFrame of two columns": pd.DataFrame({"a": ZERO_ONE, "b": ZERO_ONE}),
    "one label": 1,
    "text": "left",
    "a dict": dict(enumerate(ZERO_ONE.tolist())),
    "lists": [[0], [1, 2]] * 6,
    "all -1": np.full(N, -1),
    "-1 and 1": np.where(ZERO_ONE, 1, -1),
    "-1 and 0": ZERO_ONE - 1,
    "complex": ZERO_ONE + 1j,
    "a set": {0, 1},
    "a generator": (label for label in ZERO_ONE),
}
DATES = [datetime.date(2020, 1, 1 + i) for i in ZERO_ONE]

GROUPS = {
    "None": None,
    "integers": np.arange(N) // 3,
    "strings": np.array(list("abcd"))[np.arange(N) // 3],
    "floats": (np.arange(N) // 3).astype(float),
    "objects": np.array([1, "1", 2, "2"], dtype=object)[np.arange(N) // 3],
    "tensor": torch.arange(N) // 3,
    "Series": pd.Series(np.arange(N) // 3),
    "one group": np.zeros(N, int),
}
BAD_GROUPS = {
    "too few": np.arange(3),
    "too many": np.arange(13),
    "a number": 3,
    "text": "subject",
    "NaN": np.where(np.arange(N) < 3, np.nan, 1.0),
    "None among strings": np.array([None, "a", "b", "c"], dtype=object)[np.arange(N) // 3],
    "two columns": np.zeros((N, 2)),
    "lists": [[1]] * N,
}


def _fit(name: str, y, **arguments):
    groups = arguments.pop("groups", None)
    model = small.make(name, sfreq=small.SFREQ, **arguments)
    return model.fit(small.signals(0), y, groups=groups)


classifiers = st.sampled_from(["classifier", "network"])


@st.composite
def renamed(draw):
    """Other names of the same two classes give the same probabilities, under those names."""
    name, kind = draw(classifiers), draw(st.sampled_from(sorted(RENAMED)))
    group, validation = draw(st.sampled_from(sorted(GROUPS))), draw(st.sampled_from([0.0, 0.34]))
    seed = draw(st.integers(0, 99))
    y, classes = RENAMED[kind]
    arguments = dict(groups=GROUPS[group], validation=validation, random_state=seed)
    if group == "one group":
        arguments["validation"] = 0.0

    def act(folder):
        return _fit(name, y, **arguments)

    def problem(model):
        if model.classes_.tolist() != classes:
            return f"classes_ is {model.classes_.tolist()} instead of {classes}"
        X = small.signals(1)
        predicted = set(model.predict(X).tolist())
        if not predicted <= set(classes):
            return f"predicts {predicted}"
        return small.differs(
            model.predict_proba(X), _fit(name, ZERO_ONE, **arguments).predict_proba(X)
        )

    text = f"{name}.fit(y={kind}, groups={group}, validation={validation}, random_state={seed})"
    return Case(text, act, problem)


@st.composite
def minus_one(draw):
    """A class is not lost without a warning."""
    name, kind = draw(classifiers), draw(st.sampled_from(sorted(WITH_MINUS_ONE)))
    unlabeled = draw(st.sampled_from(["not passed", None, -1, "passed"]))
    y = WITH_MINUS_ONE[kind]
    values = np.unique(np.asarray(y).astype(float)).tolist()
    passed = {"not passed": {}, "passed": {"unlabeled_label": -1}}.get(
        unlabeled, {"unlabeled_label": unlabeled}
    )

    def act(folder):
        return _fit(name, y, **passed)

    def problem(model):
        actual = model.classes_.astype(float).tolist()
        expected = [v for v in values if v != -1 or passed.get("unlabeled_label", -1) is None]
        if actual != expected:
            return f"classes_ is {actual} instead of {expected}"
        # With -1 as the default, a warning is due, so this oracle is never satisfied without one.
        return None if passed else "the class -1 was taken as unlabeled"

    return Case(f"{name}.fit(y={kind}, unlabeled_label={unlabeled})", act, problem)


@st.composite
def unusable(draw):
    name, kind = draw(classifiers), draw(st.sampled_from(sorted(UNUSABLE)))
    return Case(
        f"{name}.fit(y={kind})", lambda folder: _fit(name, UNUSABLE[kind]), refused(f"y = {kind}")
    )


@st.composite
def bad_groups(draw):
    name, kind = draw(classifiers), draw(st.sampled_from(sorted(BAD_GROUPS)))
    return Case(
        f"{name}.fit(groups={kind}, validation=0.34)",
        lambda folder: _fit(name, ZERO_ONE, groups=BAD_GROUPS[kind], validation=0.34),
        refused(f"groups = {kind}"),
    )


@st.composite
def scored(draw):
    """``score`` counts windows whose label was predicted; a wrong length is refused."""
    name = draw(classifiers)
    seed, n = draw(st.integers(0, 99)), draw(st.integers(0, 14))
    y = np.random.default_rng(seed).integers(0, 2, n)

    def act(folder):
        return small.fitted(name).score(small.signals(seed), y)

    def problem(score):
        if n != N:
            return f"accepted {n} labels for 12 windows"
        expected = (small.fitted(name).predict(small.signals(seed)) == y).mean()
        return None if score == expected else f"score {score} instead of {expected}"

    return Case(f"{name}.score(signals({seed}), {n} labels)", act, problem)


cases = st.one_of(renamed(), renamed(), minus_one(), unusable(), bad_groups(), scored())
