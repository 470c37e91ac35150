"""Sealed bytes: the cipher of the core, as Python calls it."""

import pytest

from horovod._core._native import seal, unseal

KEY = bytes(range(0x80, 0xA0))


def test_bytes_are_sealed_as_rfc_8439_says():
    # As Python's cryptography gives it for the nonce 07 00 00 00 00 00 00 00 00 00 00 00.
    assert seal(KEY, 7, b"hello").hex() == "776f2089412385f1d2e7f6e17449075efcc1bd76d7"
    assert seal(KEY, 7, b"").hex() == "082236c6964dec7c0583f177b183095c"


def test_what_was_sealed_is_opened_by_its_key_and_number_alone():
    sealed = seal(KEY, 1 << 63, b"hello")

    assert unseal(KEY, 1 << 63, sealed) == b"hello"
    assert unseal(KEY, 0, sealed) is None
    assert unseal(bytes(32), 1 << 63, sealed) is None
    for at in range(len(sealed)):
        changed = bytes([*sealed[:at], sealed[at] ^ 1, *sealed[at + 1 :]])
        assert unseal(KEY, 1 << 63, changed) is None
    for count in range(len(sealed)):
        assert unseal(KEY, 1 << 63, sealed[:count]) is None
    assert unseal(KEY, 5, seal(KEY, 5, b"")) == b""


def test_sealing_says_what_it_takes():
    with pytest.raises(ValueError, match="a key has 32 bytes, got 31"):
        seal(bytes(31), 0, b"")
    for number in (-1, 1 << 64):
        with pytest.raises(OverflowError):
            seal(KEY, number, b"")
    for wrong in ((KEY, 0, "text"), ("text", 0, b""), (KEY, "0", b"")):
        with pytest.raises(TypeError):
            unseal(*wrong)
