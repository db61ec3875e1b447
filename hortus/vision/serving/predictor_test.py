import numpy as np
import pytest
from PIL import Image

from hortus.vision.serving.images import UnreadableImageError
from hortus.vision.serving.predictor import Predictor
from hortus.vision.serving.run import load_run


def test_classes_are_those_of_an_evaluation(classifier, pictures):
    run = load_run(classifier)
    batches = run.task.build_inputs(run.params.task.validation_data)
    expected = np.concatenate([run.model(images, training=False) for images, _ in batches])
    predictions = Predictor.from_run(classifier).predict(pictures / "val", batch_size=3)
    # The same bytes take the same way; batches of other sizes round otherwise.
    found = [prediction.logits for prediction in predictions]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    best = predictions[0]
    assert best.classes[0] == np.argmax(expected[0])
    assert best.names[0] == ("circle", "square", "triangle", "star")[best.classes[0]]
    assert best.scores == tuple(sorted(best.scores, reverse=True))
    assert sum(best.scores) == pytest.approx(1.0, abs=1e-6)


def test_pixels_are_as_good_as_files(classifier, pictures):
    predictor = Predictor.from_run(classifier)
    path = next((pictures / "val").rglob("*.png"))
    (of_file,) = predictor.predict(path)
    (of_pixels,) = predictor.predict(np.asarray(Image.open(path)))
    # The crop is cut before or after decoding, which is the same for a PNG.
    np.testing.assert_allclose(of_pixels.logits, of_file.logits, atol=1e-5)


def test_a_file_that_is_no_image_is_an_error_or_a_result(classifier, pictures, tmp_path):
    (tmp_path / "broken.png").write_bytes(b"")
    good = next((pictures / "val").rglob("*.png"))
    predictor = Predictor.from_run(classifier)
    with pytest.raises(UnreadableImageError, match=r"broken.png: the file is empty"):
        predictor.predict([good, tmp_path / "broken.png"])
