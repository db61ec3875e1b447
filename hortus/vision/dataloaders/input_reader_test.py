import os

import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.configs import common
from hortus.vision.dataloaders import input_reader
from hortus.vision.dataloaders.conftest import Host, write_records
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.input_reader import InputReader


def to_number(record):
    return tf.strings.to_number(record, tf.int64)


def with_noise(number, seed):
    """Stands for a parser: the example and a random number."""
    return number, tf.random.stateless_uniform([], seed)


def reader(path, parser_fn=with_noise, **settings):
    settings = {"global_batch_size": 10, "seed": 1, "shuffle_buffer_size": 40, **settings}
    arguments = {
        key: settings.pop(key)
        for key in ("postprocess_fn", "transform_and_batch_fn", "combine_fn", "dataset_fn")
        if key in settings
    }
    params = common.DataConfig({"input_path": path, "is_training": True, **settings})
    return InputReader(params, decoder_fn=to_number, parser_fn=parser_fn, **arguments)


def take(dataset, count):
    """Examples of the first batches, one after another."""
    batches = list(dataset.take(count).as_numpy_iterator())
    return [np.concatenate(values) for values in zip(*batches, strict=True)]


# ---- order ----------------------------------------------------------------------------------


def test_evaluation_reads_everything_once_and_in_order(number_files):
    numbers, _ = take(reader(number_files, is_training=False).read(), -1)
    np.testing.assert_array_equal(numbers, np.arange(100))


def test_the_last_batch_may_be_left_out(number_files):
    settings = {"is_training": False, "global_batch_size": 30}
    assert len(take(reader(number_files, drop_remainder=False, **settings).read(), -1)[0]) == 100
    assert len(take(reader(number_files, drop_remainder=True, **settings).read(), -1)[0]) == 90


def test_every_pass_of_training_has_every_example_once_in_a_new_order(number_files):
    numbers, noise = take(reader(number_files).read(), 30)
    passes = numbers.reshape(3, 100)
    for one in passes:
        assert sorted(one) == list(range(100))
    assert not np.array_equal(passes[0], passes[1])
    assert len(set(noise)) == 300
    # Files of 25 are mixed: no run of neighbours as in the files.
    assert np.mean(np.diff(passes[0]) == 1) < 0.1


def test_a_small_buffer_shuffles_within_blocks(number_files):
    numbers, _ = take(reader(number_files, shuffle_buffer_size=10, cycle_length=1).read(), 10)
    # Blocks of 5 out of one file after another.
    for block in numbers.reshape(20, 5):
        assert block.max() - block.min() == 4


