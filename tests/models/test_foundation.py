"""Foundation models: weights in the published layouts, the input of each, frozen, refusals.

No file can be downloaded here. The weights are those of small models, made on the spot.
"""

from __future__ import annotations

import pickle
import re
import textwrap
from pathlib import Path

import braindecode.models
import mne
import numpy as np
import pytest
import safetensors.torch
import torch
import torchaudio
from braindecode.datasets import BaseConcatDataset
from support.short_windows import first_samples
from torch import nn

from braindecode_pars import datasets
from braindecode_pars._common.computing import seeded
from braindecode_pars.baselines import make_methods
from braindecode_pars.baselines.foundation import Prepare
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.evaluation import compare
from braindecode_pars.models import FOUNDATION_MODELS, InputFormat

pytestmark = pytest.mark.filterwarnings(
    "ignore:Labram chs_info",
    "ignore:A window was not provided",  # BIOT and torch
    "ignore::sklearn.exceptions.ConvergenceWarning",
)

NAMES = sorted(FOUNDATION_MODELS)
PAGE = Path(__file__).parents[2] / "docs" / "guide" / "foundation.rst"
#: Arguments that make a model small.
SMALL = {
    "BIOT": dict(num_layers=1, embed_dim=32),
    "CBraMod": dict(n_layer=1),
    "EEGPT": dict(depth=1, embed_dim=32, num_heads=2),
    "Labram": dict(num_layers=1),
    "SignalJEPA_Contextual": dict(
        transformer__num_encoder_layers=1, transformer__num_decoder_layers=1
    ),
}
TEN_TWENTY = ["Fp1", "Fp2", "F7", "F3", "Fz", "F4", "F8", "T3", "C3", "Cz", "C4", "T4"]
TEN_TWENTY += ["T5", "P3", "Pz", "P4", "T6", "O1", "O2"]


def published(name: str, **arguments) -> nn.Module:
    """Return a small model with random weights and the input of the published one."""
    row = FOUNDATION_MODELS[name]
    channels = (row.channels or TEN_TWENTY)[: 16 if name == "BIOT" else None]
    defaults = dict(
        n_outputs=4,
        n_chans=len(channels),
        chs_info=[{"ch_name": channel} for channel in channels],
        n_times=row.longest or 800,
        sfreq=row.sfreq,
        **SMALL[name],
        **row.network_params,
    )
    with seeded(3):
        return getattr(braindecode.models, name)(**{**defaults, **arguments})


def save(tensors, folder: Path) -> Path:
    file = folder / "weights.safetensors"
    safetensors.torch.save_file({k: v.contiguous() for k, v in tensors.items()}, file)
    return file


def recording(sfreq=200.0, seconds=4.0, names=TEN_TWENTY, volts=2e-5, n_windows=8):
    X = volts * np.random.default_rng(0).normal(size=(n_windows, len(names), int(seconds * sfreq)))
    X += volts * np.sin(np.arange(X.shape[-1]) / sfreq * 60)
    events = np.c_[np.arange(n_windows), np.zeros(n_windows), np.arange(n_windows) % 2]
    info = mne.create_info(list(names), sfreq, "eeg")
    return mne.EpochsArray(X, info, events.astype(int), verbose="error")


def classifier(name: str, weights, **arguments) -> NetworkClassifier:
    defaults = dict(weights=weights, finetune_epochs=1, random_state=0, verbose=0)
    return NetworkClassifier(name, **{"network_params": SMALL.get(name), **defaults, **arguments})


@pytest.fixture(scope="module")
def cbramod():
    return published("CBraMod")


@pytest.fixture(scope="module")
def file(cbramod, tmp_path_factory):
    return save(cbramod.state_dict(), tmp_path_factory.mktemp("cbramod"))


@pytest.fixture(scope="module")
def fitted(file):
    return classifier("CBraMod", file).fit(recording())


