"""The settings by subject. A group declares its variables and completes what depends on others."""
