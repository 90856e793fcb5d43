"""One progress bar for a whole training."""

from __future__ import annotations

from braindecode_pars import PatchEncoder
from braindecode_pars.pretraining import pretrain_encoder


def test_the_progress_bar_counts_every_step(tiny, nights, capsys):
    pretrain_encoder(PatchEncoder(100, **tiny), nights, epochs=2, batch_size=32)
    err = capsys.readouterr().err
    assert "pretraining (PARS): 100%" in err
    assert "loss/chance=" in err
