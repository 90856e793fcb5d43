"""Length of a patch in samples."""

from __future__ import annotations

__all__ = ["patch_size_for"]

#: Patches per window when the sampling rate is unknown: 1 s of the 30 s windows of the paper.
PATCHES_PER_WINDOW = 30


def patch_size_for(patch_seconds: float, sfreq: float | None, n_times: int | None) -> int:
    """Return the number of samples in a patch.

    Parameters
    ----------
    patch_seconds : float
        Length of a patch in seconds.
    sfreq : float | None
        Sampling rate in Hz. With None, a patch is a thirtieth of the window. This is one second
        of the 30 s windows of the paper.
    n_times : int | None
        Number of samples in a window; None when it is unknown.

    Returns
    -------
    int
        Number of samples, at least 1.

    Raises
    ------
    ValueError
        When the window is shorter than the patch, or neither ``sfreq`` nor ``n_times`` is known.

    Examples
    --------
    >>> from braindecode_pars.models import patch_size_for
    >>> patch_size_for(1.0, 200.0, 6000), patch_size_for(1.0, None, 6000)
    (200, 200)
    """
    if not 0 < patch_seconds < float("inf"):
        raise ValueError(f"patch_seconds must be positive, got {patch_seconds}.")
    # Unknown sampling rate: a share of the window.
    if sfreq is None:
        if n_times is None:
            raise ValueError(
                "The patch size needs sfreq, or n_times of a window; neither is specified or can "
                "be inferred."
            )
        return max(1, round(n_times / PATCHES_PER_WINDOW))
    if not 0 < sfreq < float("inf"):
        raise ValueError(f"sfreq must be a positive number of Hz, got {sfreq}.")

    # Known sampling rate: seconds to samples.
    patch_size = max(1, round(patch_seconds * sfreq))
    if n_times is not None and n_times < patch_size:
        raise ValueError(
            f"A window of {n_times} samples is shorter than one patch of {patch_size} samples "
            f"({patch_seconds:g} s at {sfreq:g} Hz); use longer windows or a smaller patch_seconds."
        )
    return patch_size
