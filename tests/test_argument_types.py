"""Every argument is checked: wrong types and values are refused with the name of the argument."""

from __future__ import annotations

import inspect
import json
from functools import cache, partial

import numpy as np
import pytest
import torch
from sklearn.dummy import DummyClassifier
from support.features import FEATURES
from support.montages import concatenated
from support.small_estimators import classifier, embedder

from braindecode_pars import PARSClassifier, PARSEmbedder, PARSNet, PatchEncoder
from braindecode_pars.estimators import EuclideanAlignment, NetworkClassifier
from braindecode_pars.evaluation import ControlSignals, compare, leave_one_subject_out
from braindecode_pars.pretext import PARS, PRETEXT_TASKS
from braindecode_pars.pretraining import PretrainingSettings, pretrain_encoder
from braindecode_pars.runs import RunConfig
from braindecode_pars.signal_store import SignalStore

SIZES = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=16)
SIGNALS = torch.randn(4, 600)
LABELS = [0, 1, 0, 1]
SFREQ = dict(sfreq=100.0)
network = partial(NetworkClassifier, verbose=0)
windows = cache(lambda: concatenated(0, 1))


def encoder(**arguments):
    return PatchEncoder(100, **{**SIZES, **arguments})


def pretrain(**arguments):
    quick = dict(settings=PretrainingSettings("mae", epochs=1), verbose=0)
    required = dict(encoder=encoder(), windows=SIGNALS[:, None])
    return pretrain_encoder(**{**required, **quick, **arguments})


def features_with(features, **arguments):
    return features(**arguments).transform(SIGNALS[:, None])


TASKS = [task for task in PRETEXT_TASKS.values() if task.__module__.startswith("braindecode_pars.")]
MEASURED = [PRETEXT_TASKS["features"], PRETEXT_TASKS["features_space_time"]]
#: Class or function -> (function that calls it, further arguments).
CHECKED = {
    **{task: (task, dict(n_times=600, patch_size=100, **SIZES)) for task in TASKS},
    **{task: (partial(task, sfreq=100.0), dict(n_times=600, **SIZES)) for task in MEASURED},
    PatchEncoder: (PatchEncoder, SIZES),
    PARSNet: (PARSNet, dict(n_outputs=2, n_chans=2, n_times=600, sfreq=100, **SIZES)),
    pretrain_encoder: (pretrain, {}),
    PretrainingSettings: (
        lambda **arguments: pretrain(settings=PretrainingSettings(**arguments)),
        {},
    ),
    **{features: (partial(features_with, features), {}) for features in FEATURES},
    EuclideanAlignment: (
        lambda **arguments: EuclideanAlignment(**arguments).fit(SIGNALS[:, None]),
        {},
    ),
    ControlSignals: (lambda **arguments: ControlSignals(**arguments).fit(SIGNALS[:, None]), {}),
    PARSClassifier: (
        lambda **arguments: classifier(**arguments).fit(SIGNALS[:, None], LABELS),
        dict(SFREQ, validation=0),
    ),
    PARSEmbedder: (lambda **arguments: embedder(**arguments).fit(SIGNALS[:, None]), SFREQ),
    NetworkClassifier: (
        lambda **arguments: network(**arguments).fit(SIGNALS[:, None], LABELS),
        SFREQ,
    ),
    RunConfig: (RunConfig, {}),
    SignalStore.create: (
        lambda **arguments: SignalStore.create("store", windows(), **arguments),
        {},
    ),
}


