"""A local page on which corruptions are looked at: pixels, models' answers, walks, and texts that make them again."""
