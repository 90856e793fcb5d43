"""Pretrained encoders: saved, loaded and shared, with a card that says what they were trained on.

The encoders of the package are in ``shipped/``, a folder for each.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cards": ["EncoderCard", "LoadReport", "Pretrained"],
        "saved": ["load_encoder", "packaged_encoders", "save_encoder"],
    },
)
