"""SVM+ where privileged features are at hand: a teacher, any teacher, or none."""

from __future__ import annotations

from kernelweave.experiments.experiment import Experiment
from kernelweave.experiments.privileged import METHODS, PrivilegedStudy, Task
from kernelweave.experiments.views import Scores

TASKS = {
    "MNIST+ 40, poetic": Task("mnist_plus", "X", "X_poetic", 40, units=True),
    "MNIST+ 80, poetic": Task("mnist_plus", "X", "X_poetic", 80, units=True),
    "MNIST+ 80, yin yang": Task("mnist_plus", "X", "X_yinyang", 80, units=True),
    "TCGA mRNA, protein": Task("tcga_breast_mixomics", "mrna", "protein", 75),
    "TCGA miRNA, protein": Task("tcga_breast_mixomics", "mirna", "protein", 75),
    "mfeat Zernike, pixels": Task("mfeat", "zer", "pix", 100, binary="parity"),
    "mfeat Fourier, pixels": Task("mfeat", "fou", "pix", 100, binary="parity"),
}
STUDY = PrivilegedStudy(
    name="svm-plus",
    tasks=TASKS,
    C=(0.1, 1.0, 10.0, 100.0),
    lam=(0.01, 0.1, 1.0, 10.0),
    splits=12,
    quick_tasks=("MNIST+ 80, poetic", "TCGA mRNA, protein"),
)

EXPERIMENTS = (
    Experiment(
        id="svm-plus",
        title="SVM+ with privileged features, beside the same model with their rows shuffled",
        source="[Xu14], Section 2.4; the data of [Vapnik09] where they are to be had",
        study=STUDY,
        views=(Scores("accuracy", {name: name for name in TASKS}, METHODS, {}, baseline="SVM"),),
        differences=(
            "The thesis reviews SVM+ and prints no table of it: there are no printed figures beside ours.",
            "SVM is SVM+ without privileged features, max-hinge is SVM+ with a constant one: what a teacher "
            "who knows nothing changes. Shuffled: the training samples' privileged rows are permuted.",
            "All methods search the same C; those with privileged features also λ. Kernels: Gaussian on the "
            "decision view, linear on the privileged one (MKL: linear and Gaussian, weights learnt).",
            "mfeat asks for even against odd digits, trained on 100; TCGA for three subtypes, trained on 75 "
            "of 150 and tested on the 70 samples without proteins; MNIST+ is tested on its 1,866 digits.",
        ),
    ),
)
