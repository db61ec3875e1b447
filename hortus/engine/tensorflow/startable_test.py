import pytest
import tensorflow as tf

from hortus.engine.tensorflow.startable import StartableDataset, zip_startable


def numbers(first=0, skipped=0):
    """Numbers in twos; what was skipped before is part of a position."""

    def restart(position):
        return numbers(position["batches"], position.get("skipped", 0))

    dataset = tf.data.Dataset.range(2 * first + skipped, 10**6).batch(2)
    return StartableDataset(dataset, restart, lambda batches: {"skipped": skipped + batches})


def take(dataset, count):
    return [part.numpy().tolist() for part in dataset.take(count)]


def test_it_is_an_ordinary_dataset():
    assert isinstance(numbers(), tf.data.Dataset)
    assert numbers().element_spec == tf.TensorSpec([None], tf.int64)
    assert take(numbers().unbatch(), 3) == [0, 1, 2]
    draw = tf.function(lambda iterator: next(iterator), autograph=False)
    assert draw(iter(numbers())).numpy().tolist() == [0, 1]


def test_it_starts_anywhere_again_and_again():
    first = numbers().start_at({"batches": 3})
    assert take(first, 2) == [[6, 7], [8, 9]]
    assert take(first.start_at({"batches": 1, "skipped": 1}), 1) == [[3, 4]]
    assert first.position(5) == {"batches": 5, "skipped": 5}


def test_a_function_of_a_number_is_enough():
    def from_batch(number):
        return tf.data.Dataset.range(number, 10)

    dataset = StartableDataset(from_batch(0), lambda position: from_batch(position["batches"]))
    assert dataset.position(4) == {"batches": 4}
    again = dataset.start_at({"batches": 4}).start_at({"batches": 6})
    assert take(again, 2) == [6, 7]


def test_what_is_made_batch_by_batch_starts_anywhere_too():
    options = tf.data.Options()
    options.deterministic = True
    changed = numbers().map(lambda batch: batch * 10).prefetch(2).with_options(options)
    assert changed.options().deterministic
    later = changed.start_at({"batches": 2, "skipped": 1})
    assert take(later, 1) == [[50, 60]]
    assert later.position(3) == {"batches": 3, "skipped": 4}
    assert take(later.start_at({"batches": 1}), 1) == [[20, 30]]
    # What is not, does not: it would start at the wrong place.
    assert not isinstance(changed.unbatch(), StartableDataset)


@pytest.mark.parametrize("has_parts", [True, False])
def test_pairs_start_where_both_parts_do(has_parts):
    both = zip_startable([numbers(), numbers(skipped=1)])
    position = both.position(2)
    assert position == {
        "batches": 2,
        "parts": [{"batches": 2, "skipped": 2}, {"batches": 2, "skipped": 3}],
    }
    if not has_parts:  # as a checkpoint of an earlier version
        del position["parts"]
    ((first, second),) = both.start_at(position).take(1).as_numpy_iterator()
    assert first.tolist() == ([6, 7] if has_parts else [4, 5])
    assert second.tolist() == ([7, 8] if has_parts else [4, 5])
