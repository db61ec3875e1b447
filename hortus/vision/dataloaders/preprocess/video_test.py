import numpy as np
import tensorflow as tf

from hortus.vision.dataloaders.preprocess import video


def test_a_random_clip_is_in_order_and_at_every_place():
    begins = set()
    for i in range(40):
        places = video.sample_sequence(tf.range(10), 3, random=True, stride=2, seed=[0, i]).numpy()
        assert np.all(np.diff(places) == 2)
        begins.add(int(places[0]))
    assert begins == set(range(5))


def test_a_short_sequence_is_taken_again():
    places = video.sample_sequence(tf.range(3), 5, random=False, stride=1)
    assert places.numpy().tolist() == [0, 1, 2, 0, 1]


def test_one_random_frame_of_each_part():
    seen = set()
    for i in range(40):
        places = video.sample_segment_sequence(tf.range(12), 3, is_training=True, seed=[0, i])
        assert [place // 4 for place in places.numpy()] == [0, 1, 2]
        seen.update(places.numpy().tolist())
    assert seen == set(range(12))


def test_frames_are_cropped_flipped_and_turned_together():
    frames = tf.reshape(tf.range(2 * 8 * 8 * 3), [2, 8, 8, 3])
    difference = frames[1] - frames[0]
    for result in (
        video.crop_image(frames, 4, 5, random=True, seed=[0, 1]),
        video.random_flip_left_right(frames, seed=[0, 1]),
        video.random_rotation(frames, seed=[0, 1]),
        video.random_crop_resize(frames, 4, 5, seed=[0, 1]),
    ):
        assert len(set((result[1] - result[0]).numpy().ravel())) == 1
        assert result[1, 0, 0, 0] - result[0, 0, 0, 0] == difference[0, 0, 0]
    assert video.crop_image(frames, 4, 5, random=True).shape == [2, 4, 5, 3]
    assert video.random_crop_resize(frames, 4, 5).shape == [2, 4, 5, 3]


def test_all_turns_occur():
    frames = tf.reshape(tf.range(4), [1, 2, 2, 1])
    corners = {int(video.random_rotation(frames, seed=[0, i])[0, 0, 0, 0]) for i in range(30)}
    assert corners == {0, 1, 2, 3}


def test_crops_run_along_the_longer_side():
    tall = tf.reshape(tf.range(6 * 2), [1, 6, 2, 1])
    crops = video.crop_image(tall, 2, 2, num_crops=3)
    assert crops[:, 0, 0, 0].numpy().tolist() == [0, 4, 8]


def test_frames_are_decoded():
    frames = np.random.default_rng(0).integers(0, 255, [3, 4, 5, 3]).astype(np.uint8)
    encoded = tf.stack([tf.io.encode_png(frame) for frame in frames])
    np.testing.assert_array_equal(video.decode_frames(encoded, image_format="png"), frames)
    jpegs = tf.stack([tf.io.encode_jpeg(frame) for frame in frames])
    assert video.decode_frames(jpegs).shape == frames.shape
