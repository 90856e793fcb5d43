"""Save, load and share pretrained encoders, with an encoder card that describes the training data.

The bundled encoders, which are part of the package, are in ``shipped/``, each in its own folder.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cards": ["EncoderCard", "LoadReport", "Pretrained"],
        "saved": ["load_encoder", "packaged_encoders", "save_encoder"],
    },
)
