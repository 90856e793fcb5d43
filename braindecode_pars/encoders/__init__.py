"""The pretrained encoders in the package, a folder for each.

The folder of an encoder has ``encoder.safetensors``, ``encoder.json`` and a ``README.md`` with
licence and origin. ``_make`` makes it from a pretraining run.
:func:`~braindecode_pars.pretrained.load_encoder` and ``encoder=`` of the estimators find an encoder
by name, and :func:`~braindecode_pars.pretrained.packaged_encoders` lists them.
"""

__all__: list[str] = []
