"""Sequences of calls on one folder, where their order matters."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from braindecode.datasets import BaseConcatDataset
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from braindecode_pars import PARSClassifier, PARSEmbedder, PARSNet
from braindecode_pars.signal_store import SignalStore
from fuzz import folders, small
from fuzz.outcomes import CLEAR, RIGHT, WRONG, Case, Totals, judge

X = folders.X


class Sequence(RuleBasedStateMachine):
    """Calls on folders, each of which is judged as a case."""

    area: ClassVar[str]
    folder: ClassVar[Path]
    totals: ClassVar[Totals]

    def __init__(self):
        super().__init__()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.done: list[str] = []

    def step(self, text: str, act: Any, problem: Any, *, must_work: bool = False) -> str:
        """Judge one call, and return its outcome; the text of a case is the whole sequence."""
        self.done.append(text)
        case = Case("; ".join(self.done), lambda _: act(), problem)
        outcome, detail = judge(case, self.folder)
        if must_work and outcome == CLEAR:
            outcome, detail = WRONG, f"refused without a reason: {detail}"
        self.totals.add(self.area, outcome, case.text, detail)
        return outcome


@cache
def _model(kind: str, number: int) -> tuple[Any, list]:
    """Return a fitted model, and what it gives."""
    if kind == "net":
        path = folders._made("net", number)
        return PARSNet.from_pretrained(path), folders._open_net(path)
    model = small.make(kind, sfreq=small.SFREQ, random_state=number)
    model.fit(X, small.LABELS if kind == "classifier" else None)
    return model, [small.output(model, X)]


def _save(kind: str, number: int, path: Path) -> None:
    model, _ = _model(kind, number)
    model.save_pretrained(path) if kind == "net" else model.save(path)


def _load(kind: str, path: Path) -> Any:
    if kind == "net":
        return folders._open_net(path)[0]
    cls = {"classifier": PARSClassifier, "embedder": PARSEmbedder}[kind]
    return small.output(cls.load(path, device="cpu"), X)


KINDS = st.sampled_from(["classifier", "embedder", "net"])
PLACES = st.sampled_from(["a", "b"])


class ModelFolders(Sequence):
    """Save, load, fit again, copy and damage models in two folders."""

    def __init__(self):
        super().__init__()
        #: Place -> kind and number of the model that was saved last, and whether it is damaged.
        self.saved: dict[str, tuple[str, int, bool]] = {}

    @rule(place=PLACES, kind=KINDS, number=st.integers(0, 2))
    def save(self, place, kind, number):
        path = self.folder / place
        before = self.saved.get(place)
        outcome = self.step(
            f"save {kind} {number} in {place}",
            lambda: _save(kind, number, path),
            lambda result: None,
            must_work=before is None or (before[0] == kind and not before[2]),
        )
        if outcome == RIGHT:
            self.saved[place] = (kind, number, False)

    @rule(place=PLACES, kind=KINDS)
    def load(self, place, kind):
        path, saved = self.folder / place, self.saved.get(place)

        def problem(returned):
            if saved is None:
                return f"loaded a {kind} from nothing"
            if saved[0] == "classifier" and kind == "net":
                return None  # the folder of a classifier is that of its net, too
            if saved[0] != kind:
                return f"the folder of a {saved[0]} was loaded as {kind}"
            return small.differs(returned, _model(kind, saved[1])[1][0], rtol=1e-5)

        works = saved is not None and saved[0] == kind and not saved[2]
        self.step(f"load {kind} from {place}", lambda: _load(kind, path), problem, must_work=works)

    @rule(place=PLACES, number=st.integers(0, 2))
    def fit_again(self, place, number):
        """A loaded model that is fitted again equals a new one with its parameters."""
        path, saved = self.folder / place, self.saved.get(place)
        kind = saved[0] if saved and saved[0] != "net" else "classifier"
        cls = {"classifier": PARSClassifier, "embedder": PARSEmbedder}[kind]

        def act():
            model = cls.load(path, device="cpu").set_params(random_state=number)
            return small.output(model.fit(X, small.LABELS), X)

        def problem(returned):
            if saved is None or saved[0] == "net":
                return "fitted a model that was never saved"
            return small.differs(returned, _model(kind, number)[1][0])

        self.step(f"load {kind} from {place}, fit with random_state={number}", act, problem)

    @rule(one=PLACES)
    def copy(self, one):
        other = {"a": "b", "b": "a"}[one]
        if one in self.saved:
            shutil.rmtree(self.folder / other, ignore_errors=True)
            shutil.copytree(self.folder / one, self.folder / other)
            self.saved[other] = self.saved[one]
            self.done.append(f"copy {one} to {other}")

    @rule(
        place=PLACES,
        damage=st.sampled_from(["flip", "truncate", "remove", "edit"]),
        n=st.integers(0, 999),
    )
    def damage(self, place, damage, n):
        if place in self.saved and n % 4 == 0:  # rarely, since little works afterwards
            path, rng = self.folder / place, np.random.default_rng(n)
            files = [f for f in folders._files(path) if f.suffix in (".json", ".safetensors")]
            file = path / files[n % len(files)]
            folders.DAMAGES[damage](file, rng, file)
            self.saved[place] = (*self.saved[place][:2], True)
            self.done.append(f"{damage} {file.name} in {place}, default_rng({n})")


def _recordings(numbers: list[int]) -> BaseConcatDataset:
    return BaseConcatDataset(
        [small.windows_of(small.recording(n), {"subject": n}) for n in numbers]
    )


class StoreFolder(Sequence):
    """Create, interrupt, open and damage one store."""

    def __init__(self):
        super().__init__()
        self.path = self.folder / "store"
        #: Numbers of the stored recordings; None when there is no finished store.
        self.stored: list[int] | None = None
        self.pending: list[int] | None = None
        self.damaged = False

    @rule(numbers=st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True))
    def create(self, numbers):
        empty = self.stored is None and self.pending is None and not self.damaged
        same = self.pending == numbers and not self.damaged
        outcome = self.step(
            f"create with {numbers}",
            lambda: SignalStore.create(self.path, _recordings(numbers), dtype="float32", verbose=0),
            lambda store: None if empty or same else f"replaced {self.stored or self.pending}",
            must_work=empty or same,
        )
        if outcome == RIGHT:
            self.stored, self.pending = numbers, None

    @rule(numbers=st.lists(st.integers(0, 5), min_size=2, max_size=3, unique=True))
    def interrupt(self, numbers):
        """Ctrl-C while the last recording is read."""
        if self.stored is not None or self.pending is not None or self.damaged:
            return
        windows = _recordings(numbers)

        class Interrupted(type(windows.datasets[-1].raw)):
            def get_data(self, *args, **kwargs):
                raise KeyboardInterrupt

            _getitem = __getitem__ = load_data = get_data

        windows.datasets[-1].raw.__class__ = Interrupted
        try:
            SignalStore.create(self.path, windows, dtype="float32", verbose=0)
        except KeyboardInterrupt:
            self.pending = numbers
        else:
            self.stored = numbers
        self.done.append(f"create with {numbers}, interrupted")

    @rule()
    def open(self):
        def act():
            store = SignalStore.open(self.path, verbose=0)
            windows = store.windows(small.N_TIMES)
            return np.stack([windows[i] for i in range(len(windows))])

        def problem(returned):
            if self.stored is None:
                return "opened a store that was never finished"
            return small.differs(returned, small.stacked(_recordings(self.stored)), rtol=1e-5)

        self.step("open", act, problem, must_work=self.stored is not None and not self.damaged)

    @rule(damage=st.sampled_from(["flip", "truncate", "edit"]), n=st.integers(0, 999))
    def damage(self, damage, n):
        if self.stored is not None and n % 4 == 0:
            files = folders._files(self.path)
            files = [f for f in files if (self.path / f).stat().st_size]
            file, rng = self.path / files[n % len(files)], np.random.default_rng(n)
            folders.DAMAGES[damage](file, rng, file)
            self.damaged = True
            self.done.append(f"{damage} {file.name}, default_rng({n})")


def run(
    machine: type[Sequence],
    area: str,
    number: int,
    steps: int,
    folder: Path,
    totals: Totals,
    reproducible: Any,
) -> None:
    """Run sequences of one machine."""
    machine.area, machine.folder, machine.totals = area, folder, totals
    chosen = settings(reproducible(number), stateful_step_count=steps)
    run_state_machine_as_test(seed(0)(machine), settings=chosen)
