"""Scores of ``docs/measured/sleep``: pretraining on real sleep, linear probes and networks."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from stored_few_labels import _test, _test_table, long_scores, score_cell
from stored_scores import (
    DETECTABLE,
    HIGHER,
    MEASURED,
    P_HOLM,
    difference_cell,
    n_higher_cell,
)

from braindecode_pars import plotting
from braindecode_pars.evaluation import paired_tests
from braindecode_pars.evaluation.paired_tests import holm

__all__ = [
    *("FOLDER", "ablation_table", "control_table", "loss_table", "network_table"),
    *(
        "reproduced_table",
        "SHAM_TASKS",
        "sham_tests",
        "shift_figure",
        "sleep_figure",
        "sleep_scores",
        "sleep_table",
        "sleep_tests",
    ),
]

FOLDER = MEASURED / "sleep"
RANDOM = "random encoder"
LINEAR = ", linear patch embedding"
SHAM = ", sham"
#: Stored names of control signals and their names in tables.
CONTROL_NAMES = {
    "none": "unchanged",
    "slow": "high-pass filtered at 4 Hz",
    "phase": "phase-randomized",
    "amplitude": "amplitude-normalized",
    "order": "time-shuffled",
}
#: Stored names of pairs of patches and their names in tables.
PAIR_NAMES = {"apart": "without shared samples"}
#: Column head of the ablation.
DIFFERENCE_FROM_PAPER = "difference from the setting of the paper (uncorrected 95 % CI)"
#: Pretext tasks that are compared with their shams.
SHAM_TASKS = ("PARS", "DropPos", "MP3", "MAE")
#: Methods in the order of the tables.
METHODS = (
    *(RANDOM, "PARS", f"PARS{SHAM}", "PARS, 200 steps", "PARS without overlap"),
    *(task + end for task in SHAM_TASKS[1:] for end in ("", SHAM)),
    "features",
    *(f"{name}{LINEAR}" for name in (RANDOM, "PARS", "DropPos", "MP3", "MAE")),
    *("small", "noise", "hand-crafted features", "log band power"),
)
#: Methods that linear probes on PARS are compared with.
REFERENCES = (RANDOM, "PARS without overlap", "DropPos", "MP3", "MAE", "hand-crafted features")
#: Networks that the network with a frozen PARS encoder is compared with.
NETWORKS = (
    *(
        "from scratch",
        f"{RANDOM}, head trained",
        "DropPos, head trained",
        "MP3, head trained",
        "MAE, head trained",
    ),
    "PARS, fine-tuned",
)


def sleep_scores(name: str, *, centered: bool = False) -> pd.DataFrame:
    """Return tidy scores of a task, or of the networks."""
    scores = long_scores(FOLDER / f"{name}.csv")
    return scores[scores["centered"] == centered]


def sleep_table(name: str) -> pd.DataFrame:
    """Return mean ± SD over subjects, and the range of means over pretraining seeds."""
    rows = []
    for method in METHODS:
        row = {"method": method}
        for centered in (False, True):
            scores = sleep_scores(name, centered=centered)
            method_scores = scores[scores["method"] == method]
            for n, part in method_scores.groupby("n_train_subjects"):
                row[f"{labeled(n)}{', centered' if centered else ''}"] = score_cell(part)
        rows.append(row)
    return pd.DataFrame(rows)


def sleep_tests(name: str) -> pd.DataFrame:
    """Test PARS against other methods, with crossed random effects of subjects, draws and seeds."""
    pars, references = "PARS", REFERENCES
    if name == "networks_deep":
        pars, references = "PARS, head trained", NETWORKS
    tests = {}
    for n, scores in sleep_scores(name).groupby("n_train_subjects"):
        for reference in references:
            pair = scores[scores["method"].isin([pars, reference])]
            tests[n, reference] = _test(pair, pars, reference)
    return _test_table(tests, f"{pars} compared with")


def sham_tests(name: str) -> pd.DataFrame:
    """Test the difference of each pretext task from its sham.

    Subjects, draws and pretraining seeds are crossed random effects. p-values are Holm-corrected
    over the table, confidence intervals are uncorrected.
    """
    tests, means = {}, {}
    for centered, end in ((False, ""), (True, ", centered")):
        all_scores = sleep_scores(name, centered=centered)
        for n, scores in all_scores.groupby("n_train_subjects"):
            for task in SHAM_TASKS:
                names = [task, f"{task}{SHAM}", RANDOM]
                means[f"{n}{end}", task] = scores.groupby("method")["value"].mean()[names]
                pair = scores[scores["method"].isin(names[:2])]
                tests[f"{n}{end}", task] = _test(pair, *names[:2])
    p_values = holm([test["p"] for test in tests.values()])
    return pd.DataFrame(
        [
            {
                "labeled subjects": key[0],
                "pretext task": key[1],
                "mean scores: task, sham, random encoder": ", ".join(
                    map("{:.3f}".format, means[key])
                ),
                "difference from sham (uncorrected 95 % CI)": difference_cell(test),
                HIGHER: n_higher_cell(test),
                P_HOLM: f"{p:.2g}",
                DETECTABLE: f"{test['detectable']:.3f}",
            }
            for (key, test), p in zip(tests.items(), p_values, strict=True)
        ]
    )


def network_table() -> pd.DataFrame:
    """Return mean ± SD of the networks, by number of labeled subjects."""
    scores = sleep_scores("networks_deep")
    rows = []
    for method, method_scores in scores.groupby("method", sort=False):
        cells = {
            labeled(n): score_cell(part) for n, part in method_scores.groupby("n_train_subjects")
        }
        rows.append({"network": method} | cells)
    return pd.DataFrame(rows).fillna("")


def labeled(n: int) -> str:
    """Return the column head of a number of labeled subjects."""
    return f"{n} labeled subject{'s' * (n > 1)}"


def control_table(question: str) -> pd.DataFrame:
    """Return means over subjects, draws and pretraining seeds, by method and control signal."""
    stored = pd.read_csv(FOLDER / "controls.csv", comment="#")
    scores = stored[stored["question"] == question]
    subjects = [column for column in scores if column.startswith("ucddb")]
    means = scores.assign(
        method=scores["method"].str.replace(r", seed \d+$", "", regex=True),
        value=scores[subjects].mean(axis=1),
    )
    wide = means.groupby(["method", "control"], sort=False)["value"].mean().unstack(sort=False)
    wide = wide.reindex([method for method in METHODS if method in wide.index])
    return wide.map("{:.3f}".format).rename(columns=CONTROL_NAMES).reset_index()


def loss_table() -> pd.DataFrame:
    """Return relative losses on held-out subjects: mean and range over pretraining seeds."""
    stored = pd.read_csv(FOLDER / "losses.csv", comment="#")
    # Patches that share samples have such small shifts that their relative loss is meaningless.
    stored = stored[stored["pairs"] != "in common"]
    stored = stored.replace({"control": CONTROL_NAMES, "pairs": PAIR_NAMES})
    keys = ["method", "pairs", "control"]
    text = stored.groupby(keys, sort=False)["loss"].agg(
        lambda losses: f"{losses.mean():.2f} ({losses.min():.2f} to {losses.max():.2f})"
    )
    return text.unstack(sort=False).reset_index()


#: Columns of the ablation that describe a setting of PARS.
_SETTING = ["n_patches", "position_mask_ratio", "sampling", "decoder"]
#: Setting of the paper.
_OF_PAPER = "(40, 0.8, 'random', 'cross_attention')"


def ablation_table() -> pd.DataFrame:
    """Test the difference of each setting of PARS from the paper, in the same draws."""
    stored = pd.read_csv(FOLDER / "ablation.csv", comment="#")
    subjects = [column for column in stored if column.startswith("ucddb")]
    method = stored[_SETTING].apply(lambda row: str(tuple(row)), axis=1)
    scores = stored.assign(method=method).melt(
        ["method", "seed", "n_train_subjects"], subjects, var_name="subject"
    )
    scores = scores.assign(protocol="label_efficiency", dataset="deep", metric="balanced_accuracy")
    tests = paired_tests(scores, "balanced_accuracy", against=_OF_PAPER).set_index("method_a")
    means = scores.groupby("method")["value"].mean()
    rows = []
    for setting, setting_rows in stored.groupby(_SETTING, sort=False):
        name = str(tuple(setting))
        losses = [setting_rows[column].iloc[0] for column in ("loss_0", "loss_1")]
        n_patches, ratio, sampling, decoder = setting
        row = {
            "number of patches": "30, adjacent" if sampling == "grid" else str(n_patches),
            "position mask ratio": f"{ratio:g}",
            "decoder": {"cross_attention": "attention", "mlp": "MLP"}[decoder],
            "relative loss of two folds": ", ".join(map("{:.2f}".format, losses)),
            "balanced accuracy": f"{means[name]:.3f}",
            DIFFERENCE_FROM_PAPER: "",
            P_HOLM: "",
        }
        if name != _OF_PAPER:
            test = tests.loc[name]
            row[DIFFERENCE_FROM_PAPER] = difference_cell(test)
            row[P_HOLM] = f"{test['p_holm']:.2g}"
        rows.append(row)
    return pd.DataFrame(rows)


def reproduced_table() -> pd.DataFrame:
    """Return the table of ``reproduce sleep``: mean over subjects ± SD over seeds."""
    stored = pd.read_csv(FOLDER / "reproduced.csv", comment="#")
    rows = []
    for method, method_scores in stored.groupby("method", sort=False):
        row = {"method": method}
        for metric, values in method_scores.groupby("metric"):
            seed_means = values.groupby("seed")["value"].mean()
            row[metric.replace("_", " ")] = f"{seed_means.mean():.3f} ± {seed_means.std():.3f}"
        loss = method_scores["pretraining_loss"].mean()
        rows.append(row | {"relative pretraining loss": f"{loss:.2f}" if pd.notna(loss) else ""})
    return pd.DataFrame(rows)


def ten_lines_table() -> pd.DataFrame:
    """Return mean balanced accuracies of the README example, by seed and fold."""
    stored = pd.read_csv(FOLDER / "ten_lines.csv", comment="#")
    keys = ["method", "seed", "half"]
    wide = stored.set_index(keys)["balanced_accuracy"].unstack(["seed", "half"])
    wide.columns = [f"seed {seed}, fold {half}" for seed, half in wide.columns]
    wide["mean"] = wide.mean(axis=1)
    return wide.map("{:.3f}".format).reset_index()


def sleep_figure() -> Figure:
    """Plot scores against the number of labeled subjects, for both tasks."""
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 4.2), layout="constrained")
    shown = ("PARS", "DropPos", "MP3", "MAE", f"PARS{SHAM}", RANDOM, "hand-crafted features")
    for ax, (name, title) in zip(
        axes, {"deep": "stage 3 vs. 4", "wake": "wake vs. deep sleep"}.items(), strict=True
    ):
        scores = sleep_scores(name)
        scores = scores[scores["method"].isin(shown)]
        # Each pair of a draw and a pretraining seed is one seed of the figure.
        pretraining_seeds = scores["pretraining_seed"].fillna(0).astype(int)
        plotting.label_efficiency(
            scores.assign(seed=scores["seed"] * 10 + pretraining_seeds),
            "balanced_accuracy",
            "balanced accuracy",
            ax,
            methods=list(shown),
            chance=None if name == "wake" else 0.5,
        )
        ax.set(title=title, xlabel="number of labeled subjects")
        ax.get_legend().remove()
    axes[1].set_ylabel("")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def shift_figure() -> Figure:
    """Plot true and predicted shifts of one window of deep sleep, and their difference."""
    stored = pd.read_csv(FOLDER / "shifts.csv", comment="#")
    true, predicted = (
        stored.pivot(index="row", columns="column", values=name).to_numpy()
        for name in ("true", "predicted")
    )
    return plotting.shift_matrices(predicted, true)[0].figure
