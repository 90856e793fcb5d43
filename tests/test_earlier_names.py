"""Names and values of earlier versions, which files and scripts of users contain."""

import pytest

from braindecode_pars import evaluation, plotting
from braindecode_pars._common import names
from braindecode_pars.pretrained.cards import read_card


@pytest.mark.parametrize("earlier", names.RENAMED)
def test_an_earlier_name_is_the_present_one_with_a_warning(earlier):
    module = {"evaluation": evaluation, "plotting": plotting}[earlier.partition(".")[0]]
    with pytest.warns(FutureWarning, match=names.RENAMED[earlier]):
        value = getattr(module, earlier.partition(".")[2])
    assert value is getattr(module, names.RENAMED[earlier])


def test_an_earlier_card_has_a_license():
    card = read_card({"about": {"licence": "CC0", "name": "a"}})
    assert card.about == {"license": "CC0", "name": "a"}
