"""``blemish ccc``."""
