"""Error rates and power of tests of the difference between two methods.

    python docs/experiments/test_rates.py docs/measured/test_rates.csv

Differences are simulated with normal effects of subjects, draws of labeled subjects, pretraining
seeds, and a residual. Their variances are those of the stored scores, and extreme variances. Each
test has the level .05. The column ``power`` contains the proportion of tests that detect a
difference which the two-way test should detect with 80 % power, by the formula of
``evaluation.power``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
from scipy import stats
from stored_table import store_table

from braindecode_pars.evaluation.paired_tests import differences_of, pairs_of
from braindecode_pars.evaluation.random_effects import (
    crossed_mean,
    detectable_in,
    mean_squares,
    variance_components,
)

sys.path.append(str(Path(__file__).parents[1] / "_ext"))

from stored_few_labels import few_labels_scores
from stored_scores import result_scores

#: Variances by the axes of their factors: subjects, draws, pretrainings.
Components = dict[tuple[int, ...], float]

#: Numbers of subjects and draws, as in the results.
DESIGNS = ((12, 20), (20, 20), (20, 10), (20, 5), (12, 3), (20, 3))
#: Three pretrainings of one method.
PRETRAININGS = (12, 20, 3)
#: Training subjects of the corrected t-test; in a cross-validation all but one.
N_TRAIN = 4
N_SIMULATED = 4000

SUBJECTS, DRAWS, REST = (0,), (1,), (0, 1)
#: Extreme variances of subjects, draws and residuals.
EXTREMES: dict[str, Components] = {
    "rest only": {SUBJECTS: 0.0, DRAWS: 0.0, REST: 1.0},
    "subjects only": {SUBJECTS: 1.0, DRAWS: 0.0, REST: 0.01},
    "draws only": {SUBJECTS: 0.0, DRAWS: 1.0, REST: 0.01},
    "subjects = draws = rest": {SUBJECTS: 1.0, DRAWS: 1.0, REST: 1.0},
    "subjects large": {SUBJECTS: 10.0, DRAWS: 0.1, REST: 1.0},
    "draws large": {SUBJECTS: 0.1, DRAWS: 10.0, REST: 1.0},
}


def main() -> None:
    rows = [rates(*case) for case in cases()]
    command = "python docs/experiments/test_rates.py docs/measured/test_rates.csv"
    remark = f"{N_SIMULATED} simulated experiments for each row"
    store_table(pd.DataFrame(rows), Path(sys.argv[1]), command, remark, index=False)


def cases() -> Iterator[tuple[str, str, tuple[int, ...], Components]]:
    """Yield kind, name of the variances, numbers of levels, and variances."""
    mean_variances = measured()
    for shape, (name, components) in product(DESIGNS, [*mean_variances.items(), *EXTREMES.items()]):
        yield "crossed", name, shape, components
    for name, components in measured_pretrainings().items():
        yield "crossed", name, PRETRAININGS, components
    for shape in DESIGNS:
        yield "a draw for each of two folds", "arithmetic", shape, mean_variances["arithmetic"]
    for name, components in measured_nested().items():
        yield "own subjects of each draw", name, (36, 3), components
    for n_draws in (1, 3):
        yield "cross-validation", "as Nadeau and Bengio", (12, n_draws), EXTREMES["subjects only"]


@cache
def measured() -> dict[str, Components]:
    """Return mean variances over all pairs of methods, relative to the residual variance."""
    tables = {name: few_labels_scores(name) for name in ("arithmetic", "imagery", "hands")}
    mean_variances = {
        name: _mean_components(scores, n_factors=2) for name, scores in tables.items()
    }
    for name in tables:
        mean_variances[f"{name}, fine-tuned"] = _mean_components(result_scores(name), n_factors=2)
    return mean_variances


def measured_pretrainings() -> dict[str, Components]:
    """Return mean variances with three pretrainings, and with a larger pretraining variance."""
    stored = {
        name: _mean_components(few_labels_scores(name), n_factors=3)
        for name in ("arithmetic", "development")
    }
    large = {**stored["arithmetic"], (2,): stored["arithmetic"][SUBJECTS]}
    return {**stored, "pretrainings as subjects": large}


def measured_nested() -> dict[str, Components]:
    """Return variances of seeds and nested subjects, and the same without a variance of seeds."""
    mean_variances = {}
    for name in ("control", "nights"):
        within, between = [], []
        for values in _differences(result_scores(name)):
            assert np.isnan(values).any()
            of_seed = values[:, :, 0]  # one value in each row, the others are NaN
            n = np.isfinite(of_seed).sum(axis=0).mean()
            within.append(np.nanvar(of_seed, axis=0, ddof=1).mean())
            between.append(np.nanmean(of_seed, axis=0).var(ddof=1) - within[-1] / n)
        mean_variances[name] = {DRAWS: float(np.mean(between) / np.mean(within)), REST: 1.0}
    return {**mean_variances, "subjects only": {DRAWS: 0.0, REST: 1.0}}


def _mean_components(scores: pd.DataFrame, n_factors: int) -> Components:
    """Return variances from mean squares, averaged over all pairs of methods."""
    every = [
        mean_squares(values if n_factors == 3 else values.mean(axis=2))
        for values in _differences(scores)
        if n_factors == 2 or values.shape[2] > 1
    ]
    mean = {
        factors: (float(np.mean([each[factors][0] for each in every])), df)
        for factors, (_, df) in every[0].items()
    }
    mean_variances = variance_components(mean)
    return {
        factors: variance / mean_variances[REST] for factors, variance in mean_variances.items()
    }


def _differences(scores: pd.DataFrame) -> Iterator[np.ndarray]:
    """Yield differences of all pairs of methods, with NaN if subjects are nested in seeds."""
    keys = ["n_train_subjects", *({"centered"} & set(scores))]
    for _, part in scores.groupby(keys):
        chosen, pairs = pairs_of(part, part["metric"].iloc[0])
        for pair in pairs:
            values, _ = differences_of(chosen, *pair)
            # A single draw has no variance, and a deterministic method has no seed variance.
            if min(values.shape[:2]) > 1 and np.nanstd(values) > 0:
                yield values


def rates(
    kind: str, name: str, shape: tuple[int, ...], components: Components, n: int = N_SIMULATED
) -> dict[str, str | float]:
    """Return proportions of significant tests without a difference, and the power."""
    rng = np.random.default_rng(crc32(f"{kind} {name} {shape}".encode()))
    values = simulated(kind, shape, components, n, rng)  # (n, *shape)
    if kind == "own subjects of each draw":
        own = np.arange(shape[0]) % shape[1]
        means = values[:, np.arange(shape[0]), own]  # (n, n_subjects)
        tested = np.stack([means[:, own == draw].mean(axis=1) for draw in range(shape[1])], axis=1)
        per_seed = shape[0] // shape[1]
        of_seed = components[DRAWS] + components[REST] / per_seed
        detectable = detectable_in({SUBJECTS: of_seed}, shape[1:2])
    else:
        means = values.mean(axis=tuple(range(2, values.ndim)))
        tested = values
        detectable = detectable_in(components, shape)
    folds = kind == "cross-validation"
    n_train = shape[0] - 1 if folds else N_TRAIN
    variances = {
        title: round(components.get(factors, np.nan), 4)
        for title, factors in (("subject", (0,)), ("draw", (1,)), ("pretraining", (2,)))
    }
    return {
        "kind": kind,
        "variances": name,
        "n_subjects": shape[0],
        "n_draws": shape[1],
        "n_pretrainings": shape[2] if len(shape) > 2 else 1,
        **variances,
        "two_way": np.nan if shape[1] == 1 else _share(tested),
        "corrected": _share_corrected(means, n_train),
        "wilcoxon": float(np.mean(stats.wilcoxon(means, axis=1).pvalue < 0.05)),
        "power": np.nan if folds else _share(tested[: n // 4] + detectable),
    }


def simulated(
    kind: str,
    shape: tuple[int, ...],
    components: Components,
    n: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return n arrays of differences with a mean of zero."""
    values = np.zeros((n, *shape))
    for factors, variance in components.items():
        levels = [k if axis in factors else 1 for axis, k in enumerate(shape)]
        if kind == "a draw for each of two folds" and factors == DRAWS:
            levels[0] = 2  # halves of the subjects
        effects = rng.normal(0, np.sqrt(variance), (n, *levels))
        if levels[0] == 2:
            effects = np.repeat(effects, shape[0] // 2, axis=1)
        values += effects
    if kind == "cross-validation":
        # Training subjects in common, with the variance that the corrected test assumes.
        values += rng.normal(0, np.sqrt(1 / (shape[0] - 1)), (n, 1, 1))
    return values


def _share(values: np.ndarray) -> float:
    return float(np.mean([crossed_mean(each).p < 0.05 for each in values]))


def _share_corrected(means: np.ndarray, n_train: int) -> float:
    n = means.shape[1]
    errors = means.std(axis=1, ddof=1) * np.sqrt(1 / n + 1 / n_train)
    return float(np.mean(2 * stats.t.sf(np.abs(means.mean(axis=1)) / errors, n - 1) < 0.05))


if __name__ == "__main__":
    main()
