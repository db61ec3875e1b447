"""Settings for every test, made before any test module is imported."""

import os

# TensorFlow reads this once, when it loads.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# A user's own settings must not reach the tests of the command line.
for _name in ("HORTUS_IMPORT", "HORTUS_DEBUG"):
    os.environ.pop(_name, None)
