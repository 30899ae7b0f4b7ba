"""``blemish separation`` and ``blemish mscr``."""
