"""Scores of ``docs/measured/sleep``: pretraining on real sleep, frozen and fine-tuned."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from stored_few_labels import _shown, _test, long_scores, score_cell
from stored_scores import MEASURED, difference_cell

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
UNTRAINED = "random encoder"
LINEAR = ", linear patch embedding"
SHAM = ", sham"
#: Pretext tasks that are compared with their shams.
SHAM_TASKS = ("PARS", "DropPos", "MP3", "MAE")
#: Methods in the order of the tables.
METHODS = (
    *(UNTRAINED, "PARS", f"PARS{SHAM}", "PARS, 200 steps", "PARS without overlap"),
    *(task + end for task in SHAM_TASKS[1:] for end in ("", SHAM)),
    "features",
    *(f"{name}{LINEAR}" for name in (UNTRAINED, "PARS", "DropPos", "MP3", "MAE")),
    *("small", "noise", "hand-crafted features", "log band power"),
)
#: What PARS is compared with.
RIVALS = (UNTRAINED, "PARS without overlap", "DropPos", "MP3", "MAE", "hand-crafted features")
#: Networks that PARS with a frozen encoder is compared with.
NETWORKS = (
    *(
        "from scratch",
        f"{UNTRAINED}, head trained",
        "DropPos, head trained",
        "MP3, head trained",
        "MAE, head trained",
    ),
    "PARS, fine-tuned",
)


def sleep_scores(name: str, *, centered: bool = False) -> pd.DataFrame:
    """Return tidy scores of a question, or of the networks."""
    scores = long_scores(FOLDER / f"{name}.csv")
    return scores[scores["centered"] == centered]


def sleep_table(name: str) -> pd.DataFrame:
    """Return means and SD over people, and the range of several pretrainings."""
    rows = []
    for method in METHODS:
        row = {"method": method}
        for centered in (False, True):
            scores = sleep_scores(name, centered=centered)
            for n, own in scores[scores["method"] == method].groupby("n_train_subjects"):
                row[f"{n}, centered" if centered else f"{n} labeled"] = score_cell(own)
        rows.append(row)
    return pd.DataFrame(rows)


def sleep_tests(name: str) -> pd.DataFrame:
    """Compare PARS with the other methods; people, draws and pretrainings are random."""
    pars, rivals = ("PARS, head trained", NETWORKS) if name == "networks_deep" else ("PARS", RIVALS)
    tests = {}
    for n, of_n in sleep_scores(name).groupby("n_train_subjects"):
        for other in rivals:
            pair = of_n[of_n["method"].isin([pars, other])]
            tests[n, other] = _test(pair, pars, other)
    return _shown(tests, "against")


def sham_tests(name: str) -> pd.DataFrame:
    """Compare each pretext task with its sham; subjects, draws and pretrainings are random.

    The p-values have Holm's correction over the table, the intervals have none.
    """
    tests, means = {}, {}
    for centered, end in ((False, ""), (True, ", centered")):
        for n, of_n in sleep_scores(name, centered=centered).groupby("n_train_subjects"):
            for task in SHAM_TASKS:
                names = [task, f"{task}{SHAM}", UNTRAINED]
                means[f"{n}{end}", task] = of_n.groupby("method")["value"].mean()[names]
                pair = of_n[of_n["method"].isin(names[:2])]
                tests[f"{n}{end}", task] = _test(pair, *names[:2])
    p_values = holm([test["p"] for test in tests.values()])
    return pd.DataFrame(
        [
            {
                "labeled subjects": key[0],
                "pretext task": key[1],
                "task, sham, random encoder": ", ".join(map("{:.3f}".format, means[key])),
                "difference from sham (95 % CI)": difference_cell(test),
                "higher score in": f"{test['wins']} of {test['n_subjects']}",
                "p (Holm)": f"{p:.2g}",
                "minimum detectable difference": f"{test['detectable']:.3f}",
            }
            for (key, test), p in zip(tests.items(), p_values, strict=True)
        ]
    )


def network_table() -> pd.DataFrame:
    """Return means of the networks, a column for each number of labeled people."""
    scores = sleep_scores("networks_deep")
    rows = []
    for method, own in scores.groupby("method", sort=False):
        cells = {f"{n} labeled": score_cell(part) for n, part in own.groupby("n_train_subjects")}
        rows.append({"network": method} | cells)
    return pd.DataFrame(rows).fillna("")


def control_table(question: str) -> pd.DataFrame:
    """Return means over people, draws and pretrainings, a column for each control."""
    stored = pd.read_csv(FOLDER / "controls.csv", comment="#")
    own = stored[stored["question"] == question]
    people = [column for column in own if column.startswith("ucddb")]
    means = own.assign(
        method=own["method"].str.replace(r", seed \d+$", "", regex=True),
        value=own[people].mean(axis=1),
    )
    wide = means.groupby(["method", "control"], sort=False)["value"].mean().unstack(sort=False)
    wide = wide.reindex([method for method in METHODS if method in wide.index])
    return wide.map("{:.3f}".format).rename(columns={"none": "as it is"}).reset_index()


def loss_table() -> pd.DataFrame:
    """Return losses of PARS on unseen people relative to chance, the range of all pretrainings."""
    stored = pd.read_csv(FOLDER / "losses.csv", comment="#")
    # Shifts of patches that share samples are so small that their own relative loss says nothing.
    stored = stored[stored["pairs"] != "in common"].replace({"control": {"none": "as it is"}})
    keys = ["method", "pairs", "control"]
    text = stored.groupby(keys, sort=False)["loss"].agg(
        lambda losses: f"{losses.mean():.2f} ({losses.min():.2f} to {losses.max():.2f})"
    )
    return text.unstack(sort=False).reset_index()


#: Columns of the ablation that name a setting of PARS, and the one of the paper.
_SETTING = ["n_patches", "position_mask_ratio", "sampling", "decoder"]
_OF_PAPER = "(40, 0.8, 'random', 'cross_attention')"


def ablation_table() -> pd.DataFrame:
    """Compare each setting of PARS with the paper's, in the same draws; two halves of people."""
    stored = pd.read_csv(FOLDER / "ablation.csv", comment="#")
    people = [column for column in stored if column.startswith("ucddb")]
    method = stored[_SETTING].apply(lambda row: str(tuple(row)), axis=1)
    scores = stored.assign(method=method).melt(
        ["method", "seed", "n_train_subjects"], people, var_name="subject"
    )
    scores = scores.assign(protocol="label_efficiency", dataset="deep", metric="balanced_accuracy")
    tests = paired_tests(scores, "balanced_accuracy", against=_OF_PAPER).set_index("method_a")
    means = scores.groupby("method")["value"].mean()
    rows = []
    for setting, own in stored.groupby(_SETTING, sort=False):
        name = str(tuple(setting))
        n_patches, ratio, sampling, decoder = setting
        row = {
            "patches": "30, side by side" if sampling == "grid" else str(n_patches),
            "position mask ratio": f"{ratio:g}",
            "decoder": {"cross_attention": "attention", "mlp": "MLP"}[decoder],
            "loss, 1 is chance": f"{own['loss_0'].iloc[0]:.2f}, {own['loss_1'].iloc[0]:.2f}",
            "balanced accuracy": f"{means[name]:.3f}",
            "from the paper's setting (95 %)": "",
            "p": "",
        }
        if name != _OF_PAPER:
            test = tests.loc[name]
            row["from the paper's setting (95 %)"] = difference_cell(test)
            row["p"] = f"{test['p_holm']:.2g}"
        rows.append(row)
    return pd.DataFrame(rows)


