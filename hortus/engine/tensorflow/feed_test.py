import pytest
import tensorflow as tf

from hortus.engine.tensorflow import feed


def counted(cached=False):
    dataset = tf.data.Dataset.range(6)
    return (dataset.cache() if cached else dataset).shuffle(6, seed=1).repeat().batch(2)


def take(source, count):
    return [next(source).numpy().tolist() for _ in range(count)]


def test_a_feed_goes_on_where_it_was(tmp_path):
    first = feed.DatasetFeed(counted())
    take(first, 4)
    first.save_files(str(tmp_path))
    rest = take(first, 5)
    second = feed.DatasetFeed(counted())
    second.load_files(str(tmp_path))
    assert second.taken == 4
    assert take(second, 5) == rest


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

    first = feed.DatasetFeed(generated())
    take(first, 2)
    first.save_files(str(tmp_path))
    second = feed.DatasetFeed(generated())
    with pytest.warns(UserWarning, match="2 batches are read again"):
        second.load_files(str(tmp_path))
    assert take(second, 1) == [[4, 5]]


def test_the_end_is_a_stop_iteration():
    short = feed.DatasetFeed(tf.data.Dataset.range(2).batch(2))
    assert [batch.numpy().tolist() for batch in short] == [[0, 1]]


def test_repeat_first_repeats_the_same_batches():
    again = feed.repeat_first(counted(), 2)
    batches = [batch.numpy().tolist() for batch in again.take(4)]
    assert batches[:2] == batches[2:]
    assert batches[0] != batches[1]
    # What has no batches is left as it is: its own error tells more.
    assert list(feed.repeat_first(tf.data.Dataset.range(0), 1)) == []
