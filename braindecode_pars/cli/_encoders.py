"""``braindecode-pars encoders``: the pretrained encoders in the package, and their cards."""

from __future__ import annotations

from typing import Annotated

import typer

from braindecode_pars.cli._failures import report_failures

__all__ = ["encoders"]


def encoders(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Encoder whose card is printed: a name in the package, a folder or a model id. "
            "Default: a table of the encoders in the package.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """List the pretrained encoders in the package, or print the card of one."""
    with report_failures():
        from braindecode_pars.cli._cards import show_card, show_encoders
        from braindecode_pars.cli._console import make_console

        if name is None:
            show_encoders(make_console())
        else:
            show_card(make_console(), name)