def reproduced_table() -> pd.DataFrame:
    """Return what ``reproduce sleep`` prints: means over people, and SD over seeds."""
    stored = pd.read_csv(FOLDER / "reproduced.csv", comment="#")
    rows = []
    for method, own in stored.groupby("method", sort=False):
        row = {"method": method}
        for metric, values in own.groupby("metric"):
            of_seeds = values.groupby("seed")["value"].mean()
            row[metric.replace("_", " ")] = f"{of_seeds.mean():.3f} ± {of_seeds.std():.3f}"
        loss = own["pretraining_loss"].mean()
        rows.append(row | {"pretraining loss": f"{loss:.2f}" if pd.notna(loss) else ""})
    return pd.DataFrame(rows)


def ten_lines_table() -> pd.DataFrame:
    """Return what the README's ten lines score: means of six people, by seed and half."""
    stored = pd.read_csv(FOLDER / "ten_lines.csv", comment="#")
    keys = ["method", "seed", "half"]
    wide = stored.set_index(keys)["balanced_accuracy"].unstack(["seed", "half"])
    wide.columns = [f"seed {seed}, half {half}" for seed, half in wide.columns]
    wide["mean"] = wide.mean(axis=1)
    return wide.map("{:.3f}".format).reset_index()


def sleep_figure() -> Figure:
    """Draw label efficiency on both questions."""
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 4.2), layout="constrained")
    shown = ("PARS", "DropPos", "MP3", "MAE", f"PARS{SHAM}", UNTRAINED, "hand-crafted features")
    for ax, (name, title) in zip(
        axes, {"deep": "stage 3 or 4", "wake": "wake or deep sleep"}.items(), strict=True
    ):
        scores = sleep_scores(name)
        scores = scores[scores["method"].isin(shown)]
        # A draw and a pretraining are one seed of the figure.
        several = scores["pretraining_seed"].fillna(0).astype(int)
        plotting.label_efficiency(
            scores.assign(seed=scores["seed"] * 10 + several),
            "balanced_accuracy",
            "balanced accuracy",
            ax,
            methods=list(shown),
            chance=None if name == "wake" else 0.5,
        )
        ax.set(title=title, xlabel="labeled people")
        ax.get_legend().remove()
    axes[1].set_ylabel("")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def shift_figure() -> Figure:
    """Draw true and predicted shifts of one window of deep sleep, and their difference."""
    stored = pd.read_csv(FOLDER / "shifts.csv", comment="#")
    true, predicted = (
        stored.pivot(index="row", columns="column", values=name).to_numpy()
        for name in ("true", "predicted")
    )
    return plotting.shift_matrices(predicted, true)[0].figure
