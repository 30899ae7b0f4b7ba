"""What every other folder may use: files that are complete or not there, and locks that end with their process."""
