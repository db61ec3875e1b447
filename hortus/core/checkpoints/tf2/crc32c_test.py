import numpy as np
import pytest

from hortus.core.checkpoints.tf2 import crc32c


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),  # the check value that the polynomial is known by
        (bytes(32), 0x8A9136AA),  # RFC 3720, B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_known_values(data, expected):
    assert crc32c.crc32c(np.frombuffer(data, np.uint8)) == expected


@pytest.mark.parametrize("size", [1023, 1024, 1025, 4096, 5000, 65536, 100_003, (1 << 20) + 7])
def test_side_by_side_is_the_same_as_in_sequence(size):
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    assert crc32c.crc32c(data) == crc32c._in_sequence(data.tobytes())


def test_a_changed_bit_changes_it():
    data = np.zeros(5000, np.uint8)
    before = crc32c.crc32c(data)
    for position in (0, 1, 2500, 4999):
        data[position] ^= 1
        assert crc32c.crc32c(data) != before
        data[position] ^= 1


def test_unmasking_undoes_the_mask():
    for crc in (0, 1, 0xE3069283, 0xFFFFFFFF):
        masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
        assert crc32c.unmask(masked) == crc