#: Values of no argument's type.
NEVER = (1j, b"pars", np.arange(3), torch.arange(3), int)
NAN, INF = float("nan"), float("inf")
#: Names of arguments -> values that must be refused.
WRONG = {
    "embed_dim num_layers num_heads mlp_dim n_patches pretrain_epochs pretrain_batch_size epochs "
    "finetune_epochs finetune_batch_size batch_size steps_per_epoch micro_batch_size n_times "
    "patch_size hidden_dim seed n_chans n_outputs min_gap first_epoch head_epochs": (
        *("2", 2.5, True, [2], NAN, -1, 10**30, np.float64(2), np.bool_(True)),
    ),
    "sfreq patch_seconds pretrain_lr finetune_lr lr weight_decay segment_seconds encoder_lr_factor "
    "gradient_clip": ("0.1", [0.1], NAN, INF, -1.0, "nan"),
    "window_seconds": ("0.1", NAN, INF, -1.0, "nan"),  # of a run, also a list
    "channel_drop_prob validation drop_prob mask_ratio position_mask_ratio finetune_warmup "
    "label_smoothing": ("0.1", [0.1], NAN, 1.5, -0.1, True, np.bool_(False)),
    "freeze_encoder electrode_position compile overlap amplitude detrend": (
        *("no", "False", 0, 1, []),
    ),
    "pretext task precision sampling decoder loss_on pooling method network dtype on_error device "
    "head features power": ("nothing", 3, [], "PARS ", True),
    "pretext_params task_params network_params": ("a", [1], [("a", 1)], True),
    "part": ("1/2", 3, (1,), (0, 2), (3, 2), (1.0, 2), (True, 2), (1, 9), (1, NAN)),
}
WRONG = {name: values for names, values in WRONG.items() for name in names.split()}


@pytest.mark.parametrize("checked", CHECKED, ids=lambda checked: checked.__qualname__)
def test_wrong_values_are_refused_with_the_argument(checked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, arguments = CHECKED[checked]
    for name in {*inspect.signature(checked).parameters} & {*WRONG}:
        for value in (*WRONG[name], *NEVER):
            with pytest.raises((TypeError, ValueError), match=name):
                call(**{**arguments, name: value})
    assert list(tmp_path.iterdir()) == []


#: Argument of a protocol -> values that must be refused.
WRONG_IN_PROTOCOLS = {
    "estimators": (None, {}, {"a": 3}, {3: None}),
    "windows_ds": (None, [], np.zeros((4, 2, 600))),
    "metrics": ("kapp", ["kapp"], [], [3]),
    "seeds": ([], ["a"], [0.5], [-1], 3),
    "test_subjects": ([], [99], ["0"]),
    "n_jobs": ("two", 0.5, 0),
    "out": (3, b"folder", True),
}


@pytest.mark.parametrize("argument", WRONG_IN_PROTOCOLS)
@pytest.mark.parametrize("protocol", [compare, leave_one_subject_out])
def test_wrong_arguments_of_a_protocol_are_refused(protocol, argument):
    defaults = dict(estimators={"dummy": DummyClassifier()}, windows_ds=windows(), verbose=0)
    for value in WRONG_IN_PROTOCOLS[argument]:
        with pytest.raises((TypeError, ValueError), match=r"\w+ .*\w+ .*\w+") as raised:
            protocol(**{**defaults, argument: value})
        assert "braindecode_pars" in str(raised.traceback[-1].path), value


@pytest.mark.parametrize("number", [np.int64, np.uint8])
def test_integers_of_numpy_are_integers_and_saved_as_such(number, tmp_path):
    sizes = {name: number(value) for name, value in SIZES.items()}
    patch_encoder = PatchEncoder(number(100), **sizes)
    numbers = {name: patch_encoder.config[name] for name in ("patch_size", *SIZES)}
    assert json.loads(json.dumps(numbers)) == {"patch_size": 100, **SIZES}
    task = PARS(np.int64(600), number(100), n_patches=number(8), **sizes)
    assert task(SIGNALS)[0].shape == PARS(600, 100, n_patches=8, **SIZES)(SIGNALS)[0].shape
    sizes_of_net = dict(n_outputs=number(2), n_chans=number(3), n_times=np.int64(600))
    net = PARSNet(**sizes_of_net, sfreq=np.float32(100), **sizes)
    net.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    expected = dict(n_outputs=2, n_chans=3, n_times=600, **SIZES)
    assert {name: config[name] for name in expected} == expected
    x = torch.randn(1, 3, 600)
    assert torch.equal(PARSNet.from_pretrained(tmp_path)(x), net.eval()(x))
