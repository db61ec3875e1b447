"""Summary managers by name, one of which a config can choose."""

from collections.abc import Callable
from typing import Any, Optional, TypeVar

from hortus import registry

_Builder = TypeVar("_Builder", bound=Callable[[Optional[str], Any], Any])

_SUMMARIES = registry.Registry("summary")


def register_summary(name: str) -> Callable[[_Builder], _Builder]:
    """Decorates the class or function that makes a summary manager, and makes it the one of `name`.

        @summary_factory.register_summary("csv")
        def build_csv(folder, params):
            '''One line per summary in a CSV file.'''
            return CsvSummaries(folder)

    `trainer.summary=csv` has it write what training and evaluations log, instead of the usual one.

    The builder receives:
        folder: where to write: one for training, another one for evaluations; None on hosts that
            write nothing.
        params: the experiment's config.

    It returns a `hortus.core.summary_manager.SummaryManagerInterface`; a subclass of
    `SummaryManager` that replaces `write_summary` is the shortest way to one.

    Args:
        name: what configs call it.
    """
    return registry.register(_SUMMARIES, name)


@register_summary("scalars")
def _scalars(folder: Optional[str], params: Any) -> Any:
    """Numbers, for TensorBoard."""
    from hortus.core.summary_manager import SummaryManager

    del params
    return SummaryManager(folder)


def build_summary(name: str, folder: Optional[str], params: Any) -> Any:
    """Builds the summary manager `name`; see `register_summary` for the arguments.

    Raises:
        RegistryError: there is none of this name.
    """
    return registry.lookup(_SUMMARIES, name)(folder, params)


def registered_summaries() -> dict[str, str]:
    """What each registered summary manager writes, by name."""
    return {name: registry.summary(build) for name, build in _SUMMARIES.items()}
