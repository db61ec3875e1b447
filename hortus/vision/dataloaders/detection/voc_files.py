"""Pascal VOC: an XML file per image, lists of images, and masks of some of them."""

import logging
import os
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import numpy as np

from hortus.vision.dataloaders import paths
from hortus.vision.dataloaders.detection.coco_files import size_of_file
from hortus.vision.dataloaders.detection.detection_set import DetectionSet, concatenate
from hortus.vision.dataloaders.detection.instance_files import read_object_numbers
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.image_files import IMAGE_ENDINGS
from hortus.vision.ops.segmentations import encode_labels

ANNOTATIONS, IMAGES, LISTS = "Annotations", "JPEGImages", "ImageSets"
MASKS = "SegmentationObject"


def read_voc(
    input_path: str | Sequence[str],
    image_dir: str = "",
    include_masks: bool = False,
    allow_outside: bool = False,
) -> DetectionSet:
    """The images and objects of Pascal VOC folders.

    Categories are the names in all annotations of the folder, sorted, so that the lists of one
    folder have the same ones. Their ids count from 1, as do those of the images.

    Args:
      input_path: the folder with Annotations, for all of its images, or a list of images in it,
        such as `VOC2012/ImageSets/Main/train.txt`. Lines are names without ending, perhaps with a
        number after them, which is -1 for an image to leave out.
      image_dir: the folder of the images; empty for JPEGImages.
      include_masks: also read the masks in SegmentationObject, where the pixels of an image's k-th
        object are k. Of a folder only the images that have such a file are read then; in a list
        such as `ImageSets/Segmentation/train.txt` all should have one.
      allow_outside: whether names in lists and annotations may lead out of the folder.
    """
    folders = paths.match_paths(input_path)
    return concatenate([_read(path, image_dir, include_masks, allow_outside) for path in folders])


def _read(path: str, image_dir: str, include_masks: bool, allow_outside: bool) -> DetectionSet:
    root = path if os.path.isdir(path) else _root_of_list(path)
    folder = os.path.join(root, ANNOTATIONS)
    if not os.path.isdir(folder):
        raise DataError(
            f"{path}: expected a Pascal VOC folder with {ANNOTATIONS} and {IMAGES} in it, or a "
            f"list below its {LISTS}; there is no {folder}"
        )
    known = sorted(each[:-4] for each in os.listdir(folder) if each.endswith(".xml"))
    if not known:
        raise DataError(f"{folder}: there are no XML files in it")
    entries = {stem: _parse(os.path.join(folder, f"{stem}.xml")) for stem in known}
    names = tuple(sorted({one.name for entry in entries.values() for one in entry.objects}))

    images = image_dir or os.path.join(root, IMAGES)
    files = {os.path.splitext(each)[0]: each for each in sorted(_image_names(images))}
    stems = known if root == path else _listed(path)
    if include_masks and root == path:
        stems = _with_masks(root, stems)
    chosen = [entries.get(stem, _Entry("", 0, 0, [])) for stem in stems]
    image_names = [
        files.get(stem) or entry.filename or f"{stem}.jpg"
        for stem, entry in zip(stems, chosen, strict=True)
    ]
    paths.check_inside([*stems, *image_names], path, allow_outside)
    image_paths = tuple(os.path.join(images, name) for name in image_names)
    number = {stem: place for place, stem in enumerate(known, start=1)}
    objects = [one for entry in chosen for one in entry.objects]
    boxes = np.array([one.box for one in objects], np.float64).reshape(-1, 4)
    place = {name: number for number, name in enumerate(names)}
    sizes = np.array(
        [
            (entry.height, entry.width) if entry.height and entry.width else size_of_file(file)
            for entry, file in zip(chosen, image_paths, strict=True)
        ],
        np.int32,
    ).reshape(-1, 2)
    masks: np.ndarray | None = None
    problems: tuple[str, ...] = ()
    if include_masks:
        counts = [len(entry.objects) for entry in chosen]
        masks, problems = _masks(root, stems, counts, sizes)
    return DetectionSet(
        origin=path,
        paths=image_paths,
        image_ids=np.array(
            [number.get(stem, len(known) + 1 + i) for i, stem in enumerate(stems)], np.int64
        ),
        sizes=sizes,
        splits=np.concatenate([[0], np.cumsum([len(entry.objects) for entry in chosen])]).astype(
            np.int64
        ),
        boxes=boxes,
        categories=np.array([place[one.name] for one in objects], np.int64),
        # Where there are masks, the parser counts their pixels.
        areas=np.full(len(boxes), -1, np.float32)
        if include_masks
        else np.prod(boxes[:, 2:] - boxes[:, :2], axis=1).astype(np.float32),
        is_crowd=np.zeros(len(objects), bool),
        is_difficult=np.array([one.difficult for one in objects], bool),
        category_ids=tuple(range(1, len(names) + 1)),
        category_names=names,
        masks=masks,
        mask_problems=problems,
    )


