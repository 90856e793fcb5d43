"""Save, load and share pretrained encoders, with an encoder card that describes the training data.

The bundled encoders are in ``shipped/``, in one folder each.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cards": ["EncoderCard", "LoadReport", "Pretrained"],
        "saved": ["load_encoder", "packaged_encoders", "save_encoder"],
    },
)