def prepared(name: str, X: np.ndarray) -> np.ndarray:
    """What the sources say, for windows in volts at the rate of the model."""
    if name == "BIOT":
        place = {electrode.upper(): i for i, electrode in enumerate(TEN_TWENTY)}
        place |= {"T7": place["T3"], "T8": place["T4"], "P7": place["T5"], "P8": place["T6"]}
        pairs = [channel.split("-") for channel in FOUNDATION_MODELS[name].channels[:16]]
        X = 1e6 * np.stack([X[:, place[a]] - X[:, place[b]] for a, b in pairs], axis=1)
        return X / (np.quantile(np.abs(X), 0.95, axis=-1, keepdims=True) + 1e-8)
    if name == "EEGPT":
        return 1e3 * (X - X.mean(axis=1, keepdims=True))
    return 1e6 * X / (1 if name == "SignalJEPA_Contextual" else 100)


@pytest.mark.parametrize(("n_times", "expected"), [(100, 80), (101, 81), (104, 84)])
def test_the_length_of_the_input_is_rounded_up(n_times, expected):
    prepare = Prepare(InputFormat(sfreq=200, volts=1e-6), 250.0, ["C3"])
    assert prepare(torch.zeros(1, 1, n_times)).shape[-1] == expected
    assert prepare.signal(1, n_times)["n_times"] == expected


@pytest.mark.parametrize("name", NAMES)
def test_preprocessing_matches_the_published_sources(name, tmp_path):
    row, model = FOUNDATION_MODELS[name], published(name)
    windows = recording(row.sfreq)
    clf = classifier(name, save(model.state_dict(), tmp_path)).fit(windows)
    assert clf.net_.module_.prepare.input_format.sfreq == row.sfreq
    own = {n for n in clf.net_.module_.network.state_dict() if not n.startswith("final_layer")}
    assert own - {"chans_id"} == set(clf.load_report_.loaded)

    # The same network by hand: the weights of the file, and the last layer of the fit.
    channels = {"T3": "T7", "T4": "T8", "T5": "P7", "T6": "P8"} if name != "Labram" else {}
    channel_names = (
        [channels.get(n, n) for n in TEN_TWENTY] if name != "BIOT" else row.channels[:16]
    )
    arguments = dict(
        n_outputs=2, n_chans=len(channel_names), chs_info=[{"ch_name": n} for n in channel_names]
    )
    network = published(name, n_times=round(4 * row.sfreq), **arguments).eval()
    tensors = dict(model.state_dict())
    if name == "Labram":  # four patches of one second, and one row that is not used
        tensors["temporal_embedding"] = tensors["temporal_embedding"][:, :5]
    body = {k: v for k, v in tensors.items() if not k.startswith(("final_layer", "chans_id"))}
    of_fit = clf.net_.module_.network.state_dict()
    head = {k: v for k, v in of_fit.items() if k.startswith("final_layer")}
    assert network.load_state_dict({**body, **head}, strict=False).unexpected_keys == []
    assert all(torch.equal(value, of_fit[key]) for key, value in network.state_dict().items())
    x = torch.from_numpy(prepared(name, windows.get_data(copy=True)).astype(np.float32))
    with torch.inference_mode():
        logits = network(x, **({"ch_names": channel_names} if name == "Labram" else {}))
    np.testing.assert_allclose(
        clf.predict_proba(windows), logits.softmax(dim=1), rtol=1e-3, atol=1e-5
    )


@pytest.mark.parametrize("sfreq", [249.99, 333.1])
def test_resampling_is_that_of_torchaudio(sfreq):
    """The kernel is no weight of the network."""
    prepare = Prepare(InputFormat(sfreq=200.0, volts=1.0), sfreq, [])
    x = torch.randn(2, 3, 1000)
    rates = prepare.ratio.denominator, prepare.ratio.numerator
    assert torch.equal(prepare(x), torchaudio.functional.resample(x, *rates))
    assert not prepare.state_dict()


def test_unit_is_set_by_scale_and_never_inferred(file, fitted):
    volts, micro = recording(), recording(volts=20)
    with pytest.raises(ValueError, match=r"24 and 25 V.*preprocessing=\{'scale': 1e6\}"):
        classifier("CBraMod", file).fit(micro)
    clf = classifier("CBraMod", file, preprocessing={"scale": 1e6}).fit(micro)
    expected = fitted.predict_proba(volts)
    np.testing.assert_allclose(clf.predict_proba(micro), expected, atol=1e-4)
    # Windows to predict have the unit of fit, too.
    with pytest.warns(UserWarning, match="amplitude"), pytest.raises(ValueError, match="standard"):
        fitted.predict(micro)


