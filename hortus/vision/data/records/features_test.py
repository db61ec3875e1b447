import types

import pytest
import tensorflow as tf

from hortus.vision.data.records import features
from hortus.vision.dataloaders.errors import DataError


def test_features_come_back_from_an_example():
    stored = features.serialize(
        {
            "names": features.bytes_feature(b"a", b"b"),
            "sides": features.int_feature(3, 4.0),
            "areas": features.float_feature([0.5]),
            "format": features.format_feature(b"\x89PNG..."),
            "unknown": features.format_feature(b"RIFF"),
        }
    )
    found = tf.train.Example.FromString(stored).features.feature
    assert list(found["names"].bytes_list.value) == [b"a", b"b"]
    assert list(found["sides"].int64_list.value) == [3, 4]
    assert list(found["areas"].float_list.value) == [0.5]
    assert list(found["format"].bytes_list.value) == [b"png"]
    assert list(found["unknown"].bytes_list.value) == [b""]


class Source(list):
    """Examples as `RawImages` yields them."""

    info = types.SimpleNamespace(num_examples=2)


def test_what_cannot_be_read_is_left_out_only_if_asked(caplog):
    good, bad = (
        types.SimpleNamespace(where=f"{number}.png", problem=problem)
        for number, problem in enumerate(("", "it is empty"))
    )
    assert list(features.readable(Source([good, bad]), skips_bad=True)) == [good]
    assert "left out 1.png: it is empty" in caplog.text
    with pytest.raises(DataError, match=r"1\.png: it is empty.*skip_bad_records=true"):
        list(features.readable(Source([good, bad]), skips_bad=False))
