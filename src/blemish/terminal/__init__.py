"""What all commands share: options, progress, errors."""
