"""Checksums of files and arrays."""

from braindecode_pars._common.files import checksum_of, checksum_of_file


def test_checksums_of_different_bytes_differ():
    assert checksum_of(b"ab") != checksum_of(b"ac")
    assert len(checksum_of(b"")) == 16


def test_a_file_has_the_checksum_of_its_content(tmp_path):
    content = bytes(range(256)) * 5000
    (tmp_path / "file").write_bytes(content)
    assert checksum_of_file(tmp_path / "file") == checksum_of(content)
