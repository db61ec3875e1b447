import pytest

from hortus.engine.input_context import InputContext


def test_one_host_reads_whole_batches():
    context = InputContext()
    assert (context.num_input_pipelines, context.input_pipeline_id) == (1, 0)
    assert context.num_replicas_in_sync == 1
    assert context.get_per_replica_batch_size(6) == 6


def test_several_hosts_share_a_batch():
    context = InputContext(3, 1)
    assert context.get_per_replica_batch_size(6) == 2
    with pytest.raises(ValueError, match="7 cannot be shared evenly by 3 hosts"):
        context.get_per_replica_batch_size(7)
