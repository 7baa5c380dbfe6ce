"""A published split on which the search for labelings once ended at the mirror image of the classes."""

import numpy as np
from tests.datasets.data import load_or_skip

from kernelweave import KernelBank, SemiSupervisedMKLClassifier
from kernelweave.kernels import Gaussian


def test_the_third_split_of_g241c_does_not_end_the_wrong_way_round():
    data = load_or_skip("ssl_g241c")
    truth = (data.y > 0).astype(int)
    y = np.full(truth.size, -1)
    labelled = data.extra["labeled_10"][2]
    y[labelled] = truth[labelled]
    model = SemiSupervisedMKLClassifier(KernelBank([Gaussian()]), max_rounds=3).fit(data.X, y)
    assert np.mean(model.transduction_ == truth) > 0.8
