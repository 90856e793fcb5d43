"""One progress bar for a whole training."""

from __future__ import annotations

from support.small_estimators import classifier
from support.small_runs import make_store, small_config
from tqdm.auto import tqdm

from braindecode_pars import PatchEncoder
from braindecode_pars.pretraining import PretrainingSettings, pretrain_encoder
from braindecode_pars.runs import pretrain


def test_the_progress_bar_counts_every_step(tiny, nights, capsys):
    settings = PretrainingSettings(epochs=2, batch_size=32)
    pretrain_encoder(PatchEncoder(100, **tiny), nights, settings)
    err = capsys.readouterr().err
    assert "pretraining (PARS): 100%" in err
    assert "loss/chance=" in err


def test_the_bar_names_the_restored_epoch(nights, capsys):
    clf = classifier(pretext=None, finetune_epochs=3, verbose=1).fit(nights)
    restored = clf.history_.query("restored")["epoch"].item()
    assert f"restored epoch={restored}" in capsys.readouterr().err
    classifier(pretext=None, validation=0, verbose=1).fit(nights)
    assert "restored" not in capsys.readouterr().err


def test_the_bar_moves_within_a_step(tmp_path, monkeypatch):
    """A step of many micro-batches may take minutes."""
    shown = []
    update = tqdm.update

    def recorded(bar, n=1):
        update(bar, n)
        shown.append((round(bar.n, 6), bar.format_dict["bar_format"] is not None))

    monkeypatch.setattr(tqdm, "update", recorded)
    store = make_store(tmp_path / "store")
    config = small_config(epochs=1, steps_per_epoch=2, batch_size=8, micro_batch_size=2)
    pretrain(store, tmp_path / "run", config)
    quarters = [0.25, 0.5, 0.75, 1, 1, 1.25, 1.5, 1.75, 2, 2]
    assert [n for n, has_format in shown if has_format] == quarters
    # One part: whole steps in the usual format.
    shown.clear()
    pretrain(store, tmp_path / "whole", small_config(epochs=1, steps_per_epoch=2))
    assert [(n, f) for n, f in shown if n] == [(1, False), (2, False)]
