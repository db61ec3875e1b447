import os

from hortus.core import event_file


def steps(folder):
    found = []
    for path in event_file.paths(str(folder)):
        with open(path, "rb") as file:
            found += [step for step, _ in event_file._records(file.read())]
    return found


def test_tensorboard_reads_what_is_written(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    file = event_file.EventFile(str(tmp_path))
    file.write(event_file.scalar("a", 0.5), step=3)
    file.flush()
    (event,) = EventAccumulator(str(tmp_path)).Reload().Scalars("a")
    assert (event.step, event.value) == (3, 0.5)
    file.close()


def test_a_closed_file_goes_on_in_a_new_one(tmp_path):
    file = event_file.EventFile(str(tmp_path))
    for step in (1, 2):
        file.write(event_file.scalar("a", 0.5), step)
        file.close()
    assert len(list(event_file.paths(str(tmp_path)))) == 2
    assert steps(tmp_path) == [0, 1, 0, 2]  # each begins with its version


def test_rewind_keeps_records_byte_by_byte_and_leaves_nothing_behind(tmp_path):
    file = event_file.EventFile(str(tmp_path))
    file.write(event_file.scalar("a", 0.5), 1)
    file.flush()
    (path,) = event_file.paths(str(tmp_path))
    with open(path, "rb") as opened:
        before = opened.read()
    file.write(event_file.scalar("a", 0.25), 2)
    file.close()
    (tmp_path / "notes.txt").write_text("not an event file")
    event_file.rewind(str(tmp_path), 1)
    with open(path, "rb") as opened:
        assert opened.read() == before
    assert sorted(os.listdir(tmp_path)) == [os.path.basename(path), "notes.txt"]


def test_rewind_of_a_folder_that_is_not_there(tmp_path):
    event_file.rewind(str(tmp_path / "none"), 0)
