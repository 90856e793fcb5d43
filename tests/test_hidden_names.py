"""Names as salted hashes."""

from __future__ import annotations

import hashlib

from braindecode_pars._common import subjects as _hidden_names
from braindecode_pars._common.subjects import hidden, hide_all, new_salt, salt_of


def test_the_hash_is_scrypt_of_the_name():
    salt = bytes(range(16))
    expected = hashlib.scrypt("jörg".encode(), salt=salt, n=2048, r=8, p=1, dklen=16)
    assert hidden("jörg", salt.hex()) == f"scrypt${salt.hex()}${expected.hex()}"


def test_each_salt_gives_another_hash():
    names = ["anna", "ben", ""]
    first, second = (hide_all(names, new_salt()) for _ in range(2))
    assert len({*first, *second}) == 6
    assert all(salt_of(text) is not None for text in first)


def test_other_texts_are_not_hidden():
    text = hidden("anna", "0" * 32)
    others = [text[:-1], f"{text}0", text.upper(), f"tueg:{text}", "scrypt$$", "", "anna"]
    assert [salt_of(other) for other in others] == [None] * 7


def test_a_name_is_hashed_once_for_each_salt(monkeypatch):
    """A leak check of many folds asks for the same subjects again and again."""
    calls = []
    real = hashlib.scrypt
    monkeypatch.setattr(
        _hidden_names.hashlib, "scrypt", lambda *a, **k: calls.append(a) or real(*a, **k)
    )
    salt = new_salt()
    for _ in range(3):
        hide_all(["anna", "ben"], salt)
    assert len(calls) == 2
