"""The gallery: every corruption that was asked for, beside its description, at the severities that it has."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
from PIL import Image

from blemish.corruptions.catalog import catalog
from blemish.corruptions.transform import content_id, corrupt
from blemish.data.demo import demo_picture
from blemish.reports.gallery import gallery_page

PICTURE = demo_picture(32)


def test_all_that_was_asked_for_with_its_description() -> None:
    chosen = [catalog[name] for name in ("fog", "snow", "cbar:sparkles", "syn2nat:invert")]
    seen = []
    page = gallery_page(PICTURE, chosen, report=lambda done, total, name: seen.append((done, total, name)))
    assert "4 corruptions of 3 catalogues" in page
    for corruption in chosen:
        assert corruption.name in page
        assert corruption.description.replace("'", "&#39;") in page
    # Three severities and the clean picture each; the negative exists at severity 5 only.
    assert len(re.findall(r"<img ", page)) == 3 * 4 + 2
    assert seen == [(i, 4, corruption.name) for i, corruption in enumerate(chosen)]


def test_pictures_are_those_that_corrupt_makes() -> None:
    page = gallery_page(PICTURE, [catalog["fog"]], severities=[2.5], seed=3)
    shown = [base64.b64decode(text) for text in re.findall(r"data:image/png;base64,([^\"]+)", page)]
    clean, foggy = (np.asarray(Image.open(io.BytesIO(content))) for content in shown)
    ours = corrupt(PICTURE, "fog", severity=2.5, seed=3, ids=content_id(PICTURE))
    np.testing.assert_array_equal(clean, np.asarray(PICTURE))
    np.testing.assert_array_equal(foggy, np.asarray(ours))


def test_what_differs_from_the_reference_is_said() -> None:
    assert "LAION-C-like" in gallery_page(PICTURE, [catalog["laion:stickers"]], severities=[1])
