"""Choice of the torch device."""

from __future__ import annotations

import torch

__all__ = ["find_device"]


def find_device(name: str | torch.device) -> torch.device:
    """Return a usable device; ``"auto"`` chooses CUDA, then MPS, then the CPU.

    Raises
    ------
    ValueError
        When the device cannot be used on this machine.
    """
    if name != "auto":
        # Only an allocation shows that a device works; torch.device accepts absent ones.
        try:
            device = torch.empty(0, device=name).device
            if device.type == "meta":
                raise TypeError("it stores no data")
            return device
        except (RuntimeError, AssertionError, TypeError) as error:
            raise ValueError(
                f"device={name!r} cannot be used here ({str(error).splitlines()[0]}); "
                "use device='auto' to choose an available device."
            ) from error
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
