"""The nineteen corruptions of ImageNet-C."""
