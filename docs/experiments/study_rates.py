"""Error rates and power of the primary test of a study: PARS vs. its sham.

    python docs/experiments/study_rates.py docs/measured/study_rates.csv

Two folds of subjects are simulated. The labeled subjects of each fold are drawn from the other
half, in disjoint sets for twelve draws, with three pretraining seeds. A labeled subject has an
additive effect on all scores, on the scores of each test subject, and on the scores of each
pretraining seed; all effects are normal. Columns ``folds`` contain the proportion of significant
tests with ``crossed_mean_of_folds``, and columns ``crossed`` with ``crossed_mean`` and one
pretraining seed for all draws and both folds; ``power_*`` is for a true difference of 0.04.
Variances are in units of 1e-4: those of ``study_variances.csv``, averaged over numbers of steps
with negative values set to zero, and extreme variances.
"""

from __future__ import annotations

import sys
from itertools import combinations, product
from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
from scipy.special import stdtr
from stored_table import store_table

from braindecode_pars.evaluation.random_effects import crossed_mean, crossed_mean_of_folds

MEASURED = Path(__file__).parents[1] / "measured"

#: Variances of effects by name, in units of 1e-4.
Components = dict[str, float]

SIZES = (6, 12, 16, 24, 40, 60, 100)
N_SIMULATED, N_AT_ONCE, N_COMPARED = 4000, 250, 5
N_DRAWS, N_PRETRAININGS = 12, 3
TRUE = 0.04
UNIT = 1e-4
#: Effects of a fit that are not additive, and too small to change the variance of a mean.
SMALL = 0.01


def main() -> None:
    cells = [(n, N_PRETRAININGS, name, c) for n, (name, c) in product(SIZES, variances().items())]
    sleep = variances()["sleep"]
    cells += [(n, 6, "sleep", sleep) for n in (12, 24)]
    for proportion, n in product((0.1, 0.5, 1.0), (12, 24, 40, 100)):
        luck = {**sleep, "unlabeled": proportion * sleep["subject"]}
        cells.append((n, N_PRETRAININGS, f"sleep, unlabeled {proportion:g} of subjects", luck))
    for n in (12, 24, 100):
        same = {**variances()["labeled = subjects"], "correlation": 0.5}
        cells.append((n, N_PRETRAININGS, "labeled = subjects, correlated", same))
    table = pd.DataFrame([rates(*cell) for cell in cells])
    command = "python docs/experiments/study_rates.py docs/measured/study_rates.csv"
    remark = f"{N_SIMULATED} simulated studies for each row"
    store_table(table, Path(sys.argv[1]), command, remark, index=False, float_format="%.4g")


def variances() -> dict[str, Components]:
    """Return the measured variances and extreme variances."""
    stored = pd.read_csv(MEASURED / "study_variances.csv", comment="#")
    stored = stored.groupby("sample").mean().clip(lower=0).fillna(0.0)
    effects = stored.drop(columns=["steps", "mean", "labeled_in_group"])
    sleep, arithmetic = (effects.loc[name].to_dict() for name in ("sleep", "arithmetic"))
    in_group = stored["labeled_in_group"]
    subject = sleep["subject"]
    # One pretraining seed of arithmetic: assume a variance proportional to that of sleep.
    arithmetic["pretraining"] = sleep["pretraining"] / subject * arithmetic["subject"]
    return {
        "sleep": sleep,
        "sleep, labeled in groups": {**sleep, "labeled": in_group["sleep"]},
        "arithmetic": {**arithmetic, "labeled": in_group["arithmetic"]},
        "pretraining = subjects": {**sleep, "pretraining": subject},
        "labeled = subjects": {**sleep, "labeled": 4 * subject},
        "labeled large": {**sleep, "labeled": 40 * subject},
        "pretraining = labeled = subjects": {
            **sleep,
            "pretraining": subject,
            "labeled": 4 * subject,
        },
        "subjects only": {"subject": 1.0, "remainder": SMALL},
        "labeled only": {"labeled": 4.0, "remainder": SMALL},
        "pretraining only": {"pretraining": 1.0, "remainder": SMALL},
        "draws only": {"draw": 1.0, "remainder": SMALL},
        "remainder only": {"remainder": 1.0},
    }


