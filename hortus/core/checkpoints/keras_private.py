"""What this package knows of Keras and TensorFlow beyond their documented interface.

Everything of the kind stands here, and values_test.py checks that it still holds.
"""

from typing import Any, Optional


def replica_copies(variable: Any) -> Optional[tuple[Any, ...]]:
    """The copy of each local replica, for a variable whose copies differ and are summed on read.

    Under a TensorFlow strategy the variables of Keras metrics are of this kind: each replica adds
    to its own copy. Assigning to the whole divides by the number of replicas, which is wrong for
    integers and inexact for floats, so that the copies have to be assigned one by one.
    """
    if variable.synchronization != "on_read" or variable.aggregation != "sum":
        return None
    copies = getattr(variable.value, "values", None)
    return copies if isinstance(copies, tuple) and len(copies) > 0 else None
