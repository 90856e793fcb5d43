"""Every argument with values of wrong types, out of range, and of NumPy's types."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from braindecode_pars import PARSClassifier, PARSEmbedder, PARSNet, PatchEncoder
from braindecode_pars.callbacks import Pretraining, WarmupCosine
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.evaluation import LogBandPower, compare, leave_one_subject_out
from braindecode_pars.pretext import PRETEXT_TASKS
from braindecode_pars.pretext.pairwise import CrossAttentionDecoder, PairwiseMLPDecoder
from braindecode_pars.pretraining import PretrainingSettings, pretrain_encoder
from braindecode_pars.runs import RunConfig
from braindecode_pars.signal_store import SignalStore
from fuzz import small
from fuzz.arrays import Labeled
from fuzz.outcomes import Case

#: Values of no argument's type. A mapping, since some have no order.
NEVER = {
    "1j": 1j,
    "object()": object(),
    "a lambda": lambda: 3,
    "b'pars'": b"pars",
    "...": ...,
    "an array": np.arange(3),
    "a tensor": torch.arange(3),
    "a set": {1, 2},
    "NotImplemented": NotImplemented,
    "a type": int,
}
#: Kind of an argument -> values that must be refused.
WRONG = {
    "count": ["2", 2.0, 2.5, True, [2], float("nan"), -1, 10**30, np.float64(2), np.bool_(True)],
    "number": ["0.1", [0.1], float("nan"), float("inf"), -1.0, -1, "nan", "inf"],
    "lengths": ["0.1", float("nan"), float("inf"), -1.0, -1, "nan", "inf"],  # of a run, also a list
    "share": ["0.1", [0.1], float("nan"), 1.5, -0.1, True, np.bool_(False), float("inf")],
    "flag": ["no", "False", 0, 1, 0.0, [], "True", "yes"],
    "choice": ["", "nothing", 3, [], ("a",), "PARS ", True],
    "dict": ["a", [1], 3, [("a", 1)], True],
    "seed": ["0", 0.5, -1, 2**70, [0]],
    "part": ["1/2", 3, (1,), (0, 2), (3, 2), (1.0, 2), (True, 2), (1, 9), (1, float("nan"))],
}
#: Kind of an argument -> (a value, the same in another type).
EQUAL = {
    "count": [(2, np.int64(2)), (2, np.int8(2)), (2, np.uint16(2)), (2, np.uint64(2))],
    "number": [(0.5, np.float32(0.5)), (0.5, np.float64(0.5)), (1, 1.0), (1, np.int64(1))],
    "lengths": [(0.5, np.float32(0.5)), (0.5, np.float64(0.5)), (1, 1.0), (1, np.int64(1))],
    "share": [(0.5, np.float32(0.5)), (0.25, np.float16(0.25)), (0, 0.0), (0, np.int64(0))],
    "flag": [(True, np.bool_(True)), (False, np.bool_(False))],
    "seed": [(3, np.int64(3)), (3, np.uint32(3))],
}
KINDS = dict(
    **dict.fromkeys(("embed_dim", "num_layers", "num_heads", "mlp_dim", "n_patches"), "count"),
    **dict.fromkeys(("pretrain_epochs", "pretrain_batch_size", "finetune_epochs"), "count"),
    **dict.fromkeys(("finetune_batch_size", "epochs", "batch_size", "steps_per_epoch"), "count"),
    **dict.fromkeys(("micro_batch_size", "n_times", "patch_size", "hidden_dim", "seed"), "count"),
    **dict.fromkeys(("n_chans", "n_outputs", "min_gap", "first_epoch", "head_epochs"), "count"),
    **dict.fromkeys(("sfreq", "patch_seconds", "pretrain_lr", "finetune_lr", "lr"), "number"),
    **dict.fromkeys(("weight_decay", "segment_seconds"), "number"),
    window_seconds="lengths",
    **dict.fromkeys(("encoder_lr_factor", "gradient_clip"), "number"),
    **dict.fromkeys(("channel_drop_prob", "validation", "drop_prob", "warmup"), "share"),
    **dict.fromkeys(("mask_ratio", "position_mask_ratio"), "share"),
    **dict.fromkeys(("finetune_warmup", "label_smoothing"), "share"),
    **dict.fromkeys(("freeze_encoder", "electrode_position", "compile", "overlap"), "flag"),
    amplitude="flag",
    power="choice",
    **dict.fromkeys(("pretext", "task", "precision", "sampling", "decoder", "loss_on"), "choice"),
    **dict.fromkeys(("pooling", "method", "network", "dtype", "on_error", "device"), "choice"),
    **dict.fromkeys(("head", "features"), "choice"),
    **dict.fromkeys(("pretext_params", "task_params", "network_params"), "dict"),
    detrend="flag",
    random_state="seed",
    part="part",
)
X = small.signals(0)


def _estimator(cls: type, name: str) -> Callable[..., Any]:
    def call(folder, **arguments):
        model = cls(**{**small.MODELS[name][1], "sfreq": small.SFREQ, **arguments})
        return small.output(model.fit(X, small.LABELS), X)

    return call


def _task(task: type) -> Callable[..., Any]:
    rate = {"sfreq": 100.0} if task.name == "features" else {}

    def call(folder, **arguments):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            made = task(**{"n_times": 300, "patch_size": 50, **rate, **small.ENCODER, **arguments})
            prediction, target = made(torch.zeros(2, 300))
            return made.criterion()(prediction, target).detach().numpy()

    return call


def _network(folder, **arguments):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        defaults = dict(n_outputs=2, n_chans=2, n_times=300, sfreq=100.0, channel_drop_prob=0.0)
        net = PARSNet(**{**defaults, **small.ENCODER, **arguments})
        return net.eval()(torch.from_numpy(X)).detach().numpy()


def _module(cls: type, **defaults: Any) -> Callable[..., Any]:
    def call(folder, **arguments):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            made = cls(**{**defaults, **arguments})
            return np.concatenate([p.detach().numpy().ravel() for p in made.parameters()])

    return call


def _schedule(folder, **arguments):
    task = PRETEXT_TASKS["mae"](300, 50, **small.ENCODER)
    encoder = task.encoder
    callbacks = [WarmupCosine(**arguments)]
    windows = Labeled(X)
    settings = PretrainingSettings(task, epochs=1)
    pretrain_encoder(encoder, windows, settings, callbacks=callbacks, seed=0, verbose=0)
    return np.zeros(1)


def _callback(folder, **arguments):
    class Net:
        module_ = torch.nn.Module()
        device = "cpu"

    Net.module_.encoder = PatchEncoder(50, **small.ENCODER)
    windows = Labeled(X)
    pretraining = Pretraining(**{"task": "mae", "epochs": 1, "verbose": 0, **arguments})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        pretraining.initialize().on_epoch_begin(Net, windows)
    return np.array([len(pretraining.net_.history)])


def _config(folder, **arguments):
    RunConfig(**arguments)
    return np.zeros(1)


def _store(folder, **arguments):
    store = SignalStore.create(
        folder / "store", small.dataset(2), **{"verbose": 0, "dtype": "float32", **arguments}
    )
    return store.windows(100)[0]


def _protocol(protocol: Callable) -> Callable[..., Any]:
    def call(folder, **arguments):
        model = small.make("network")
        methods = {"a": model, "b": small.make("network", finetune_lr=0.1)}
        defaults = dict(estimators=methods, windows_ds=small.dataset(2), verbose=0)
        return protocol(**{**defaults, **arguments})["value"].to_numpy()

    return call


#: Name -> (call, arguments that it varies).
CALLS: dict[str, tuple[Callable[..., Any], list[str]]] = {}


def _add(name: str, call: Callable[..., Any], signature: Callable, *others: str) -> None:
    names = [n for n in inspect.signature(signature).parameters if n in KINDS]
    CALLS[name] = call, [*names, *others]


_add("PARSClassifier", _estimator(PARSClassifier, "classifier"), PARSClassifier)
_add("PARSEmbedder", _estimator(PARSEmbedder, "embedder"), PARSEmbedder)
_add("NetworkClassifier", _estimator(NetworkClassifier, "network"), NetworkClassifier)
_add("LogBandPower", _estimator(LogBandPower, "band power"), LogBandPower)
for _name, _class in PRETEXT_TASKS.items():
    if _class.__module__.startswith("braindecode_pars."):
        _add(_class.__name__, _task(_class), _class, *small.ENCODER)
_add("PARSNet", _network, PARSNet)
_add("PatchEncoder", _module(PatchEncoder, **small.ENCODER), PatchEncoder)
_add("CrossAttentionDecoder", _module(CrossAttentionDecoder, embed_dim=8), CrossAttentionDecoder)
_add("PairwiseMLPDecoder", _module(PairwiseMLPDecoder, embed_dim=8), PairwiseMLPDecoder)
_add("WarmupCosine", _schedule, WarmupCosine)
_add("Pretraining", _callback, Pretraining)
_add("RunConfig", _config, RunConfig)
_add("SignalStore.create", _store, SignalStore.create)

#: Arguments of the protocols -> values that must be refused.
PROTOCOL = {
    "estimators": [None, [], {}, "pars", 3, {"a": 3}, {"a": None}, {3: None}],
    "windows_ds": [None, [], "windows", 3, X],
    "metrics": ["kapp", ["kapp"], [], [3], 3, [None]],
    "seeds": [[], ["a"], [0.5], [-1], "0", [None], 3],
    "test_subjects": [[], [99], ["0"], [[0]]],
    "n_jobs": ["two", 0.5, 0],
    "out": [3, 3.5, b"folder", True],
}


@st.composite
def wrong(draw):
    """A wrong type or a value out of range is refused, before anything is computed with it."""
    name = draw(st.sampled_from(sorted(CALLS)))
    call, arguments = CALLS[name]
    argument = draw(st.sampled_from(arguments))
    if draw(st.integers(0, 3)) == 0:
        text = draw(st.sampled_from(sorted(NEVER)))
        value = NEVER[text]
    else:
        value = draw(st.sampled_from(WRONG[KINDS[argument]]))
        text = repr(value)
    return Case(
        f"{name}({argument}={text})",
        lambda folder: call(folder, **{argument: value}),
        lambda result: f"{argument}={text} was accepted",
    )


@st.composite
def equal(draw):
    """The same value in a type of NumPy gives the same result."""
    names = [n for n in sorted(CALLS) if any(KINDS[a] in EQUAL for a in CALLS[n][1])]
    name = draw(st.sampled_from(names))
    call, arguments = CALLS[name]
    argument = draw(st.sampled_from([a for a in arguments if KINDS[a] in EQUAL]))
    one, other = draw(st.sampled_from(EQUAL[KINDS[argument]]))
    if argument == "compile":
        one, other = False, np.bool_(False)  # compilation takes a minute
    if argument in ("n_times", "sfreq", "n_patches", "patch_size", "n_chans"):
        # Sizes that fit the windows, and are large enough for every task.
        sizes = {"n_times": 300, "n_patches": 8, "patch_size": 50, "n_chans": 2}
        one = sizes.get(argument, 100)
        other = {"sfreq": np.float32, "n_times": np.int32}.get(argument, np.int16)(one)
    elif (name, argument) == ("SignalStore.create", "sfreq"):
        one, other = 100, np.float64(100)
    elif argument == "segment_seconds":
        one, other = 1.0, np.float32(1.0)

    def act(folder):
        return call(folder / "other", **{argument: other}), folder

    def problem(returned):
        result, folder = returned
        return small.differs(
            np.asarray(result), np.asarray(call(folder / "one", **{argument: one}))
        )

    return Case(f"{name}({argument}={other!r} instead of {one!r})", act, problem)


@st.composite
def protocols(draw):
    """Wrong arguments of the protocols."""
    protocol = draw(st.sampled_from([leave_one_subject_out, compare]))
    argument = draw(st.sampled_from(sorted(PROTOCOL)))
    value = draw(st.sampled_from(PROTOCOL[argument]))
    return Case(
        f"{protocol.__name__}({argument}={str(value)[:60]})",
        lambda folder: _protocol(protocol)(folder, **{argument: value}),
        lambda result: f"{argument}={str(value)[:60]} was accepted",
    )


cases = st.one_of(wrong(), wrong(), wrong(), equal(), protocols())
