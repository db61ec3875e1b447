"""What came of runs: one page for a run, tables for several."""
