"""What models can be asked for besides the class of an image, and predictions that were made elsewhere."""
