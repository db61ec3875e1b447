"""Where files that are read in turns stand after some records, found without reading them."""

import collections
import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Standing:
    """What is still to be read of some files."""

    begun: tuple[int, int, int] | None
    """Number of the file whose turn has begun, how many of its records were read, and how many it
    still gives in this turn; None at the start of a turn."""
    files: list[tuple[int, int]]
    """Number of each file that comes then, in the order in which `Dataset.interleave` has to open
    them, and how many of its records were read."""


def after(done: int, counts: Sequence[int], cycle_length: int, block_length: int) -> Standing:
    """Where `Dataset.interleave` stands after some records, so that another one can go on.

    Args:
      done: how many records were read, at most all of them.
      counts: records of each file, in the order in which files are opened.
      cycle_length: files that are open at once.
      block_length: records of a turn.
    """
    waiting = collections.deque(range(len(counts)))
    # Each place is free, or has the number of its file and how many of its records were read.
    places: list[tuple[int, int] | None] = [None] * cycle_length
    turn, given = 0, 0
    while done:
        place = places[turn]
        if place is None and waiting:
            places[turn] = (waiting.popleft(), 0)
            continue
        if place is not None and place[1] < counts[place[0]]:
            places[turn] = (place[0], place[1] + 1)
            done, given = done - 1, given + 1
            if given < block_length:
                continue
        else:  # that a file has come to its end is found when it is asked for more
            places[turn] = None
        turn, given = (turn + 1) % cycle_length, 0

    begun, place = None, places[turn]
    if given and place is not None:
        file, read = place
        left = min(block_length - given, counts[file] - read)
        begun = (file, read, left)
        places[turn] = (file, read + left) if given + left == block_length else None
        turn = (turn + 1) % cycle_length
    files = []
    for place in (*places[turn:], *places[:turn]):
        if place is not None:
            files.append(place)
        elif waiting:
            files.append((waiting.popleft(), 0))
    return Standing(begun, files + [(file, 0) for file in waiting])
