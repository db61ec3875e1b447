"""CRC-32C (Castagnoli), which TensorFlow's files carry, computed with NumPy alone.

The checksum is linear, so that many pieces of the data can be taken through it side by side and put
together afterwards. That makes it fast enough to check hundreds of megabytes.
"""

import numpy as np

# Long enough that the loop over a piece outweighs putting the pieces together, or the reverse.
_SHORT_PIECE, _LONG_PIECE = 64, 256
_INVERT = 0xFFFFFFFF


def _make_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1)
    return table.astype(np.uint32)


_TABLE = _make_table()


def crc32c(data: np.ndarray) -> int:
    """The checksum of an array of uint8."""
    if data.size < 1024:
        return _in_sequence(data.tobytes())
    piece = _SHORT_PIECE if data.size < 1 << 20 else _LONG_PIECE
    pieces = 1 << (data.size // piece).bit_length() - 1
    length = -(-data.size // pieces)
    # Zeros before the data leave the linear part as it is; the initial value goes into the data.
    padded = np.zeros(pieces * length, np.uint8)
    padded[-data.size :] = data
    padded[padded.size - data.size :][:4] ^= 0xFF
    state = np.zeros(pieces, np.uint32)
    for column in np.ascontiguousarray(padded.reshape(pieces, length).T):
        state = _step(state ^ column)
    advance = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32))
    for _ in range(length):
        advance = _step(advance)
    while state.size > 1:
        state = _apply(advance, state[0::2]) ^ state[1::2]
        advance = _apply(advance, advance)
    return int(state[0]) ^ _INVERT


def unmask(stored: int) -> int:
    """The checksum that a stored one stands for; TensorFlow stores it rotated and shifted."""
    rotated = (stored - 0xA282EAD8) & _INVERT
    return ((rotated >> 17) | (rotated << 15)) & _INVERT


def _in_sequence(data: bytes) -> int:
    table = _TABLE.tolist()
    state = _INVERT
    for byte in data:
        state = table[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state ^ _INVERT


def _step(state: np.ndarray) -> np.ndarray:
    return _TABLE[state & np.uint32(0xFF)] ^ (state >> np.uint32(8))


def _apply(images: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Applies the linear map that takes bit i to `images[i]`."""
    result = np.zeros_like(states)
    for bit in range(32):
        is_set = (states >> np.uint32(bit)) & np.uint32(1)
        result ^= is_set * images[bit]
    return result
