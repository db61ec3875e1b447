"""What a file of weights is, by its first bytes, and what to say where it cannot be read."""

import os
import zipfile

from hortus.core.checkpoints.torch_file import LEGACY_START

SAFETENSORS, TORCH = "safetensors", "torch"
KERAS, HDF5, TFLITE, ONNX, NUMPY, GRAPH, UNKNOWN_ZIP = (
    "keras",
    "hdf5",
    "tflite",
    "onnx",
    "numpy",
    "graph",
    "zip",
)
_HDF5_START = b"\x89HDF\r\n\x1a\n"
_EXPORTED = "An exported model is for prediction: start from the checkpoint that it was made of."
_BY_KERAS = "Save a checkpoint of its weights from Keras, and start from that."

_NAMES = {
    SAFETENSORS: "a file",
    TORCH: "a file of PyTorch",
    KERAS: "a model of Keras (.keras)",
    HDF5: "an HDF5 file, as Keras writes weights (.h5, .weights.h5)",
    TFLITE: "a TensorFlow Lite model (.tflite)",
    ONNX: "an ONNX model",
    NUMPY: "a file of NumPy arrays, which says nothing about the model that they belong to",
    GRAPH: "a TensorFlow SavedModel or frozen graph",
    UNKNOWN_ZIP: "a zip archive, but none that PyTorch or Keras has written",
}
_ADVICE = {
    KERAS: _BY_KERAS,
    HDF5: _BY_KERAS,
    TFLITE: _EXPORTED,
    ONNX: _EXPORTED,
    GRAPH: _EXPORTED,
    UNKNOWN_ZIP: "Unpack it first.",
}


def what_is(path: str) -> str:
    """What a file or a folder is, for a message that expected something else; "" if nothing."""
    if os.path.isdir(path):
        return _NAMES[GRAPH] if is_saved_model(path) else ""
    return _NAMES[file_kind(path)] if os.path.isfile(path) else ""


def is_saved_model(folder: str) -> bool:
    """Whether a folder holds an exported model of TensorFlow."""
    return os.path.isfile(os.path.join(folder, "saved_model.pb"))


def file_kind(path: str) -> str:
    """One of the kinds above; `SAFETENSORS` where nothing speaks against it."""
    with open(path, "rb") as file:
        start = file.read(64)
    if start.startswith(b"PK\x03\x04"):
        return _archive_kind(path)
    if start.startswith(LEGACY_START):
        return TORCH
    if start.startswith(_HDF5_START):
        return HDF5
    if start[4:8] == b"TFL3":
        return TFLITE
    if start.startswith(b"\x93NUMPY"):
        return NUMPY
    name = os.path.basename(path).lower()
    if name.endswith(".onnx"):
        return ONNX
    if name.endswith(".pb"):
        return GRAPH
    if name.endswith((".pth", ".pt")) and start[8:9] != b"{":
        return TORCH
    return SAFETENSORS


def refusal(path: str, kind: str) -> str:
    """What to tell a user who starts from a file that cannot be read as weights."""
    return f"{path} is {_NAMES[kind]}. {_ADVICE.get(kind, '')}".rstrip()


def _archive_kind(path: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        # Truncated: the list of members stands at the end. The reader says what is wrong.
        return KERAS if path.lower().endswith(".keras") else TORCH
    if any(name.rpartition("/")[2] == "data.pkl" for name in names):
        return TORCH
    if "config.json" in names or any(name.endswith("model.weights.h5") for name in names):
        return KERAS
    return NUMPY if names and all(name.endswith(".npy") for name in names) else UNKNOWN_ZIP
