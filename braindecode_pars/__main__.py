"""Entry point of ``python -m braindecode_pars``, which is equivalent to ``braindecode-pars``."""

from braindecode_pars.cli import main

if __name__ == "__main__":
    main()
