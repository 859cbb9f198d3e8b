"""Taking over a graph that is there: its labels and keys, and the vectors it has."""
