"""The commands of ``blemish arena``."""
