"""Series against the functions of numpy, within a few units of the last place of a double."""

from __future__ import annotations

import numpy as np
import torch

from blemish.ops.series import power_of_fifth, sine_and_cosine


def test_sines_and_cosines() -> None:
    angles = torch.linspace(-2, 2, 10001, dtype=torch.float64)
    sine, cosine = sine_and_cosine(angles)
    np.testing.assert_allclose(sine.numpy(), np.sin(angles.numpy()), rtol=0, atol=1e-15)
    np.testing.assert_allclose(cosine.numpy(), np.cos(angles.numpy()), rtol=0, atol=1e-15)


def test_the_power() -> None:
    """Up to 1 and five times what a loop adds at most: 1 / √2 over 0.005 · (250 − 2π), the least slope."""
    most = 1 + 5 / (2**0.5 * 0.005 * (250 - 2 * np.pi))
    assert most < 3.91
    values = torch.linspace(1, most, 10001, dtype=torch.float64)
    np.testing.assert_allclose(power_of_fifth(values).numpy(), (values.numpy() / 5) ** 1.4, rtol=4e-15)
