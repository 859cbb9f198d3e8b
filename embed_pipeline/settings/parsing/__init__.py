"""How variables are declared, read and checked; knows nothing of any particular one."""
