import pytest
import tensorflow as tf

from hortus.engine.tensorflow import feed
from hortus.engine.tensorflow.startable import StartableDataset


def counted(cached=False):
    dataset = tf.data.Dataset.range(6)
    return (dataset.cache() if cached else dataset).shuffle(6, seed=1).repeat().batch(2)


def take(source, count):
    return [next(source).numpy().tolist() for _ in range(count)]


def from_batch(number):
    return tf.data.Dataset.range(2 * number, 1000).batch(2)


def startable():
    return StartableDataset(from_batch(0), lambda position: from_batch(position["batches"]))


@pytest.mark.parametrize("is_exact", [True, False])
def test_a_startable_dataset_goes_on_where_it_was_again_and_again(tmp_path, recwarn, is_exact):
    first = feed.DatasetFeed(startable(), is_exact)
    for stop in range(1, 5):
        assert take(first, 1) == [[2 * stop - 2, 2 * stop - 1]]
        first.save_files(str(tmp_path))
        assert [path.name for path in tmp_path.iterdir()] == ["batches.json"]
        first = feed.DatasetFeed(startable(), is_exact)
        first.load_files(str(tmp_path))
        assert first.taken == stop and first.position == {"batches": stop}
    assert not recwarn.list


def test_nothing_is_read_before_it_is_asked_for(tmp_path):
    asked = []

    def read(number):
        asked.append(number)
        return from_batch(number)

    def make():
        return StartableDataset(from_batch(0), lambda position: read(position["batches"]))

    first = feed.DatasetFeed(make())
    take(first, 2)
    first.save_files(str(tmp_path))
    second = feed.DatasetFeed(make())
    second.set_state({"batches": 9})
    second.load_files(str(tmp_path))
    second.save_files(str(tmp_path))  # a checkpoint before the first step
    assert asked == []
    assert take(second, 1) == [[4, 5]] and asked == [2]


def test_hosts_of_another_number_go_on_by_what_they_have_in_common():
    one = feed.DatasetFeed(startable())
    take(one, 3)
    other = feed.DatasetFeed(startable())
    other.set_state({**one.get_state(), "left_out": {"": 5}})
    assert other.position == {"batches": 3}
    other.stays = True
    other.set_state({"batches": 1})
    assert take(other, 1) == [[6, 7]]


def test_any_other_dataset_is_read_again_where_it_has_to_be_exact(tmp_path):
    first = feed.DatasetFeed(counted())
    expected = take(first, 9)
    for stop in (2, 4, 5):
        first = feed.DatasetFeed(counted())
        if stop > 2:
            first.load_files(str(tmp_path))
            with pytest.warns(UserWarning, match="batches are read again. A StartableDataset"):
                assert take(first, 1) == [expected[first.taken - 1]]
        take(first, stop - first.taken)
        first.save_files(str(tmp_path))
        assert [path.name for path in tmp_path.iterdir()] == ["batches.json"]


def test_otherwise_tf_data_saves_its_iterator(tmp_path, recwarn):
    first = feed.DatasetFeed(counted(), is_exact=False)
    take(first, 4)
    first.save_files(str(tmp_path))
    rest = take(first, 5)
    second = feed.DatasetFeed(counted(), is_exact=False)
    second.load_files(str(tmp_path))
    assert second.taken == 4
    assert take(second, 5) == rest
    assert not recwarn.list


def test_a_position_of_an_earlier_version_is_found_by_its_count(tmp_path):
    old = feed.DatasetFeed(from_batch(0), is_exact=False)
    take(old, 3)
    old.save_files(str(tmp_path))
    new = feed.DatasetFeed(startable())
    with pytest.warns(UserWarning, match="earlier version.* go on after 3 batches of the run"):
        new.load_files(str(tmp_path))
    assert take(new, 1) == [[6, 7]]


def test_a_feed_that_stays_loads_nothing(tmp_path):
    first = feed.DatasetFeed(counted())
    take(first, 4)
    first.save_files(str(tmp_path))
    second = feed.DatasetFeed(counted())
    second.stays = True
    second.load_files(str(tmp_path))
    assert second.taken == 0


def test_a_pipeline_without_position_is_read_again(tmp_path):
    def generated():
        def generate():
            yield from range(8)

        return tf.data.Dataset.from_generator(
            generate, output_signature=tf.TensorSpec([], tf.int64)
        ).batch(2)

    first = feed.DatasetFeed(generated(), is_exact=False)
    take(first, 2)
    first.save_files(str(tmp_path))
    second = feed.DatasetFeed(generated(), is_exact=False)
    second.load_files(str(tmp_path))
    with pytest.warns(UserWarning, match="2 batches are read again"):
        assert take(second, 1) == [[4, 5]]


def test_the_end_is_a_stop_iteration():
    short = feed.DatasetFeed(tf.data.Dataset.range(2).batch(2))
    assert [batch.numpy().tolist() for batch in short] == [[0, 1]]


def test_repeat_first_repeats_the_same_batches():
    again = feed.repeat_first(counted(), 2)
    batches = [batch.numpy().tolist() for batch in again.take(4)]
    assert batches[:2] == batches[2:]
    assert batches[0] != batches[1]
    later = again.start_at({"batches": 3})
    assert [batch.numpy().tolist() for batch in later.take(2)] == [batches[1], batches[0]]
    # What has no batches is left as it is: its own error tells more.
    assert list(feed.repeat_first(tf.data.Dataset.range(0), 1)) == []
