import pytest

from hortus.registry import RegistryError
from hortus.vision.serving import formats


def test_formats_are_found_by_name_and_by_alias():
    assert {"saved_model", "onnx", "litert", "openvino"} <= set(formats.FORMATS)
    assert formats.get_format("onnx").ending == ".onnx"
    assert formats.get_format("tflite") is formats.get_format("litert")
    assert formats.get_format("tflite").name == "litert"


def test_an_unknown_format_names_near_ones():
    with pytest.raises(RegistryError, match="unknown export format 'onx'; did you mean 'onnx'"):
        formats.get_format("onx")


def test_a_package_that_running_needs_is_asked_for_before_the_file_is_opened():
    class Dream(formats.Format):
        name, runs_with = "dream", ("no_such_package",)

        def write(self, service, model, path):
            raise AssertionError("not written here")

        def load(self, path):
            raise AssertionError("not opened without its package")

    with pytest.raises(formats.ExportError, match="cannot be run without no_such_package"):
        Dream().open_runtime("a.dream")
