"""Windows as arrays: odd types, orders and containers, and relations that must hold."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import strategies as st
from skorch.helper import SliceDataset
from torch.utils.data import Subset, TensorDataset

from fuzz import small
from fuzz.outcomes import Case


class Labeled(torch.utils.data.Dataset):
    """Windows with labels, as (window, label, indices)."""

    def __init__(self, X):
        self.X = X

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return self.X[i], int(small.LABELS[i % 12]), [i, 0, small.N_TIMES]


def _memory_map(X, folder):
    np.save(folder / "windows.npy", X)
    return np.load(folder / "windows.npy", mmap_mode="r")


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


#: Other forms of the same windows.
SAME = {
    "float64": lambda X, _: X.astype(float),
    "longdouble": lambda X, _: X.astype(np.longdouble),
    "big-endian float32": lambda X, _: X.astype(">f4"),
    "big-endian float64": lambda X, _: X.astype(">f8"),
    "Fortran order": lambda X, _: np.asfortranarray(X),
    "transposed memory": lambda X, _: np.ascontiguousarray(X.transpose(2, 0, 1)).transpose(1, 2, 0),
    "negative strides": lambda X, _: np.ascontiguousarray(X[:, ::-1, ::-1])[:, ::-1, ::-1],
    "every second sample": lambda X, _: np.repeat(X, 2, axis=2)[:, :, ::2],
    "read-only": lambda X, _: _read_only(X),
    "memory map": _memory_map,
    "masked array without a mask": lambda X, _: np.ma.masked_array(X),
    "float32 tensor": lambda X, _: torch.from_numpy(X),
    "float64 tensor": lambda X, _: torch.from_numpy(X.astype(float)),
    "strided tensor": lambda X, _: torch.from_numpy(np.repeat(X, 2, axis=2))[:, :, ::2],
    "tensor with a gradient": lambda X, _: torch.from_numpy(X).requires_grad_(),
    "list of arrays": lambda X, _: list(X),
    "list of tensors": lambda X, _: [torch.from_numpy(window) for window in X],
    "list of lists": lambda X, _: X.tolist(),
    "tuple of arrays": lambda X, _: tuple(X),
    "list of tuples": lambda X, _: [Labeled(X)[i] for i in range(len(X))],
    "torch dataset": lambda X, _: Labeled(X),
    "subset": lambda X, _: Subset(Labeled(X), range(len(X))),
    "nested subset": lambda X, _: Subset(Subset(Labeled(X), range(len(X))), list(range(len(X)))),
    "slice dataset": lambda X, _: SliceDataset(Labeled(X)),
    "tensor dataset": lambda X, _: TensorDataset(torch.from_numpy(X), torch.zeros(len(X))),
}


@st.composite
def forms(draw):
    """The same windows in another form give the same output, fitted or only predicted."""
    name = draw(st.sampled_from(sorted(small.MODELS)))
    form, seed = draw(st.sampled_from(sorted(SAME))), draw(st.integers(0, 999))
    fit = draw(st.integers(0, 3)) == 0
    X = small.signals(seed)
    text = f"{name}, {'fitted and ' if fit else ''}applied to {form} of signals({seed})"

    def act(folder):
        given = SAME[form](X, folder)
        model = small.fitted(name)
        if fit:
            model = small.make(name, sfreq=small.SFREQ).fit(given, small.LABELS)
        return small.output(model, given)

    def problem(found):
        model = small.fitted(name)
        if fit:
            model = small.make(name, sfreq=small.SFREQ).fit(X, small.LABELS)
        return small.differs(found, small.output(model, X))

    return Case(text, act, problem)


@st.composite
def related(draw):
    """Windows in another order, another unit or with an offset: a relation to the first output."""
    name = draw(st.sampled_from(sorted(small.MODELS)))
    seed, kind = draw(st.integers(0, 999)), draw(st.integers(0, 4))
    X = small.signals(seed)
    rng = np.random.default_rng(seed)
    order = np.arange(len(X))
    if name == "embedder" and kind == 4:
        kind = 3  # it keeps channels side by side
    if kind <= 1 or name in ("network", "band power"):
        order = rng.integers(0, len(X), draw(st.integers(1, 30)))
        other, text = X[order], f"windows {order.tolist()}"
    elif kind == 2:
        factor = draw(st.sampled_from([1e-11, 1e-6, 1e-3, 1e3, 1e6, 1e9, 1e20, 1e-25, 1e-15]))
        other, text = X.astype(float) * factor, f"scaled by {factor:g}"
    elif kind == 3:
        offset = draw(st.sampled_from([1e-5, 1e-2, 1.0, 1e3, 1e6]))
        other, text = X + np.float32(offset), f"with an offset of {offset:g} V"
    else:
        other, text = X[:, ::-1], "with both channels exchanged, without names"

    def act(folder):
        return small.output(small.fitted(name), other)

    def problem(found):
        return small.differs(found, small.output(small.fitted(name), X)[order], rtol=1e-2)

    return Case(f"{name} of signals({seed}) {text}", act, problem)


@st.composite
def integers(draw):
    """Integers are converted to real numbers, whatever their width."""
    name = draw(st.sampled_from(sorted(small.MODELS)))
    dtype = draw(st.sampled_from(["int16", "int32", "int64", "uint8", "uint16", ">i2", "float16"]))
    seed = draw(st.integers(0, 999))
    X = small.signals(seed)
    X = (100 + 20 * (X / X.std(axis=(0, 2), keepdims=True)).clip(-4, 4)).astype(dtype)

    def act(folder):
        return small.output(small.fitted(name), X)

    def problem(found):
        return small.differs(found, small.output(small.fitted(name), X.astype("float32")))

    return Case(f"{name} of {dtype}, seed {seed}", act, problem)


cases = st.one_of(forms(), forms(), related(), integers())
