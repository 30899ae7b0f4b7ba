"""Scikit-learn classifiers: their scores, their files, their classes."""

from __future__ import annotations

import pickle
import types
from pathlib import Path

import numpy as np
import pytest
import torch

from blemish.core.errors import InputError
from blemish.models.open import open_model
from blemish.models.sklearn_estimator import flat_preprocessing, from_estimator


class Brightness:
    """An estimator that can only predict: it tells the test pictures by their brightness."""

    classes_ = np.arange(3)

    def fit(self) -> None: ...

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return np.digitize(rows.mean(1) * 255, [80, 160])


class TestEstimators:
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        images = rng.integers(0, 256, (60, 8, 8, 3), dtype=np.uint8)
        labels = np.arange(60) % 3
        images[:, :, :, :] = (images * 0.3 + labels[:, None, None, None] * 80).astype(np.uint8)
        return images, labels

    @pytest.mark.parametrize("kind", ["proba", "decision", "predict", "binary", "text"])
    def test_scores(self, kind: str) -> None:
        linear = pytest.importorskip("sklearn.linear_model")
        images, labels = self.data()
        rows = images.reshape(60, -1) / 255
        tensor = torch.from_numpy(images).permute(0, 3, 1, 2)
        if kind == "proba":
            fitted = linear.LogisticRegression(max_iter=500).fit(rows, labels)
            torch.testing.assert_close(
                from_estimator(fitted)(tensor), torch.from_numpy(fitted.predict_proba(rows)).float(), atol=1e-5, rtol=0
            )
        elif kind == "decision":
            fitted = linear.RidgeClassifier().fit(rows, labels)
            scores = torch.from_numpy(fitted.decision_function(rows)).float().softmax(1)
            torch.testing.assert_close(from_estimator(fitted)(tensor), scores, atol=1e-4, rtol=0)
        elif kind == "predict":
            assert from_estimator(Brightness())(tensor).tolist() == np.eye(3)[labels].tolist()
        elif kind == "binary":
            fitted = linear.RidgeClassifier().fit(rows, labels > 0)
            second = torch.from_numpy(fitted.decision_function(rows)).float().sigmoid()
            torch.testing.assert_close(from_estimator(fitted)(tensor)[:, 1], second, atol=1e-4, rtol=0)
        else:
            # As text, "10" comes before "2": the columns have to be put in the order of the numbers.
            eleven = np.arange(60) % 11
            fitted = linear.LogisticRegression(max_iter=500).fit(rows, eleven.astype(str))
            assert fitted.classes_.tolist()[:3] == ["0", "1", "10"]
            found = from_estimator(fitted)(tensor).argmax(1).numpy()
            assert (found == fitted.predict(rows).astype(int)).all()

    def test_files_and_the_shape_of_the_pictures(self, tmp_path: Path) -> None:
        joblib = pytest.importorskip("joblib")
        linear = pytest.importorskip("sklearn.linear_model")
        images, labels = self.data()
        fitted = linear.LogisticRegression(max_iter=500).fit(images.reshape(60, -1) / 255, labels)
        joblib.dump(fitted, tmp_path / "m.joblib")
        (tmp_path / "m.pkl").write_bytes(pickle.dumps(fitted))
        tensor = torch.from_numpy(images).permute(0, 3, 1, 2)
        for name in ("m.joblib", "m.pkl"):
            model = open_model(tmp_path / name, device="cpu", allow_code=True)
            assert torch.equal(model(tensor), from_estimator(fitted)(tensor))
            assert (model.preprocessing.size, model.preprocessing.layout) == ((8, 8), "flat")
        assert flat_preprocessing(64).channels == "gray"
        assert flat_preprocessing(7).size is None

    def test_classes_that_are_no_labels(self) -> None:
        linear = pytest.importorskip("sklearn.linear_model")
        images, labels = self.data()
        rows = images.reshape(60, -1) / 255
        for classes in (labels + 1, np.array(["cat", "dog", "fox"])[labels], labels * 0.5):
            kind = linear.LogisticRegression if classes.dtype.kind != "f" else None
            fitted = (
                kind(max_iter=50).fit(rows, classes)
                if kind
                else types.SimpleNamespace(classes_=np.array([0.0, 0.5, 1.0]), predict=len, fit=len)
            )
            with pytest.raises(InputError, match=r"expected the labels 0 … 2"):
                from_estimator(fitted)
        with pytest.raises(InputError, match="expected a fitted classifier"):
            from_estimator(linear.LogisticRegression())
        with pytest.raises(InputError, match="expected a scikit-learn classifier"):
            from_estimator([1])