def changed(clf, model) -> set[str]:
    """Return the loaded parameters that differ from the file."""
    now, before = clf.net_.module_.network.state_dict(), model.state_dict()
    same = {n for n in now if n in before and torch.equal(now[n].cpu(), before[n])}
    return set(clf.load_report_.loaded) - same


def test_what_is_trained(cbramod, file):
    model, windows = cbramod, recording()
    fit = dict(finetune_epochs=2, finetune_batch_size=4)
    frozen = classifier("CBraMod", file, **fit).fit(windows)
    assert changed(frozen, model) == set()
    module = frozen.net_.module_.train()
    assert module.network.final_layer.training
    assert not any(part.training for part in module.network.encoder.modules())

    everything = classifier("CBraMod", file, freeze_encoder=False, **fit).fit(windows)
    by_design = {"patch_embedding.mask_encoding"}  # not a trained parameter of CBraMod
    assert changed(everything, model) == set(everything.load_report_.loaded) - by_design
    assert all(part.training for part in everything.net_.module_.train().network.modules())

    # After two epochs of the last layer alone, one step more moves the rest.
    late = classifier("CBraMod", file, head_epochs=2, **fit).fit(windows)
    assert changed(late, model) == set()
    late = classifier("CBraMod", file, head_epochs=1, **fit).fit(windows)
    assert changed(late, model) == changed(everything, model)
    never = classifier("CBraMod", file, head_epochs=1, freeze_encoder=True, **fit).fit(windows)
    assert changed(never, model) == set()


def layouts(model, folder):
    tensors = model.state_dict()
    yield save(tensors, folder)
    torch.save(
        {"model_state_dict": {f"module.{k}": v for k, v in tensors.items()}}, folder / "a.pt"
    )
    yield folder / "a.pt"
    student = {f"student.{k}": v for k, v in tensors.items()}
    torch.save(
        {"model": {**student, "lm_head.weight": torch.zeros(3)}, "epoch": 3}, folder / "b.pth"
    )
    yield folder / "b.pth"


def test_layouts_of_files(tmp_path):
    model, windows, probabilities = published("CBraMod", dim_feedforward=40), recording(), []
    for source in layouts(model, tmp_path):
        params = {**SMALL["CBraMod"], "dim_feedforward": 40}
        clf = classifier("CBraMod", source, network_params=params)
        if source.suffix == ".pth":
            with pytest.warns(UserWarning, match=r"in .* \(1\) .* are not used: lm_head"):
                clf.fit(windows)
        else:
            clf.fit(windows)
        assert len(clf.load_report_.loaded) == 35
        probabilities.append(clf.predict_proba(windows))
    assert len(probabilities) == 3
    assert all(np.array_equal(probabilities[0], other) for other in probabilities)


LOST = "encoder.layers.0.linear1.weight"


def with_lost(change):
    return lambda tensors: {**tensors, LOST: change(tensors[LOST])}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda tensors: nn.Linear(2, 3).state_dict(), "0 of 37 tensors loaded"),
        (
            lambda tensors: {k: v for k, v in tensors.items() if k != LOST},
            rf"34 of 37 tensors loaded.*: {LOST}\.",
        ),
        (with_lost(lambda tensor: torch.zeros(3)), rf"1 reshaped \(such as {LOST}"),
    ],
)
def test_files_that_are_no_weights_of_the_network_are_refused(cbramod, content, message, tmp_path):
    torch.save(content(cbramod.state_dict()), tmp_path / "weights.pt")
    with pytest.raises(ValueError, match=message):
        classifier("CBraMod", tmp_path / "weights.pt").fit(recording())


class Code:
    def __reduce__(self):
        return (Path.touch, (Path("code-was-run"),))


def test_pickled_code_is_not_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"state_dict": published("CBraMod").state_dict(), "hook": Code()}, "evil.pt")
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        classifier("CBraMod", "evil.pt").fit(recording())
    assert not Path("code-was-run").exists()


