"""Is a measurement set up as it should be? Checks of a model with its images, or of a folder of results."""