def design(n_subjects: int) -> tuple[int, int, int, int]:
    """Return the number of available subjects, and the numbers and sizes of groups and sets."""
    pool = n_subjects // 2
    n_labeled = max(1, min(4, pool // 3))
    n_sets = max(n for n in (3, 4, 6, 12) if n <= pool // n_labeled)
    return pool, n_labeled, N_DRAWS // n_sets, n_sets


def rates(
    n_subjects: int, n_pretrainings: int, name: str, components: Components
) -> dict[str, str | float]:
    """Return the proportions of significant tests without and with a true difference."""
    rng = np.random.default_rng(crc32(f"{name} {n_subjects} {n_pretrainings}".encode()))
    significant: dict[str, list[np.ndarray]] = {}
    for k in range(N_SIMULATED // N_AT_ONCE):
        folds = simulated(n_subjects, n_pretrainings, components, rng)
        common = simulated(n_subjects, 1, components, rng, one_pretraining=True)
        crossed = [np.concatenate(common, axis=1).reshape(N_AT_ONCE, n_subjects, 1, N_DRAWS, 1)]
        if k == 0:
            compare(folds, crossed)
        for column, values in (("folds", folds), ("crossed", crossed)):
            mean, error, df = tested(values)
            for kind, true in (("", 0.0), ("power_", TRUE / UNIT**0.5)):
                p = 2 * stdtr(df, -np.abs(mean + true) / error)
                significant.setdefault(kind + column, []).append(p < 0.05)
    shares = {column: float(np.mean(found)) for column, found in significant.items()}
    _, n_labeled, n_dealings, n_sets = design(n_subjects)
    return {
        "variances": name,
        "n_subjects": n_subjects,
        "n_labeled": n_labeled,
        "n_dealings": n_dealings,
        "n_sets": n_sets,
        "n_pretrainings": n_pretrainings,
        **shares,
        **{f"variance_{effect}": variance for effect, variance in components.items()},
    }


def simulated(
    n_subjects: int,
    n_pretrainings: int,
    components: Components,
    rng: np.random.Generator,
    one_pretraining: bool = False,
) -> list[np.ndarray]:
    """Return the differences of both folds, without a true difference, in units of 0.01.

    The shape is (n_studies, n_subjects, n_dealings, n_sets, n_pretrainings).
    """
    n, _, n_dealings, n_sets = design(n_subjects)
    subjects, of_labeled = normal(rng, 2, n), normal(rng, 2, n)
    # Each subject has one effect as test subject, and one as labeled subject of the other fold.
    r = components.get("correlation", 0.0)
    labeled = r * subjects[:, ::-1] + np.float32(np.sqrt(1 - r**2)) * of_labeled
    levels = {
        "draw": (1, N_DRAWS, 1),
        "subject_draw": (n, N_DRAWS, 1),
        "pretraining": (1, 1, n_pretrainings),
        "subject_pretraining": (n, 1, n_pretrainings),
        "unlabeled": (1, 1, 1),
        "remainder": (n, N_DRAWS, n_pretrainings),
    }
    of_both = normal(rng, 1, 1, n_pretrainings)

    def effect(name: str, fold: int, member: np.ndarray) -> np.ndarray:
        """Return subjects x draws x pretrainings; axes without levels have length one."""
        if name == "subject":
            return subjects[:, fold, :, None, None]
        if name == "labeled":
            return (member @ labeled[:, fold, :, None])[:, None]
        if name == "subject_labeled":
            return (normal(rng, n, n) @ member.transpose(0, 2, 1))[..., None]
        if name == "labeled_pretraining":
            return (member @ normal(rng, n, n_pretrainings))[:, None]
        if name == "pretraining" and one_pretraining:
            return of_both
        return normal(rng, *levels[name])

    folds = []
    for fold in (0, 1):
        member = dealt(n_subjects, rng)
        shape = (N_AT_ONCE, n, N_DRAWS, n_pretrainings)
        values = np.zeros(shape, np.float32)
        for name, variance in components.items():
            if variance and name != "correlation":
                values += np.float32(np.sqrt(variance)) * effect(name, fold, member)
        folds.append(values.reshape(N_AT_ONCE, n, n_dealings, n_sets, n_pretrainings))
    return folds


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal((N_AT_ONCE, *shape), dtype=np.float32)


def dealt(n_subjects: int, rng: np.random.Generator) -> np.ndarray:
    """Return the weight of each subject in each draw: (n_studies, n_draws, n_pool)."""
    pool, n_labeled, n_dealings, n_sets = design(n_subjects)
    order = rng.permuted(np.tile(np.arange(pool), (N_AT_ONCE, n_dealings, 1)), axis=2)
    sets = order[:, :, : n_sets * n_labeled].reshape(N_AT_ONCE, N_DRAWS, n_labeled)
    member = np.zeros((N_AT_ONCE, N_DRAWS, pool), np.float32)
    np.put_along_axis(member, sets, 1 / n_labeled, axis=2)
    return member


def tested(folds: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, standard error and degrees of freedom, as ``crossed_mean_of_folds``.

    For folds of equal sizes, and many studies at once.
    """
    weight = 1 / len(folds)
    terms = []
    for values in folds:
        n_pool = values.shape[1] if len(folds) > 1 else 0
        n_dealings, n_sets = values.shape[2:4]
        overlap = (n_sets - 1) / (max(n_pool, n_sets) - 1)
        n_independent = 1 / (1 / n_dealings + (1 - 1 / n_dealings) * overlap)
        means = values.mean(axis=(2, 3), keepdims=True)
        terms += [(f, weight**2 * v, df) for f, v, df in _terms(means)]
        for f, v, df in _terms(values):
            if 3 in f:
                terms.append((f, weight**2 * v, df * n_independent))
    total = sum((-1) ** (len(f) + 1) * v for f, v, _ in terms)
    df = total**2 / sum(v**2 / df for _, v, df in terms)
    for axis in {f[0] for f, _, _ in terms if len(f) == 1}:
        own = [(v, n) for f, v, n in terms if f == (axis,)]
        variance = sum(v for v, _ in own)
        is_larger = variance >= total
        df = np.where(is_larger, variance**2 / sum(v**2 / n for v, n in own), df)
        total = np.maximum(total, variance)
    mean = np.mean([values.mean(axis=(1, 2, 3, 4)) for values in folds], axis=0)
    return mean, np.sqrt(total), df


def _terms(values: np.ndarray) -> list[tuple[tuple[int, ...], np.ndarray, int]]:
    axes = [axis for axis in (1, 3, 4) if values.shape[axis] > 1]
    effects: dict[tuple[int, ...], np.ndarray] = {}
    terms = []
    for size in range(len(axes) + 1):
        for factors in combinations(axes, size):
            others = tuple(axis for axis in axes if axis not in factors)
            within = [effect for of, effect in effects.items() if set(of) < set(factors)]
            effects[factors] = effect = values.mean(others, keepdims=True) - sum(within)
            if factors:
                df = int(np.prod([values.shape[axis] - 1 for axis in factors]))
                entries = df * np.prod([values.shape[axis] for axis in factors])
                squares = (effect**2).sum(axis=factors, keepdims=True) / entries
                terms.append((factors, squares.mean(axis=(1, 2, 3, 4)), df))
    return terms


def compare(folds: list[np.ndarray], crossed: list[np.ndarray]) -> None:
    """Compare the first studies with the functions of the package."""
    for k in range(N_COMPARED):
        of_folds = crossed_mean_of_folds([values[k] for values in folds])
        of_crossed = crossed_mean(crossed[0][k, :, 0, :, 0])
        for values, expected in ((folds, of_folds), (crossed, of_crossed)):
            found = [float(column[k]) for column in tested(values)]
            np.testing.assert_allclose(found, expected[:3], rtol=1e-4, atol=1e-9)


if __name__ == "__main__":
    main()