def test_incompatible_recordings_raise(tmp_path):
    def fails(name, windows, match, **arguments):
        file = save(published(name).state_dict(), tmp_path)
        with pytest.raises(ValueError, match=match):
            classifier(name, file, **arguments).fit(windows)

    fails("CBraMod", recording(seconds=4.5), r"4\.5 s \(900 samples at 200 Hz.*1 s or longer")
    fails("Labram", recording(seconds=16), r"3200 samples.*1 to 15 s, in steps of 1 s")
    odd = recording(names=[*TEN_TWENTY, "E17"])
    fails("EEGPT", odd, r"channels E17\. .*channels=")
    some = recording(names=TEN_TWENTY[2:])
    fails("BIOT", some, "channels FP1-F7, FP2-F8, FP1-F3, FP2-F4,")
    X, y = recording().get_data(copy=True), np.arange(8) % 2
    file = save(published("EEGPT").state_dict(), tmp_path)
    with pytest.raises(ValueError, match="channel names"):
        classifier("EEGPT", file, sfreq=200).fit(X, y)
    file = save(published("CBraMod").state_dict(), tmp_path)
    with pytest.raises(ValueError, match="Pass it as sfreq"):
        classifier("CBraMod", file).fit(X, y)


@pytest.mark.slow
def test_warning_if_pretraining_subjects_are_unknown(tmp_path, subjects):
    file = save(published("CBraMod").state_dict(), tmp_path)
    methods = {"CBraMod": classifier("CBraMod", file), "from scratch": classifier("EEGNet", None)}
    with pytest.warns(UserWarning, match="training subjects of the encoder of CBraMod are unknown"):
        first = compare(methods, subjects, out=tmp_path / "out", verbose=0)
    again = published("CBraMod").state_dict()
    save({k: -v for k, v in again.items()}, tmp_path)
    # Other weights at the same place are another method.
    with pytest.raises(ValueError, match="weights"):
        compare(methods, subjects, out=tmp_path / "out", verbose=0)
    assert len(first)


@pytest.fixture
def subjects():
    return first_samples(datasets.simulated.sleep(n_subjects=3, hours=0.1, n_chans=2), 300)


def test_methods_by_name(tmp_path):
    methods = make_methods(["cbramod:a/w.pt", "cbramod:hf://b/c", "signaljepa:d"], head_epochs=2)
    assert list(methods) == ["CBraMod w", "CBraMod c", "SignalJEPA_Contextual d"]
    assert [m.weights for m in methods.values()] == ["a/w.pt", "hf://b/c", "d"]
    assert {m.head_epochs for m in methods.values()} == {2}
    with pytest.raises(ValueError, match="'bendr:file'"):
        make_methods(["bendr:file"])


@pytest.mark.slow
def test_the_page_loads_a_selfeeg_encoder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"   :name: selfeeg\n\n((?: {3}.*\n|\n)+)", PAGE.read_text("utf-8"))
    windows = BaseConcatDataset(datasets.mental_arithmetic().datasets[:8])
    names = {"windows": windows, "safetensors": safetensors, "NetworkClassifier": NetworkClassifier}
    exec(textwrap.dedent(block), names)
    probe, encoder = names["probe"], names["encoder"]
    assert changed(probe, encoder) == set()
    assert len(probe.load_report_.loaded) == len(encoder.state_dict()) - 2
    assert probe.score(windows) > 0.5


def test_files_of_biot_are_for_16_or_18_channels(tmp_path):
    channels = FOUNDATION_MODELS["BIOT"].channels
    chs_info = [{"ch_name": channel} for channel in channels]
    file = save(published("BIOT", n_chans=18, chs_info=chs_info).state_dict(), tmp_path)
    with pytest.raises(ValueError, match="channels C3-A2, C4-A1,"):
        classifier("BIOT", file).fit(recording())
    clf = classifier("BIOT", file).fit(recording(names=[*TEN_TWENTY, "A1", "A2"]))
    assert clf.net_.module_.network.n_chans == 18
    bipolar = classifier("BIOT", file).fit(recording(names=channels))
    assert torch.equal(bipolar.net_.module_.prepare.weights, torch.eye(18))
