"""The registry of tasks, and how a task gets the encoder that it trains."""

from __future__ import annotations

import pickle
import sys

import pytest
from support.own_task import forget
from support.pretext_contract import SIZES

from braindecode_pars import PatchEncoder
from braindecode_pars.pretext import MAE, PARS, PRETEXT_TASKS, Joint, make_task
from braindecode_pars.pretext.base import custom_tasks, find_task, register_tasks


def test_task_is_found_by_file_and_then_by_name(own_task):
    encoder = PatchEncoder(100, **SIZES)
    with pytest.raises(ValueError, match=r"'slope'.*my_task\.py:MyTask"):
        make_task("slope", n_times=400, encoder=encoder)
    task = make_task(f"{own_task}:Slope", n_times=400, encoder=encoder)
    assert task.name == "slope"
    assert task.encoder is encoder
    for name in ("slope", f"{own_task}:Slope"):  # its code runs once
        assert type(make_task(name, n_times=400, encoder=encoder)) is type(task)
    joint = Joint(400, 100, tasks={"pars": 1.0, "slope": 1.0}, encoder=encoder)
    assert type(joint.parts["slope"]) is type(task)


def test_only_a_name_of_the_user_runs_a_file(own_task):
    """A joint task may be of a saved model, so it takes names only."""
    with pytest.raises(ValueError, match=r"Joint.*Slope"):
        Joint(400, 100, tasks={f"{own_task}:Slope": 1.0}, **SIZES)
    assert "my_task" not in sys.modules


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda file: f"{file.with_name('absent.py')}:Slope", r"absent\.py does not exist"),
        (lambda file: f"{file}:Other", "class Other"),
        (lambda file: f"{file}:MAE", "task name 'mae', which is already"),
    ],
)
def test_file_without_the_task_raises(own_task, wrong, message):
    own_task.write_text(own_task.read_text() + "\n\nclass MAE(GridTask):\n    pass\n")
    with pytest.raises(ValueError, match=message):
        find_task(wrong(own_task))


def test_custom_tasks_are_registered_in_other_processes(own_task):
    assert "slope" not in custom_tasks()
    find_task(f"{own_task}:Slope")
    sent = pickle.loads(pickle.dumps(custom_tasks()))
    forget()
    register_tasks(sent)
    assert PRETEXT_TASKS["slope"].__module__ == "my_task"
    register_tasks(
        {"gone": f"{own_task.with_name('gone.py')}:Gone"}
    )  # the fit that needs it says so
    assert "gone" not in PRETEXT_TASKS


def test_an_instance_is_copied_and_the_copy_gets_the_encoder():
    task, encoder = PARS(400, 100, n_patches=5, **SIZES), PatchEncoder(100, **SIZES)
    made = make_task(task, n_times=1000, encoder=encoder)
    assert made is not task
    assert made.encoder is encoder
    assert task.encoder is not encoder
    assert (made.n_patches, made.n_times) == (5, 400)


@pytest.mark.parametrize(
    ("task", "params", "error", "message"),
    [
        (MAE, {"ratio": 0.5}, TypeError, "'ratio'"),
        (MAE(400, 100, **SIZES), {"mask_ratio": 0.5}, TypeError, "mask_ratio"),
        (MAE(400, 50, **SIZES), None, ValueError, "patch_size=50"),
        (MAE(800, 100, **SIZES), None, ValueError, "800 samples.* 400"),
    ],
)
def test_incompatible_tasks_raise(task, params, error, message):
    encoder = PatchEncoder(100, **SIZES)
    with pytest.raises(error, match=message):
        make_task(task, n_times=400, encoder=encoder, task_params=params)
