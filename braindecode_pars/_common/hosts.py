"""Import braindecode, with a short error message if the installed torchaudio does not match torch.

braindecode imports torchaudio. Every subpackage that requires braindecode imports this module
first.
"""

import warnings

try:
    import torchaudio  # noqa: F401  braindecode imports torchaudio
except (ImportError, OSError, RuntimeError) as error:
    import torch

    raise ImportError(
        f"torch {torch.__version__} and torchaudio cannot be imported together "
        f"({(str(error) or type(error).__name__).splitlines()[0]}). Install versions built for the "
        "same CUDA version, for example with: pip install --force-reinstall "
        "'torch>=2.11,<2.15' 'torchaudio>=2.11,<2.12'"
    ) from None

with warnings.catch_warnings():
    # braindecode 1.8 uses montage names that are deprecated in MNE.
    warnings.filterwarnings("ignore", "Montage name", FutureWarning)
    import braindecode.models  # noqa: F401
