"""Checksums of files and arrays."""

from braindecode_pars.storage._checksum import checksum_of


def test_checksums_of_different_bytes_differ():
    assert checksum_of(b"ab") != checksum_of(b"ac")
    assert len(checksum_of(b"")) == 16
