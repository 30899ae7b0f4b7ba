"""What every other folder may use: reading, writing and locking files, and text that is safe to print."""
