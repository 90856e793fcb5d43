"""The registry of tasks, and how a task gets the encoder that it trains."""

from __future__ import annotations

import pytest
from support.pretext_contract import SIZES
from torch import nn

from braindecode_pars import PatchEncoder
from braindecode_pars.pretext import MAE, PARS, PRETEXT_TASKS, make_task
from braindecode_pars.pretext.base import PretextTask, register


def test_a_registered_task_is_known_by_its_name():
    @register("nothing")
    class Nothing(PretextTask):
        criterion = nn.MSELoss

    try:
        encoder = PatchEncoder(100, **SIZES)
        task = make_task("nothing", n_times=400, encoder=encoder)
        assert type(task) is Nothing
        assert task.name == "nothing"
        assert task.encoder is encoder
    finally:
        del PRETEXT_TASKS["nothing"]


def test_an_instance_is_copied_and_the_copy_gets_the_encoder():
    task, encoder = PARS(400, 100, n_patches=5, **SIZES), PatchEncoder(100, **SIZES)
    made = make_task(task, n_times=1000, encoder=encoder)
    assert made is not task
    assert made.encoder is encoder
    assert task.encoder is not encoder
    assert (made.n_patches, made.n_times) == (5, 400)


def test_an_instance_that_has_the_encoder_is_used_as_it_is():
    task = PARS(400, 100, **SIZES)
    assert make_task(task, n_times=400, encoder=task.encoder) is task


@pytest.mark.parametrize(
    ("task", "params", "error", "message"),
    [
        ("parts", None, ValueError, "'parts'"),
        (MAE, {"ratio": 0.5}, TypeError, "'ratio'"),
        (MAE(400, 100, **SIZES), {"mask_ratio": 0.5}, TypeError, "mask_ratio"),
        (MAE(400, 50, **SIZES), None, ValueError, "50 samples"),
        (MAE(800, 100, **SIZES), None, ValueError, "800 samples.* 400"),
        (3, None, TypeError, "int"),
    ],
)
def test_a_task_that_does_not_fit_is_refused(task, params, error, message):
    encoder = PatchEncoder(100, **SIZES)
    with pytest.raises(error, match=message):
        make_task(task, n_times=400, encoder=encoder, task_params=params)