def _with_masks(root: str, stems: list[str]) -> list[str]:
    folder = os.path.join(root, MASKS)
    if not os.path.isdir(folder):
        raise DataError(
            f"{root}: its objects have no masks, as there is no folder {MASKS}. For a model of "
            "boxes alone set task.model.include_mask=false"
        )
    there = {os.path.splitext(name)[0] for name in os.listdir(folder)}
    kept = [stem for stem in stems if stem in there]
    if len(kept) < len(stems):
        logging.getLogger(__name__).info(
            "%s: %d of %d images have masks; the others are left out", root, len(kept), len(stems)
        )
    return kept


def _masks(
    root: str, stems: Sequence[str], counts: Sequence[int], sizes: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes of all objects' masks, empty where there is none, and what is wrong with files."""
    files = [os.path.join(root, MASKS, f"{stem}.png") for stem in stems]
    codes: list[bytes] = []
    problems: list[str] = []
    for file, count, size in zip(files, counts, sizes.tolist(), strict=True):
        found = [b""] * count
        if os.path.isfile(file):
            try:
                found = encode_labels(read_object_numbers(file, size), range(1, count + 1))
            except DataError as error:
                problems.append(str(error))
        codes += found
    column = np.empty(len(codes), object)
    column[:] = codes
    return column, tuple(problems)


class _Object:
    def __init__(self, name: str, box: tuple[float, ...], difficult: bool):
        self.name, self.box, self.difficult = name, box, difficult


class _Entry:
    def __init__(self, filename: str, height: int, width: int, objects: list[_Object]):
        self.filename, self.height, self.width = filename, height, width
        self.objects = objects


def _parse(path: str) -> _Entry:
    try:
        tree = ET.parse(path).getroot()
        size = tree.find("size")
        height, width = (
            (0, 0)
            if size is None
            else (int(float(size.findtext(side) or 0)) for side in ("height", "width"))
        )
        objects = [_object(each) for each in tree.findall("object")]
    except (ET.ParseError, OSError) as error:
        raise DataError(f"{path}: cannot be read as XML: {error}") from None
    except (ValueError, TypeError, AttributeError):
        raise DataError(
            f"{path}: expected <size> with numbers and <object>s with <name> and <bndbox> of xmin, "
            "ymin, xmax, ymax"
        ) from None
    return _Entry(tree.findtext("filename") or "", height, width, objects)


def _object(element: ET.Element) -> _Object:
    name, box = element.findtext("name"), element.find("bndbox")
    if not name or box is None:
        raise ValueError("an object needs a name and a box")
    edges = [float(box.findtext(edge) or "") for edge in ("ymin", "xmin", "ymax", "xmax")]
    # Pascal VOC counts pixels from 1, and the last one belongs to the box.
    corners = (edges[0] - 1.0, edges[1] - 1.0, edges[2], edges[3])
    return _Object(name.strip(), corners, (element.findtext("difficult") or "0").strip() == "1")


def _root_of_list(path: str) -> str:
    """The folder above ImageSets, or the list's own where it is not in such a folder."""
    parts = os.path.abspath(path).split(os.sep)
    if LISTS in parts:
        return os.sep.join(parts[: len(parts) - 1 - parts[::-1].index(LISTS)])
    return os.path.dirname(path)


def _listed(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip()]
    stems = [row[0] for row in rows if len(row) < 2 or row[1] != "-1"]
    if not stems:
        raise DataError(f"{path}: there are no images in this list")
    return stems


def _image_names(folder: str) -> list[str]:
    try:
        return [
            name
            for name in os.listdir(folder)
            if os.path.splitext(name)[1].lower() in IMAGE_ENDINGS
        ]
    except OSError as error:
        raise DataError(f"{folder}: cannot be read: {error.strerror}") from None
