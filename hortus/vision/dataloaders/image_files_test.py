import pytest

from hortus.vision.dataloaders import image_files
from hortus.vision.dataloaders.errors import DataError


def test_a_folder_per_class(image_folder):
    (image_folder / "cat" / "notes.txt").write_text("no image")
    (image_folder / "cat" / ".hidden.jpg").write_text("no image")
    (image_folder / ".cache").mkdir()
    (image_folder / "bee" / "more").mkdir()
    (image_folder / "bee" / "more" / "deep.PNG").write_bytes(b"x")
    images = image_files.read_folders(str(image_folder))
    assert images.class_names == ("ant", "bee", "cat")
    assert images.info.examples_per_class == (5, 5, 6)
    assert images.info.num_examples == len(images) == 16
    assert images.labels == (("ant",),) * 5 + (("bee",),) * 5 + (("cat",),) * 6


def test_several_folders_are_one_set(image_folder, tmp_path):
    (tmp_path / "more" / "dog").mkdir(parents=True)
    (tmp_path / "more" / "dog" / "1.jpg").write_bytes(b"x")
    images = image_files.read_folders([str(image_folder), str(tmp_path / "more")])
    assert images.class_names == ("ant", "bee", "cat", "dog")
    assert images.info.num_examples == 16


def test_empty_classes_stay(image_folder):
    (image_folder / "owl").mkdir()
    assert image_files.read_folders(str(image_folder)).info.examples_per_class == (5, 4, 6, 0)


def test_folders_without_images_are_told(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        image_files.read_folders(str(tmp_path / "missing"))
    with pytest.raises(DataError, match="found no sub-folders"):
        image_files.read_folders(str(tmp_path))
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.webp").write_bytes(b"x")
    with pytest.raises(DataError, match=r"hold no images .*, but 1 \.webp"):
        image_files.read_folders(str(tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="is a file, where a folder"):
        image_files.read_folders(str(tmp_path / "file"))


def test_images_of_an_unknown_kind_are_told(image_folder, caplog):
    (image_folder / "cat" / "1.webp").write_bytes(b"x")
    image_files.read_folders(str(image_folder))
    assert "1 images are passed over" in caplog.text


def write_csv(folder, text, name="labels.csv"):
    (folder / name).write_text(text, "utf-8")
    return str(folder / name)


def test_csv_with_names(image_folder):
    path = write_csv(image_folder, "file,class\ncat/0.png,tabby\nant/1.jpg, red ant \n")
    images = image_files.read_csv(path)
    assert images.class_names == ("red ant", "tabby")
    assert images.paths == (f"{image_folder}/cat/0.png", f"{image_folder}/ant/1.jpg")
    assert images.labels == (("tabby",), ("red ant",))


def test_csv_with_numbers(image_folder):
    images = image_files.read_csv(write_csv(image_folder, "cat/0.png,10\nant/1.jpg,2\n"))
    assert images.class_names == tuple(str(i) for i in range(11))
    table = images.as_source("image", "label")
    assert table.columns["label"].numpy().tolist() == [10, 2]


def test_csv_with_several_classes(image_folder):
    path = write_csv(image_folder, "cat/0.png,a|c\nant/1.jpg,\nant/0.png,b\n")
    images = image_files.read_csv(path, is_multilabel=True)
    assert images.labels == (("a", "c"), (), ("b",))
    table = images.as_source("image", "label", is_multilabel=True)
    assert table.columns["label"].to_list() == [[0, 2], [], [1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cat/0.png,a\ncat/1.jpg\n", "line 2: expected `image path,class`"),
        ("cat/0.png,a\ncat/1.jpg,\n", "line 2: no class for cat/1.jpg"),
        ("file,class\n", "no images in it"),
    ],
)
def test_faults_of_csv_files_have_a_line(image_folder, text, message):
    with pytest.raises(DataError, match=message):
        image_files.read_csv(write_csv(image_folder, text))


def test_class_numbers_of_other_data(image_folder):
    images = image_files.read_folders(str(image_folder)).with_classes(["cat", "dog", "bee", "ant"])
    labels = images.as_source("image", "label").columns["label"].numpy()
    assert labels.tolist() == [3] * 5 + [2] * 4 + [0] * 6
    with pytest.raises(DataError, match="classes ant are not among those of the training data"):
        images.with_classes(["cat", "dog", "bee"])
