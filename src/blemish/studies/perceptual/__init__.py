"""The perceptual axis: how far corrupted images are from clean ones, and errors against that distance."""
