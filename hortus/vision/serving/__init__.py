"""What a trained model is for: predictions for image files, and exports to other runtimes.

    from hortus.vision import serving

    predictor = serving.Predictor.from_run("/runs/shapes")
    results = predictor.predict(["photo.jpg", "more_photos/"])

Names are resolved on first use, as the engine has to be settled before Keras is loaded.
"""

import typing

from hortus import engine, lazy

if typing.TYPE_CHECKING:
    from hortus.vision.serving.exporting import export_run as export_run
    from hortus.vision.serving.file_predictions import Written as Written
    from hortus.vision.serving.file_predictions import predict_files as predict_files
    from hortus.vision.serving.images import find_images as find_images
    from hortus.vision.serving.images import read_image as read_image
    from hortus.vision.serving.predictor import Predictor as Predictor
    from hortus.vision.serving.run import LoadedRun as LoadedRun
    from hortus.vision.serving.run import load_run as load_run

__getattr__, __dir__, __all__ = lazy.attach(__name__, before=engine.load)
