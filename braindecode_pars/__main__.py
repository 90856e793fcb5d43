"""``python -m braindecode_pars``, the same as ``braindecode-pars``."""

from braindecode_pars.cli import app

if __name__ == "__main__":
    app(prog_name="braindecode-pars")
