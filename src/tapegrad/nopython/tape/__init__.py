"""The tape of a recording: columns, the memory that they take, writing rows, sweeps."""
