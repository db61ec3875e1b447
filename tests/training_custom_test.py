"""Code that was written for TensorFlow 2 runs on the TensorFlow engine."""

import pathlib

import pytest

from hortus.testing import run_under_engine


@pytest.mark.slow
def test_tasks_metrics_and_trainers_in_the_old_style():
    cases = pathlib.Path(__file__).with_name("training_custom_cases.py")
    print(run_under_engine("tensorflow", cases, timeout=600))
