"""``python -m braindecode_pars``, the same as ``braindecode-pars``."""

from braindecode_pars.cli import main

if __name__ == "__main__":
    main()
