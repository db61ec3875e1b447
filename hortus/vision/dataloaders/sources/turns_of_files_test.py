import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.vision.dataloaders.sources.turns_of_files import after


def interleaved(files, cycle_length, block_length):
    """What tf.data gives of files: number, records that were read before, and records in all."""
    table = tf.constant(files, tf.int64, [len(files), 3])
    return tf.data.Dataset.from_tensor_slices(table).interleave(
        lambda file: tf.data.Dataset.range(file[1], file[2]).map(lambda n: 100 * file[0] + n),
        cycle_length=cycle_length,
        block_length=block_length,
    )


@settings(max_examples=25, deadline=None)
@given(
    counts=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    cycle_length=st.integers(1, 4),
    block_length=st.integers(1, 4),
    data=st.data(),
)
def test_another_interleave_goes_on_from_any_place(counts, cycle_length, block_length, data):
    done = data.draw(st.integers(0, sum(counts)))
    files = [(number, 0, count) for number, count in enumerate(counts)]
    whole = [int(n) for n in interleaved(files, cycle_length, block_length)]
    standing = after(done, counts, cycle_length, block_length)
    rest = []
    if standing.begun is not None:
        file, read, left = standing.begun
        rest += [100 * file + read + n for n in range(left)]
    files = [(file, read, counts[file]) for file, read in standing.files]
    rest += [int(n) for n in interleaved(files, cycle_length, block_length)]
    assert rest == whole[done:]
