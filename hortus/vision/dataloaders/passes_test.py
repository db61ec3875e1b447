import pytest
import tensorflow as tf

from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.passes import Passes
from hortus.vision.dataloaders.sources.base import Shard
from hortus.vision.dataloaders.sources.table import Table

SEED = tf.constant([1, 2], tf.int64)


def rows(passes, first, count):
    return [int(reference["row"]) for reference in passes.read(first).take(count)]


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("shard", [Shard(), Shard(2, 1)])
def test_passes_begin_at_any_number(copies, shard):
    passes = Passes(Table({"n": list(range(7))}), shard, SEED, 1, copies)
    length = (7 if shard.count == 1 else 3) * copies
    whole = rows(passes, 0, 3 * length)
    for number in range(3):
        one = whole[number * length : (number + 1) * length]
        assert sorted(one) == sorted([*range(shard.index, 7, shard.count)] * copies)
    for first in range(3 * length):
        assert rows(passes, first, 3 * length - first) == whole[first:]


def test_a_share_without_examples_is_told():
    class Nothing(Table):
        def count(self, shard):
            return 0

    with pytest.raises(DataError, match="host 1 of 2 has no examples of its own"):
        Passes(Nothing({"n": [1, 2]}), Shard(2, 1), SEED, 1).read(3)
