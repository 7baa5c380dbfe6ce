"""Maximum-margin clustering: the clusters, their balance, their certificate."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_moons
from tests.reference import weak
from tests.weak_labels.data import BANK, FIXED, blobs

from kernelweave import KernelBank, MKLClusterer
from kernelweave.kernels import Gaussian


def test_two_moons_are_two_clusters():
    X, truth = make_moons(120, noise=0.05, random_state=0)
    bank = KernelBank([Gaussian(scale=s) for s in (16.0, 64.0)])
    model = MKLClusterer(bank, balance=0.5).fit(X)
    share = np.mean(model.labels_ == truth)
    assert max(share, 1 - share) > 0.95
    assert model.labels_[0] == 0
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.duality_gap_ <= 1e-3
    assert pickle.loads(pickle.dumps(model)).labels_.tolist() == model.labels_.tolist()


@pytest.mark.parametrize("theta", [None, 1.2])
@pytest.mark.parametrize("C", [0.1, 2.0])
def test_the_certificate_of_clusters_encloses_the_conic_optimum(theta, C):
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = MKLClusterer(FIXED, C=C, theta=theta, max_rounds=3, tol=1e-6).fit(X)
    K = np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(axis=2))
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    K /= np.trace(K) / 20
    T = len(model.candidates_)
    assert T > 1
    explicit = [weak.input_output_kernel(K, row[0].astype(float)) for row in model.candidates_]
    cap = 1.0 if theta is None else theta / T
    optimum = weak.inner_optimum(explicit, [[t] for t in range(T)], np.full(20, C), cap)
    assert model.certificate_.lower - 1e-6 <= optimum <= model.certificate_.upper + 1e-6
    assert model.duality_gap_ <= 1e-6


def test_clusters_keep_the_balance():
    X, _, _ = blobs(60)
    labels = MKLClusterer(BANK, balance=0.25).fit(X).labels_
    assert (labels == 1).mean() == 0.25
    with pytest.raises(ValueError, match="balance must be"):
        MKLClusterer(BANK, balance=1.0).fit(X)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("balance", [0.25, (0.2, 0.3), 0.75])
def test_the_balance_is_the_share_of_cluster_1_whatever_comes_first(order, balance):
    X = np.r_[
        np.random.default_rng(0).normal(size=(45, 2)), 6 + np.random.default_rng(1).normal(size=(15, 2))
    ]
    model = MKLClusterer(BANK, balance=balance).fit(X[::order])
    share = np.mean(model.labels_ == 1)
    assert np.min(balance) <= share <= np.max(balance)
    np.testing.assert_array_equal(model.predict(X[::order]), model.labels_)


def test_the_first_sample_is_in_cluster_0_where_the_balance_allows_it():
    X, _, truth = blobs(40)
    for first in (0, 1):
        order = np.argsort(truth != first, kind="stable")
        labels = MKLClusterer(BANK).fit(X[order]).labels_
        np.testing.assert_array_equal(labels, (truth[order] != first).astype(int))


@pytest.mark.parametrize("balance", [0.04, (0.01, 0.04), 0.97, (0.96, 0.99)])
def test_every_cluster_has_a_sample(balance):
    X, _, _ = blobs(10)
    labels = MKLClusterer(BANK, balance=balance).fit(X).labels_
    assert (labels == 1).sum() == (1 if np.max(balance) < 0.5 else 9)
