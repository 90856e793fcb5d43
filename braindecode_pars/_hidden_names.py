"""Names as salted hashes: whoever has a name can recognise it, others can only try names.

The hash is scrypt (RFC 7914), which is slow on purpose: a try of one name takes about five
milliseconds of one core. That is no protection of a name from a short list, such as the numbers 1
to 109: all of them are tried in a second.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial

__all__ = ["hidden", "hide_all", "new_salt", "salt_of"]

_HIDDEN = re.compile(r"scrypt\$(?P<salt>[0-9a-f]{32})\$[0-9a-f]{32}")


def new_salt() -> str:
    """Return a random salt of 16 bytes, as hexadecimal digits.

    Examples
    --------
    >>> from braindecode_pars._hidden_names import new_salt
    >>> len(new_salt()), new_salt() == new_salt()
    (32, False)
    """
    return secrets.token_hex(16)


def salt_of(name: str) -> str | None:
    """Return the salt of a hidden name; None if it is not hidden.

    Examples
    --------
    >>> from braindecode_pars._hidden_names import hidden, salt_of
    >>> salt_of(hidden("anna", "0" * 32)) == "0" * 32, salt_of("anna")
    (True, None)
    """
    found = _HIDDEN.fullmatch(name)
    return found["salt"] if found else None


@lru_cache(maxsize=200_000)
def hidden(name: str, salt: str) -> str:
    """Return a name as ``scrypt$salt$hash``, always the same for a name and a salt.

    Parameters
    ----------
    name : str
        Name, in one spelling.
    salt : str
        Hexadecimal digits, from :func:`new_salt`.

    Returns
    -------
    str
        Salt and hash. scrypt has the cost parameters N = 2048, r = 8 and p = 1 (2 MiB).

    Examples
    --------
    >>> from braindecode_pars._hidden_names import hidden
    >>> hidden("anna", "00112233445566778899aabbccddeeff")
    'scrypt$00112233445566778899aabbccddeeff$...'
    """
    digest = hashlib.scrypt(name.encode(), salt=bytes.fromhex(salt), n=1 << 11, r=8, p=1, dklen=16)
    return f"scrypt${salt}${digest.hex()}"


def hide_all(names: Iterable[str], salt: str) -> list[str]:
    """Return :func:`hidden` of several names, on all cores.

    Examples
    --------
    >>> from braindecode_pars._hidden_names import hidden, hide_all
    >>> hide_all(["a", "b"], "0" * 32) == [hidden("a", "0" * 32), hidden("b", "0" * 32)]
    True
    """
    with ThreadPoolExecutor() as threads:  # scrypt releases the lock of the interpreter
        return list(threads.map(partial(hidden, salt=salt), names))
