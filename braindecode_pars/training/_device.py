"""Where to compute: by name, or whatever there is."""

from __future__ import annotations

import torch

__all__ = ["find_device"]


def find_device(name: str | torch.device) -> torch.device:
    """A device that can be used here; ``"auto"`` takes CUDA, then MPS, then the CPU.

    Raises
    ------
    ValueError
        When the device does not exist here.
    """
    if name != "auto":
        try:
            device = torch.empty(0, device=name).device
            if device.type == "meta":
                raise TypeError("it holds no numbers")
            return device
        except (RuntimeError, AssertionError, TypeError) as error:
            raise ValueError(
                f"device={name!r} cannot be used here ({str(error).splitlines()[0]}); "
                "device='auto' takes what there is."
            ) from error
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
