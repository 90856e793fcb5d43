"""Public functions and classes with any value for any argument.

Unlike in the other modules, nothing is known of the right result: a call must end with a result
that can be right, or with an error that explains.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import cache
from numbers import Number
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import mne
import numpy as np
import pandas as pd
import scipy.sparse
import torch
from hypothesis import strategies as st
from matplotlib import pyplot as plt

from braindecode_pars import (
    PARSClassifier,
    PARSEmbedder,
    PARSNet,
    PatchEncoder,
    SubjectCentering,
    as_sklearn,
    callbacks,
    datasets,
    encoder,
    evaluation,
    models,
    plotting,
    predictions,
    pretext,
    pretrained,
    pretraining,
    recordings,
    runs,
)
from braindecode_pars.baselines import make_methods
from braindecode_pars.estimators import EuclideanAlignment, NetworkClassifier
from braindecode_pars.pretext.pairwise import CrossAttentionDecoder, PairwiseMLPDecoder
from braindecode_pars.recordings import Preprocessing
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows import SingleChannelWindows
from fuzz import folders, small
from fuzz.outcomes import Case

mpl.use("agg")

#: Values of no argument's type: a call that accepts one is wrong, but for those in TAKES_ANYTHING.
NONSENSE = {
    "object()": object(),
    "1j": 1j,
    "...": ...,
    "a lambda": lambda *given: 3,
    "a type": int,
    "b'pars'": b"pars",
    "a module": np,
}
#: Values that some arguments take.
SPECIAL = {
    "None": None,
    "True": True,
    "False": False,
    "np.bool_(True)": np.bool_(True),
    "np.int64(0)": np.int64(0),
    "np.int8(-1)": np.int8(-1),
    "np.float32(nan)": np.float32("nan"),
    "np.float64(2.0)": np.float64(2),
    "np.str_('pars')": np.str_("pars"),
    "np.array(2)": np.array(2),
    "np.arange(3)": np.arange(3),
    "an array of texts": np.array(["a", "b"]),
    "an array of objects": np.array([None, "a", 1], dtype=object),
    "an empty array": np.zeros((0, 2, 300)),
    "zeros of no dimension": np.zeros(()),
    "np.datetime64('NaT')": np.datetime64("NaT"),
    "pd.NA": pd.NA,
    "a Series": pd.Series([1, 2], index=[5, 5]),
    "a Series of missing": pd.Series([pd.NA, "a"], dtype="string"),
    "an empty DataFrame": pd.DataFrame(),
    "a DataFrame": pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
    "a sparse matrix": scipy.sparse.csr_matrix(np.eye(3)),
    "a tensor": torch.arange(3),
    "a scalar tensor": torch.tensor(1.5),
    "a tensor of NaN": torch.full((2, 3), torch.nan),
    "Decimal('0.5')": Decimal("0.5"),
    "Fraction(1, 2)": Fraction(1, 2),
    "Path('.')": Path("."),
    "range(3)": range(3),
    "an iterator": iter(()),
    "np.ma.masked": np.ma.masked,
    "a masked array": np.ma.masked_equal(np.arange(3), 1),
    "a PatchEncoder": None,  # made fresh, see below
}
numbers = st.one_of(
    st.sampled_from([0, 1, -1, 2, 3, 8, 300, 10**12, 2**63, 10**30, -(2**70)]),
    st.sampled_from([0.0, 0.5, 1.0, 2.0, -0.5, 1.5, np.nan, np.inf, -np.inf, 1e-320, 1e300]),
    st.integers(-10, 1000),
    st.floats(-10, 1000),
)
texts = st.one_of(
    st.sampled_from(["", " ", "nothing", "0", "nan", "pars", "mae", "\0", "../..", "a" * 5000]),
    st.sampled_from(["[bold]", "~", "NaN", "None", "C3", "{subject}", "kappa", "auto", "mean"]),
    st.text(max_size=5),
)
simple = st.one_of(numbers, texts, st.none(), st.booleans())
values = st.one_of(
    simple,
    simple,
    st.sampled_from(sorted(SPECIAL)).map(lambda name: Named(name, SPECIAL)),
    st.sampled_from(sorted(NONSENSE)).map(lambda name: Named(name, NONSENSE)),
    st.lists(simple, max_size=3),
    st.lists(simple, max_size=3).map(tuple),
    st.dictionaries(texts, simple, max_size=2),
    st.dictionaries(simple, simple, max_size=2),
    st.sets(st.integers(0, 3), max_size=2),
)


class Named(NamedTuple):
    """A value with a name, for reports."""

    name: str
    table: dict[str, Any]

    @property
    def value(self) -> Any:
        if self.name == "a PatchEncoder":
            return PatchEncoder(50, **small.ENCODER)
        if self.name == "an iterator":
            return iter((1, 2))
        return self.table[self.name]


# Data -----------------------------------------------------------------------------------------

X = small.signals(0)
LABELS = small.LABELS
#: Windows and signals of any shape and type.
shapes = st.one_of(
    st.lists(st.sampled_from([0, 1, 2, 3, 12, 50, 300]), max_size=3).map(tuple),
    st.lists(st.integers(0, 3), min_size=4, max_size=5).map(tuple),
)
dtypes = st.sampled_from(["f4", "f8", "f2", "i2", "i8", "u1", "?", "c8", "O", "U3", "M8[s]", ">f4"])


@st.composite
def arrays(draw):
    """An array of any shape and type, sometimes with a value that is not finite."""
    shape = draw(st.one_of(shapes, st.sampled_from([X.shape, (1, 2, 300), (12, 300), (2, 300)])))
    dtype, fill = draw(dtypes), draw(st.sampled_from(["noise", "noise", "zeros", "nan", "huge"]))
    text = f"array {shape} of {dtype}, {fill}"
    noise = np.array(np.random.default_rng(0).normal(size=shape))
    data = np.array(noise * {"noise": 1, "zeros": 0, "nan": np.nan, "huge": 1e38}[fill])
    with np.errstate(all="ignore"):
        try:
            data = np.array(data.astype(dtype))
        except (ValueError, TypeError):
            data = np.zeros(shape, dtype)
    form = draw(st.sampled_from(["array", "array", "list", "tensor", "frame"]))
    if form == "list":
        return Named(f"list of {text}", {f"list of {text}": data.tolist()})
    if form == "tensor" and data.dtype.kind in "fiub?c" and data.dtype.isnative:
        return Named(f"tensor of {text}", {f"tensor of {text}": torch.from_numpy(np.array(data))})
    if form == "frame" and data.ndim == 2:
        return Named(f"frame of {text}", {f"frame of {text}": pd.DataFrame(data)})
    return Named(text, {text: data})


@st.composite
def tensors(draw):
    shape = draw(st.one_of(shapes, st.sampled_from([(2, 300), (2, 2, 300), (4, 6, 8), (2, 6, 50)])))
    dtype = draw(st.sampled_from(["float32", "float32", "float64", "int64", "bool", "complex64"]))
    text = f"tensor {shape} of {dtype}"
    data = torch.ones(shape).to(getattr(torch, dtype))
    return Named(text, {text: data})


labels = st.one_of(
    st.lists(simple, min_size=12, max_size=12),
    st.lists(st.sampled_from([0, 1, -1, 2]), min_size=12, max_size=12),
    st.lists(st.sampled_from(["a", "b", "", None]), min_size=12, max_size=12),
    st.lists(st.sampled_from([0.0, 1.0, np.nan, 0.5]), min_size=12, max_size=12),
    st.lists(simple, max_size=14),
    arrays(),
)


@st.composite
def frames(draw, columns, n_rows=None):
    """A table of scores, predictions or losses in which something is odd."""
    frame = columns()
    changes = draw(st.integers(1, 2))
    did = []
    for _ in range(changes):
        change = draw(st.sampled_from(["drop", "fill", "cell", "empty", "type", "repeat", "index"]))
        name = draw(st.sampled_from(list(frame.columns))) if len(frame.columns) else None
        did.append(f"{change} {name}")
        if name is None:
            continue
        if change == "drop":
            frame = frame.drop(columns=name)
        elif change == "fill":
            value = draw(simple)
            did[-1] += f" {value!r}"
            frame[name] = [value] * len(frame)
        elif change == "cell" and len(frame):
            value = draw(simple)
            did[-1] += f" {value!r}"
            column = frame[name].astype(object)
            column.iloc[draw(st.integers(0, len(frame) - 1))] = value
            frame[name] = column
        elif change == "empty":
            frame = frame.iloc[:0]
        elif change == "type":
            to = draw(st.sampled_from([str, object, "category"]))
            frame[name] = frame[name].astype(to)
        elif change == "repeat":
            frame = pd.concat([frame, frame])
        elif change == "index":
            frame = frame.set_index(name)
    text = "frame: " + ", ".join(did)
    return Named(text, {text: frame})


def scores() -> pd.DataFrame:
    rows = [
        dict(
            protocol="compare",
            dataset="d",
            method=m,
            subject=s,
            n_train_subjects=3,
            seed=0,
            metric="kappa",
            value=0.1 * s + gain,
        )
        for m, gain in (("a", 0.0), ("b", 0.1), ("c", 0.05))
        for s in range(5)
    ]
    rows += [{**row, "subject": "all", "value": 0.5} for row in rows[::5]]
    return pd.DataFrame(rows)


def crossed() -> pd.DataFrame:
    """Scores with two draws, as ``power`` needs them."""
    return pd.concat([scores(), scores().assign(seed=1)], ignore_index=True)


def grid_scores() -> pd.DataFrame:
    frames = [
        scores().assign(mask=m, n=n, method=f"mask={m}, n={n}") for m in (0.5, 0.8) for n in (4, 8)
    ]
    return pd.concat(frames, ignore_index=True)


def efficiency_scores() -> pd.DataFrame:
    frames = [scores().assign(n_train_subjects=n, seed=s) for n in (1, 2) for s in (0, 1)]
    return pd.concat(frames, ignore_index=True)


def predicted() -> pd.DataFrame:
    return pd.DataFrame(
        dict(
            onset=[0.0, 30, 60, 90],
            duration=30.0,
            label=["W", "N1", "N1", "R"],
            probability_W=[0.8, 0.1, 0.2, 0.1],
            probability_N1=[0.1, 0.8, 0.7, 0.1],
            probability_R=[0.1, 0.1, 0.1, 0.8],
            entropy=0.5,
        )
    )


def history() -> pd.DataFrame:
    return pd.DataFrame(
        dict(
            epoch=[1, 2, 3],
            train_loss=[3.0, 2, 1],
            train_loss_relative=[1, 0.8, 0.7],
            train_loss_lag0=[1, 0.5, 0.2],
            train_loss_lag1=[1, 0.5, 0.2],
            valid_loss=[3.0, 2, 2],
        )
    )


def phases() -> pd.DataFrame:
    return history().assign(phase="pretrain", method="m", seed=0)


# Targets ---------------------------------------------------------------------------------------


class Target(NamedTuple):
    """A public callable: right arguments, made fresh, and odd values of some of them."""

    call: Callable[..., Any]
    good: Callable[[Path], dict[str, Any]]
    odd: dict[str, Any]
    also: tuple[str, ...]  # further arguments to vary


TARGETS: dict[str, Target] = {}


def target(name: str, call: Callable[..., Any], good: Any = None, *also: str, **odd: Any) -> None:
    made = good if callable(good) else (lambda folder: dict(good or {}))
    parameters = inspect.signature(call).parameters.values()
    names = [
        p.name
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        and p.name != "self"
        and not p.name.startswith("_")
    ]
    names = list(dict.fromkeys([*names, *also]))
    TARGETS[name] = Target(call, made, {k: v for k, v in odd.items() if k in names}, tuple(names))


def fit_and_predict(cls: type, name: str) -> Callable[..., Any]:
    def call(**arguments):
        model = cls(**{**small.MODELS[name][1], "sfreq": small.SFREQ, **arguments})
        return small.output(model.fit(X, LABELS), X)

    call.__signature__ = inspect.signature(cls)
    return call


for name, cls in dict(
    classifier=PARSClassifier, embedder=PARSEmbedder, network=NetworkClassifier
).items():
    target(f"{cls.__name__}().fit", fit_and_predict(cls, name))
for name in (
    *("LogBandPower", "SpatialCovariance", "ChannelFeatures"),
    *("LogAmplitude", "SlowVoltages"),
):
    made = getattr(evaluation, name)

    def call(made=made, **arguments):
        return made(**{"sfreq": 100.0, **arguments}).fit(X).transform(X)

    call.__signature__ = inspect.signature(made)
    target(name, call)


def fitted_method(name: str, method: str) -> Callable[..., Any]:
    def call(**arguments):
        if method == "fit":
            model = small.make(name, sfreq=small.SFREQ)
            return small.output(model.fit(**arguments), X)
        return getattr(small.fitted(name), method)(**arguments)

    call.__signature__ = inspect.signature(getattr(small.MODELS[name][0], method))
    return call


for name, methods in {
    "classifier": (
        "fit",
        "predict",
        "predict_proba",
        "score",
        "decision_function",
        "predict_raw",
        "pretrained",
        "training_cost",
        "n_encoder_parameters",
    ),
    "embedder": ("fit", "transform", "get_feature_names_out", "training_cost"),
    "network": ("fit", "predict", "predict_proba", "score", "decision_function", "predict_raw"),
    "band power": ("fit", "transform"),
}.items():
    for method in methods:
        good = {"X": X, "y": LABELS} if method in ("fit", "score") else {"X": X}
        if method == "predict_raw":
            good = lambda folder: {"raw": small.recording(0)}  # noqa: E731
        if method == "get_feature_names_out":
            good = {}
        target(
            f"{name}.{method}",
            fitted_method(name, method),
            good,
            X=arrays(),
            y=labels,
            groups=labels,
            sample_weight=labels,
            unlabeled=arrays(),
        )


def covariances(**arguments):
    return evaluation.SpatialCovariance(sfreq=100.0).fit(X).transform(**arguments)


target("SpatialCovariance.transform", covariances, {"X": X}, "X", X=arrays())


def centred(transformer, min_windows=10, X=X, groups=None):
    made = SubjectCentering(transformer, min_windows=min_windows)
    return made.fit(X, groups=groups).transform(X, groups=groups)


GROUPS = np.arange(12) // 6
target(
    "SubjectCentering",
    centred,
    lambda f: dict(transformer=evaluation.LogBandPower(sfreq=100.0), groups=GROUPS, min_windows=2),
    X=arrays(),
    groups=labels,
)


def aligned(channels=None, min_windows=10, X=X, groups=GROUPS):
    made = EuclideanAlignment(channels=channels, min_windows=min_windows)
    return np.stack([w[0] for w in [made.fit_transform(X, groups=groups)[i] for i in range(2)]])


target("EuclideanAlignment", aligned, dict(min_windows=2), X=arrays(), groups=labels)
target("make_methods", make_methods, dict(names=["scratch"]), "nothing")

# Networks and tasks.
SIZES = dict(n_outputs=2, n_chans=2, n_times=300, sfreq=100.0, **small.ENCODER)


def network(**arguments):
    return PARSNet(**{**SIZES, **arguments}).eval()(torch.from_numpy(X))


network.__signature__ = inspect.signature(PARSNet)
target("PARSNet", network)


@cache
def net() -> PARSNet:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return PARSNet(**SIZES, head="both", chs_info=small.recording(0).info["chs"]).eval()


def batch(folder=None):
    return dict(x=torch.from_numpy(X))


for method in ("forward", "channel_attention", "encode_channels"):

    def call(method=method, **arguments):
        return getattr(net(), method)(**arguments)

    call.__signature__ = inspect.signature(getattr(PARSNet, method))
    target(
        f"PARSNet.{method}",
        call,
        batch,
        x=tensors(),
        pos=tensors(),
        ch_mask=tensors(),
    )


def reset(n_outputs):
    made = PARSNet(**SIZES)
    made.reset_head(n_outputs)
    return made.eval()(torch.from_numpy(X))


target("PARSNet.reset_head", reset, dict(n_outputs=2))


def from_pretrained(folder, **arguments):
    return PARSNet.from_pretrained(folder, **arguments)(torch.from_numpy(X))


target(
    "PARSNet.from_pretrained",
    from_pretrained,
    lambda f: dict(folder=folders._made("net", 0)),
    "n_outputs",
    "strict",
    "map_location",
    "n_chans",
    "embed_dim",
    "nothing",
)
for task in pretext.PRETEXT_TASKS.values():
    if task.__module__.startswith("braindecode_pars."):

        def call(task=task, x=None, **arguments):
            made = task(**{"n_times": 300, "patch_size": 50, **small.ENCODER, **arguments})
            prediction, aim = made(torch.from_numpy(X[:, 0]) if x is None else x)
            made.chance_loss()
            return made.criterion()(prediction, aim)

        call.__signature__ = inspect.signature(task)
        target(
            task.__name__,
            call,
            None,
            *small.ENCODER,
            "tokenizer",
            "drop_prob",
            "activation",
            "x",
            x=tensors(),
        )


def task_of(task, n_times=300, task_params=None, encoder=None):
    encoder = PatchEncoder(50, **small.ENCODER) if encoder is None else encoder
    return pretext.make_task(task, n_times=n_times, encoder=encoder, task_params=task_params)


target("make_task", task_of, dict(task="mae"))
target("PatchEncoder", PatchEncoder, small.ENCODER)
target("CrossAttentionDecoder", CrossAttentionDecoder, dict(embed_dim=8, num_heads=2))
target("PairwiseMLPDecoder", PairwiseMLPDecoder, dict(embed_dim=8))
target("TransformerBlock", encoder.TransformerBlock, dict(embed_dim=8, num_heads=2, mlp_dim=8))
target("MultiHeadAttention", encoder.MultiHeadAttention, dict(embed_dim=8, num_heads=2))
target("AmplitudeCode", models.AmplitudeCode, dict(embed_dim=8))
target("SpatialFilter", models.SpatialFilter, dict(n_features=8))
target(
    "electrode_positions",
    models.electrode_positions,
    lambda f: dict(chs_info=small.recording(0).info["chs"]),
)


def pretrain_some(
    task="mae",
    epochs=1,
    lr=1e-3,
    batch_size=4,
    weight_decay=0.0,
    warmup=0.1,
    precision="float32",
    compile=False,  # noqa: A002
    device="cpu",
    task_params=None,
    windows=X,
    n_times=None,
    callbacks=None,
    seed=0,
    first_epoch=0,
    verbose=0,
):
    settings = pretraining.PretrainingSettings(
        task,
        task_params or {},
        epochs,
        lr,
        batch_size,
        weight_decay,
        warmup,
        precision,
        compile,
        device,
    )
    encoder = PatchEncoder(50, **small.ENCODER)
    trained = pretraining.pretrain_encoder(
        encoder,
        windows,
        settings,
        n_times=n_times,
        callbacks=callbacks,
        seed=seed,
        first_epoch=first_epoch,
        verbose=verbose,
    )
    return np.array([row.get("train_loss", 0.0) for row in trained.history])  # or no step at all


target("pretrain_encoder", pretrain_some, None, windows=arrays())


def with_callback(cls):
    def call(**arguments):
        return pretrain_some(callbacks=[cls(**arguments)])

    call.__signature__ = inspect.signature(cls)
    return call


for name in ("WarmupCosine", "ProgressLine"):
    target(name, with_callback(getattr(callbacks, name)))


def with_pretraining(**arguments):
    class Net:
        module_ = torch.nn.Module()
        device = "cpu"

    Net.module_.encoder = PatchEncoder(50, **small.ENCODER)
    given = {"task": "mae", "epochs": 1, "verbose": 0, **arguments}
    made = callbacks.Pretraining(**given).initialize()
    made.on_epoch_begin(Net, [(X[0], 0, [0, 0, 300])] * 4)
    return len(made.net_.history)


with_pretraining.__signature__ = inspect.signature(callbacks.Pretraining)
target("Pretraining", with_pretraining, None, unlabeled=arrays())

# Windows and datasets.


def windows_of(windows_ds):
    X, y, groups = as_sklearn(windows_ds)
    return X[[0]], y[:1], groups[:1]


target("as_sklearn", windows_of, lambda f: dict(windows_ds=small.dataset(1)), windows_ds=arrays())


def crops(dataset, n_times=None):
    made = SingleChannelWindows(dataset, n_times)
    return made[0]


target("SingleChannelWindows", crops, lambda f: dict(dataset=small.dataset(1)), dataset=arrays())


def sleep(n_subjects=1, hours=0.01, n_chans=1, sfreq=50.0, random_state=0):
    return datasets.simulated.sleep(n_subjects, hours, n_chans, sfreq, random_state)[0][0]


target("simulated.sleep", sleep)
target(
    "sleep", lambda **given: datasets.sleep(**given)[0][0], dict(subjects=["ucddb002"]), "subjects"
)
target(
    "mental_arithmetic",
    lambda **given: datasets.mental_arithmetic(**given)[0][0],
    dict(subjects=["Subject00"]),
    "subjects",
    "window_seconds",
)


@cache
def _tree() -> Path:
    """Two EDF-like recordings of 12 s with events, as FIF, and a table of labels."""
    folder = folders._home() / "labelled"
    for number, subject in enumerate(("anna", "bert")):
        raw = small.recording(number, n_windows=4)
        raw.set_annotations(mne.Annotations([0, 6], [6, 6], ["left", "right"]))
        (folder / subject).mkdir(parents=True, exist_ok=True)
        raw.save(folder / subject / "night_raw.fif", overwrite=True, verbose="error")
    table = pd.DataFrame(dict(file=["anna/night_raw.fif", "bert/night_raw.fif"], label=["a", "b"]))
    table.to_csv(folder / "labels.csv", index=False)
    return folder


def draw_synthetic(n=2, n_times=100, rng=None, **arguments):
    rng = np.random.default_rng(0) if rng is None else rng
    return datasets.SyntheticSignals(**arguments).draw(n, n_times, rng)


target("SyntheticSignals.draw", draw_synthetic, None, *vars(datasets.SyntheticSignals()))


def load_folder(**arguments):
    defaults = dict(
        path=_tree(), window_seconds=3.0, sfreq=50.0, low=None, high=None, mains=None, verbose=0
    )
    return datasets.folder.load(**{**defaults, **arguments})[0][0]


load_folder.__signature__ = inspect.signature(datasets.folder.load)
target("folder.load", load_folder, dict(labels="annotations"))
target("folder.recordings", datasets.folder.recordings, lambda f: dict(path=_tree()))
for name in ("eegmat", "eesm17", "physionet_mi", "tuab", "tusz", "ucddb", "ysyw"):
    recipe = getattr(datasets, name)
    target(f"{name}.load", recipe.load, lambda f: dict(path=f))

# Recordings.
target("Preprocessing", Preprocessing)
target("Preprocessing.of", Preprocessing.of, dict(value={"sfreq": 100.0}))


def check_filters(sfreq=None, low=None, high=None, mains=None):
    return recordings.check_filters(sfreq=sfreq, low=low, high=high, mains=mains)


target("check_filters", check_filters)
for name in (
    "filter_and_resample",
    "fixed_windows",
    "event_windows",
    "set_reference",
    "drop_other_signals",
    "pick_electrodes",
):

    def call(function=getattr(recordings, name), **arguments):  # noqa: B008
        return function(**arguments)

    call.__signature__ = inspect.signature(getattr(recordings, name))
    more = dict(
        set_reference=dict(reference="average"),
        event_windows=dict(mapping={"a": 0}),
        filter_and_resample=dict(sfreq=50.0, low=1.0, high=20.0, mains=None),
        pick_electrodes=dict(wanted=["C3"]),
        fixed_windows=dict(seconds=3.0),
    )
    own = more.get(name, {})
    target(name, call, lambda f, own=own: dict(raw=small.recording(0), **own))
target(
    "read_recording", recordings.read_recording, lambda f: dict(file=_tree() / "anna/night_raw.fif")
)
target(
    "split_subjects",
    recordings.split_subjects,
    dict(subjects=["a", "b", "c"], shares={"train": 0.5, "test": 0.5}),
    subjects=labels,
)
target(
    "set_splits",
    recordings.set_splits,
    lambda f: dict(windows_ds=small.dataset(2), splits={0: "train", 1: "test"}),
)
target(
    "name_classes",
    recordings.name_classes,
    lambda f: dict(windows=small.dataset(1).datasets[0], classes=["a", "b"]),
)

# Stores and runs.


def create(_folder, recordings=None, **arguments):
    recordings = small.dataset(1) if recordings is None else recordings
    defaults = dict(verbose=0)
    return SignalStore.create(_folder, recordings, **{**defaults, **arguments}).windows(100)[0]


create.__signature__ = inspect.Signature(
    [p for p in inspect.signature(SignalStore.create).parameters.values() if p.name != "path"]
)
target("SignalStore.create", create, lambda f: dict(_folder=f / "store"), recordings=arrays())


@cache
def opened() -> SignalStore:
    return SignalStore.open(folders._made("store", 0), verbose=0)


def of_store(method):
    def call(**arguments):
        return getattr(opened(), method)(**arguments)

    call.__signature__ = inspect.signature(getattr(SignalStore, method))
    return call


target("SignalStore.windows", of_store("windows"), dict(n_times=100))
target("SignalStore.select", of_store("select"), dict(subjects=[0]))
target(
    "SignalStore.batch",
    of_store("batch"),
    lambda f: dict(signals=np.arange(3), n_times=100, rng=np.random.default_rng(0)),
    signals=arrays(),
)
target(
    "SignalStore.crops",
    of_store("crops"),
    dict(signals=np.arange(3), starts=np.zeros(3, int), n_times=100),
    signals=arrays(),
)


target("SignalStore.open", SignalStore.open, lambda f: dict(path=folders._made("store", 0)))
target("RunConfig", runs.RunConfig)
target("RunConfig.for_laptop", runs.RunConfig.for_laptop, {}, "epochs", "task")
target("CorpusSize.of_numbers", runs.CorpusSize.of_numbers, dict(n_windows=10, sfreq=100.0))
TINY = dict(
    small.ENCODER,
    window_seconds=3.0,
    patch_seconds=0.5,
    epochs=1,
    steps_per_epoch=1,
    batch_size=4,
    device="cpu",
    num_workers=0,
)


def run(_folder, **arguments):
    settings = {k: arguments.pop(k) for k in list(arguments) if k not in ("store", "config")}
    config = arguments.pop("config", None) or runs.RunConfig(**{**TINY, **settings})
    store = arguments.get("store", folders._made("store", 0))
    return runs.pretrain(store, _folder / "run", config, verbose=0)


target(
    "runs.pretrain",
    run,
    lambda f: dict(_folder=f),
    "store",
    "config",
    *inspect.signature(runs.RunConfig).parameters,
)
target("load_encoder", pretrained.load_encoder, lambda f: dict(source=folders._made("encoder", 0)))
target(
    "PARSClassifier.load",
    PARSClassifier.load,
    lambda f: dict(folder=folders._made("classifier", 0)),
)
target(
    "save_encoder",
    pretrained.save_encoder,
    lambda f: dict(
        encoder=PatchEncoder(50, **small.ENCODER),
        folder=f / "encoder",
        card=pretrained.EncoderCard(),
    ),
)

# Evaluation.
CLASSES = ["a", "b", "c"]
TRUE = ["a", "b", "a", "c"]


def score(**given):
    return evaluation.score_predictions(**given)


score.__signature__ = inspect.signature(evaluation.score_predictions)
target(
    "score_predictions",
    score,
    dict(y_true=TRUE, y_pred=TRUE, metric="kappa"),
    y_true=labels,
    y_pred=labels,
    probabilities=arrays(),
)
for name in ("summarize", "score_table", "paired_tests"):
    target(name, getattr(evaluation, name), lambda f: dict(scores=scores()), scores=frames(scores))
target(
    "describe_differences",
    evaluation.describe_differences,
    lambda f: dict(tests=evaluation.paired_tests(scores())),
)
target("power", evaluation.power, lambda f: dict(scores=crossed()), scores=frames(crossed))
BANDS = lambda: next(iter(make_methods(["band-power"]).values()))  # noqa: E731


def protocol(function):
    def call(**arguments):
        return function(**{"verbose": 0, **arguments})["value"]

    call.__signature__ = inspect.signature(function)
    return call


for name, more in dict(
    leave_one_subject_out={},
    compare={},
    label_efficiency=dict(n_train_subjects=[1], seeds=[0], test_subjects=[0]),
).items():
    target(
        name,
        protocol(getattr(evaluation, name)),
        lambda f, more=more: dict(estimators={"a": BANDS()}, windows_ds=small.dataset(3), **more),
        windows_ds=arrays(),
    )
target(
    "transfer",
    protocol(evaluation.transfer),
    lambda f: dict(
        estimators={"a": BANDS()},
        datasets={"d": small.dataset(3)},
        seeds=[0],
        test_subjects={"d": [0]},
    ),
)
target(
    "ablation",
    protocol(evaluation.ablation),
    lambda f: dict(
        estimator=small.make("network"),
        windows_ds=small.dataset(3),
        seeds=[0],
        grid={"finetune_lr": [0.1]},
        test_subjects=[0],
    ),
)
target(
    "cost_table",
    evaluation.cost_table,
    lambda f: dict(estimators={"a": small.make("classifier")}, windows_ds=small.dataset(2)),
)

# Predictions and figures.
for name in ("to_annotations", "to_bids_events"):
    target(
        name,
        getattr(predictions, name),
        lambda f, name=name: dict(
            frame=predicted(), **({"path": f / "e.tsv"} if "bids" in name else {})
        ),
        frame=frames(predicted),
    )
target(
    "sleep_statistics",
    predictions.sleep_statistics,
    lambda f: dict(stages=predicted()),
    stages=st.one_of(frames(predicted), labels),
)


def figure(function):
    def call(**arguments):
        try:
            drawn = function(**arguments)
            np.ravel(drawn)[0].figure.canvas.draw()
        finally:
            plt.close("all")

    call.__signature__ = inspect.signature(function)
    return call


def draws(name, good, **odd):
    function = getattr(plotting, name)
    target(f"plotting.{name}", figure(function), good, **odd)


for name, made, more in (
    ("ablation_lines", grid_scores, dict(x="mask", lines="n")),
    ("label_efficiency", efficiency_scores, {}),
    ("subject_dots", scores, {}),
):
    draws(name, lambda f, made=made, more=more: dict(scores=made(), **more), scores=frames(made))
draws("training_curves", lambda f: dict(history=phases()), history=frames(phases))
draws("confusion_matrix", dict(true=TRUE, predicted=TRUE), true=labels, predicted=labels)
draws(
    "hypnodensity",
    lambda f: dict(predictions=predicted()),
    predictions=frames(predicted),
    true=labels,
)
draws("hypnogram", dict(true=["W", "N1", "N2", "R"]), true=labels, predicted=labels)
draws(
    "shift_matrices",
    dict(prediction=np.zeros((2, 3, 3)), target=np.zeros((2, 3, 3))),
    prediction=arrays(),
    target=arrays(),
)


# Cases -----------------------------------------------------------------------------------------

#: Arguments that ask for long work, or for processes: only small numbers of them are drawn.
LONG = ("epochs", "pretrain_epochs", "finetune_epochs", "head_epochs", "steps_per_epoch")
LONG += (
    "n_subjects",
    "hours",
    "n_jobs",
    "num_workers",
    "seeds",
    "compile",
    "num_layers",
    "seconds",
)
#: Arguments that take any value: labels, what scikit-learn's convention ignores, and switches.
TAKES_ANYTHING = (
    "y",
    "groups",
    "input_features",
    "unlabeled_label",
    "verbose",
    "strict",
    "subject",
)
TAKES_ANYTHING += (
    "return_features",
    "dataset",
    "title",
    "about",
    "versions",
    "random_state",
    "label",
)

#: NaN is the documented result: of a night without sleep, of a metric that is not defined.
NAN_IS_RIGHT = (
    *("sleep_statistics", "score_predictions", "paired_tests", "power", "summarize", "compare"),
)
NAN_IS_RIGHT += ("leave_one_subject_out", "label_efficiency", "transfer", "ablation")


@st.composite
def cases(draw, names=None):
    """A call of which one to three arguments are odd."""
    name = draw(st.sampled_from(sorted(names or TARGETS)))
    aim = TARGETS[name]
    n_odd = draw(st.sampled_from([1, 1, 1, 2, 3]))
    # What has odd values of its own, such as windows and tables, is drawn more often.
    arguments = [*aim.also, *(2 * list(aim.odd) if n_odd == 1 else [])]
    chosen = draw(st.lists(st.sampled_from(arguments), min_size=1, max_size=n_odd, unique=True))
    drawn = {}
    for argument in chosen:
        special = aim.odd.get(argument)
        own = special is not None and draw(st.integers(0, 3)) > 0
        drawn[argument] = draw(special if own else values)
        if argument in LONG and _asks_much(drawn[argument]):
            drawn[argument] = 1
    shown = [f"{k}={v.name if isinstance(v, Named) else repr(v)[:80]}" for k, v in drawn.items()]
    nonsense = [
        argument
        for argument, value in drawn.items()
        if isinstance(value, Named) and value.table is NONSENSE and argument not in TAKES_ANYTHING
    ]

    def act(folder):
        given = {k: v.value if isinstance(v, Named) else v for k, v in drawn.items()}
        with working_in(folder):
            return aim.call(**{**aim.good(folder), **given})

    def problem(result):
        if nonsense:
            return f"{nonsense} was accepted"
        return None if name in NAN_IS_RIGHT else not_finite(result)

    return Case(f"{name}({', '.join(shown)})", act, problem)


def _asks_much(value: Any) -> bool:
    """Whether a value means much work: a large number, -1 for all cores, or True, to compile."""
    value = value.value if isinstance(value, Named) else value
    if isinstance(value, (list, tuple, set)):
        return any(map(_asks_much, value))
    return (
        value is None
        or value is True
        or (isinstance(value, Number) and (value == -1 or not abs(value) <= 1))
    )


@contextmanager
def working_in(folder: Path):
    """Work in a folder: some odd values are relative paths."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def not_finite(result: Any) -> str | None:
    if isinstance(result, torch.Tensor):
        result = result.detach().numpy()
    if isinstance(result, dict):
        return next(filter(None, map(not_finite, result.values())), None)
    if isinstance(result, (tuple, list)):
        return next(filter(None, map(not_finite, result)), None)
    if isinstance(result, pd.Series):
        result = result.to_numpy()
    if isinstance(result, (float, np.ndarray)) and np.asarray(result).dtype.kind == "f":
        return None if np.isfinite(result).all() else "not finite"
    return None