def test_a_seed_determines_order_and_noise(number_files):
    first, again, other = (take(reader(number_files, seed=s).read(), 12) for s in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert np.mean(first[0] == other[0]) < 0.2 and not set(first[1]) & set(other[1])


def test_without_a_seed_every_reader_is_different(number_files):
    first, other = (take(reader(number_files, seed=None).read(), 5)[0] for _ in range(2))
    assert not np.array_equal(first, other)


def test_pythons_seed_is_taken_where_the_config_has_none(number_files):
    import random

    results = []
    for _ in range(2):
        random.seed(11)
        results.append(take(reader(number_files, seed=None).read(), 5))
    np.testing.assert_array_equal(results[0], results[1])


# ---- hosts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("hosts", [2, 4, 5])
def test_hosts_share_the_data(number_files, hosts):
    """By files where there are enough of them, otherwise by records."""
    shares = []
    for i in range(hosts):
        dataset = reader(number_files, global_batch_size=5 * hosts).read(Host(hosts, i))
        numbers, _ = take(dataset, 100 // hosts // 5)
        assert len(numbers) == 100 // hosts
        shares.append(set(numbers))
    assert set.union(*shares) == set(range(100))
    assert sum(len(share) for share in shares) == 100


def test_without_sharding_hosts_read_everything_in_their_own_order(number_files):
    settings = {"sharding": False, "global_batch_size": 20}
    first, second = (take(reader(number_files, **settings).read(Host(2, i)), 10) for i in range(2))
    assert set(first[0]) == set(second[0]) == set(range(100))
    assert not np.array_equal(first[0], second[0])
    assert not set(first[1]) & set(second[1])


# ---- stages ---------------------------------------------------------------------------------


def test_a_mix_has_its_weights(number_files):
    folder = os.path.dirname(number_files)
    mix = {"low": f"{folder}/numbers-0", "high": f"{folder}/numbers-3"}
    numbers, _ = take(reader(mix, weights={"low": 0.8, "high": 0.2}).read(), 60)
    assert set(numbers) == set(range(25)) | set(range(75, 100))
    assert abs(np.mean(numbers < 50) - 0.8) < 4 * (0.16 / 600) ** 0.5


def test_a_mix_is_read_one_after_another_in_evaluation(number_files):
    folder = os.path.dirname(number_files)
    mix = {"high": f"{folder}/numbers-3", "low": f"{folder}/numbers-0"}
    settings = {"is_training": False, "drop_remainder": False}
    numbers, _ = take(reader(mix, **settings).read(), -1)
    assert numbers.tolist() == [*range(75, 100), *range(25)]


def test_a_mix_of_ones_own(number_files):
    folder = os.path.dirname(number_files)
    mix = {"a": f"{folder}/numbers-0", "b": f"{folder}/numbers-3"}
    choose = lambda datasets: tf.data.Dataset.choose_from_datasets(  # noqa: E731
        datasets, tf.data.Dataset.range(2).repeat()
    )
    numbers, _ = take(reader(mix, combine_fn=choose).read(), 3)
    assert np.all(numbers[::2] < 25) and np.all(numbers[1::2] >= 75)


def test_functions_of_batches(number_files):
    def batch(dataset, input_context):
        assert input_context is None
        return dataset.batch(7)

    def halve(numbers, noise):
        return numbers[:3], noise[:3]

    dataset = reader(number_files, transform_and_batch_fn=batch, postprocess_fn=halve).read()
    assert next(iter(dataset))[0].shape == [3]


def test_batches_have_seeds_of_their_own(number_files):
    def noise(numbers, _, seed):
        return numbers, tf.random.stateless_uniform([1], seed)

    _, values = take(reader(number_files, postprocess_fn=noise).read(), 20)
    assert len(set(values)) == 20


def test_a_parser_may_take_no_seed(number_files):
    dataset = reader(number_files, parser_fn=lambda number: (number, number)).read()
    numbers, same = take(dataset, 3)
    np.testing.assert_array_equal(numbers, same)


def test_a_cache_is_read_once(tmp_path):
    path = write_records(tmp_path / "data", [b"%d" % n for n in range(20)])
    dataset = reader(path, cache=True).read()
    os.remove(path)
    for _ in range(2):
        assert sorted(take(dataset, 2)[0]) == list(range(20))


def test_files_of_ones_own(tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("\n".join(str(n) for n in range(30)))
    dataset = reader(str(path), dataset_fn=tf.data.TextLineDataset, is_training=False).read()
    assert take(dataset, -1)[0].tolist() == list(range(30))


def test_compressed_files(tmp_path):
    path = write_records(tmp_path / "data", [b"%d" % n for n in range(10)], "GZIP")
    dataset = reader(path, file_type="tfrecord_compressed", is_training=False).read()
    assert take(dataset, -1)[0].tolist() == list(range(10))


def test_options_are_handed_on(number_files):
    options = (
        reader(number_files, ram_budget=123_456_789, autotune_algorithm="stage_based")
        .read()
        .options()
    )
    assert options.autotune.ram_budget == 123_456_789
    assert options.autotune.autotune_algorithm == tf.data.experimental.AutotuneAlgorithm.STAGE_BASED
    assert options.deterministic
    with pytest.raises(DataError, match=r"expected one of .*hill_climb"):
        reader(number_files, autotune_algorithm="fast").read()


# ---- errors ---------------------------------------------------------------------------------


def test_a_missing_batch_size_is_told(number_files):
    with pytest.raises(DataError, match="global_batch_size is not set"):
        reader(number_files, global_batch_size=0).read()


def test_two_kinds_of_data_at_once_are_an_error(number_files):
    with pytest.raises(DataError, match="both set"):
        reader(number_files, tfds_name="mnist").read()


def test_a_record_that_cannot_be_parsed_is_named(tmp_path):
    path = write_records(tmp_path / "data", [b"0", b"1", b"two", b"3"])
    dataset = reader(path, global_batch_size=1, is_training=False).read()
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"{path}, record 2: .*two") as error:
        list(dataset)
    assert "convert string: two" in str(error.value)


def test_bad_records_are_left_out_and_counted(tmp_path, caplog):
    path = write_records(tmp_path / "data", [b"0", b"one", b"2", b"", b"4"])
    one = reader(path, skip_bad_records=True, global_batch_size=1, is_training=False)
    dataset = one.read()
    assert one.bad_records.count == 0
    assert take(dataset, -1)[0].tolist() == [0, 2, 4]
    assert one.bad_records.count == 2
    assert sorted(one.bad_records.reasons) == [f"{path}, record 1", f"{path}, record 3"]
    assert "left out" in caplog.text and "record 3" in caplog.text
    assert str(one.bad_records).startswith("2 examples were left out")
    take(dataset, -1)
    assert one.bad_records.count == 2  # the same ones


def damaged(tmp_path):
    """A file whose third record of five has a wrong byte, and one that is sound."""
    path = tmp_path / "damaged"
    write_records(path, [b"%d" % n for n in range(5)])
    content = bytearray(path.read_bytes())
    content[2 * 17 + 12] ^= 0xFF
    path.write_bytes(content)
    write_records(tmp_path / "sound", [b"%d" % n for n in range(10, 13)])
    return str(path)


def test_a_damaged_file_can_be_found(tmp_path):
    path = damaged(tmp_path)
    one = reader(f"{tmp_path}/*", global_batch_size=1, is_training=False)
    with pytest.raises(tf.errors.DataLossError) as error:
        list(one.read())
    assert one.explain(error.value).startswith(f"{path}, record 2: ")
    assert one.explain(ValueError("other")) == ""


def test_damage_is_left_out_and_counted(tmp_path):
    path = damaged(tmp_path)
    settings = {"skip_bad_records": True, "global_batch_size": 1, "is_training": False}
    one = reader(f"{tmp_path}/*", **settings)
    assert take(one.read(), -1)[0].tolist() == [0, 1, 10, 11, 12]
    assert list(one.bad_records.reasons) == [f"{path}, from record 2 on"]


def test_a_function_without_seed_gets_none():
    call = input_reader._with_seed(lambda a, b: a + b)
    assert call((1, 2), seed=None) == 3
    assert input_reader._with_seed(None) is None
