"""The commands, by what they are for. Each module lists its own in `COMMANDS`."""
