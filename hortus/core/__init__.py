"""The training core: experiments, tasks, and what turns them into runs."""
