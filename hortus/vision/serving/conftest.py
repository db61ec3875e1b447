"""Runs of all tasks, and images to try them on."""

import numpy as np
import pytest
from PIL import Image

from hortus.testing import runs
from hortus.vision.data import shapes


@pytest.fixture(scope="session")
def scenes(tmp_path_factory):
    """Drawn scenes of 80 by 80 pixels: images, masks and COCO files."""
    folder = tmp_path_factory.mktemp("scenes")
    shapes.write_scenes(folder, num_train=2, num_val=6, size=80)
    return folder


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """Folders of 48 by 48 pictures, one per class."""
    folder = tmp_path_factory.mktemp("pictures")
    shapes.write_folders(folder, num_train=1, num_val=2, size=48)
    return folder


@pytest.fixture(scope="session")
def classifier(tmp_path_factory, pictures):
    """Folder of a run."""
    folder = tmp_path_factory.mktemp("classifier")
    runs.make_classifier(folder, pictures)
    return folder


@pytest.fixture(scope="session")
def detector(tmp_path_factory, scenes):
    """Folder of a run."""
    folder = tmp_path_factory.mktemp("detector")
    runs.make_detector(folder, scenes)
    return folder


@pytest.fixture(scope="session")
def mask_detector(tmp_path_factory, scenes):
    """Folder of a run."""
    folder = tmp_path_factory.mktemp("mask_detector")
    runs.make_mask_detector(folder, scenes)
    return folder


@pytest.fixture(scope="session")
def segmenter(tmp_path_factory, scenes):
    """Folder of a run."""
    folder = tmp_path_factory.mktemp("segmenter")
    runs.make_segmenter(folder, scenes)
    return folder


@pytest.fixture
def photo():
    """A drawn scene that is not square, as an image of Pillow."""
    scene = shapes.draw_scene(np.random.default_rng(3), size=96)
    return Image.fromarray(scene.image[:64])
