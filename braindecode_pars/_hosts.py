"""braindecode and torchaudio, imported first: where they do not fit torch, one sentence says so.

The packages that need braindecode import this before anything else.
"""

import warnings

try:
    import torchaudio  # noqa: F401  braindecode imports it
except (ImportError, OSError, RuntimeError) as error:
    import torch

    raise ImportError(
        f"torch {torch.__version__} and torchaudio do not load together "
        f"({(str(error) or type(error).__name__).splitlines()[0]}): install a pair built for "
        "the same CUDA version, for example with: pip install --force-reinstall "
        "'torch>=2.11,<2.15' 'torchaudio>=2.11,<2.12'"
    ) from None

with warnings.catch_warnings():
    # braindecode 1.8 asks MNE for montages by names that MNE is about to retire.
    warnings.filterwarnings("ignore", "Montage name", FutureWarning)
    import braindecode.models  # noqa: F401
