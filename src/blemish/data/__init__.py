"""Where images come from: pictures, class folders, array files, and an embedded demo picture."""
