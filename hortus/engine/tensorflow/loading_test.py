import os
import subprocess
import sys

import pytest

from hortus.engine.tensorflow import loading


@pytest.mark.parametrize(("level", "shown"), [("2", False), ("0", True)])
def test_chatter_is_dropped_unless_asked_for(level, shown, monkeypatch, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", level)
    with loading._without_chatter():
        os.write(2, b"WARNING: All log messages before absl::InitializeLog() is called are\n")
        os.write(2, b"I0000 00:00:1 1 port.cc:153] oneDNN custom operations are on.\n")
        os.write(2, b"E0000 00:00:1 1 driver.cc:1] no such device\n")
    told = capfd.readouterr().err
    assert "no such device" in told
    assert ("oneDNN" in told) is shown and ("InitializeLog" in told) is shown


def test_what_was_written_is_not_lost_when_the_import_fails(monkeypatch, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")

    def fail():
        with loading._without_chatter():
            os.write(2, b"cannot open shared object\n")
            raise ImportError

    with pytest.raises(ImportError):
        fail()
    assert "cannot open shared object" in capfd.readouterr().err


def test_loading_says_nothing():
    source = "from hortus.engine.tensorflow import loading; loading.load()"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
