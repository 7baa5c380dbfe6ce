"""Three groups of columns, one classifier: which group counts, and how good is the answer?

The breast cancer table holds ten measurements of cell nuclei, each as mean, standard error and worst value.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import KernelBank, MKLClassifier
from kernelweave.kernels import Gaussian
from kernelweave.learners import Hinge

VIEWS = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}


def main():
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)

    # A bank is written down without data: here one fine and one coarse Gaussian on each view.
    bank = KernelBank.per_view([Gaussian(scale=1.0), Gaussian(scale=4.0)], views=VIEWS)
    model = make_pipeline(StandardScaler(), MKLClassifier(bank, learner=Hinge(C=10.0)))
    model.fit(X_train, y_train)

    mkl = model[-1]
    for name, weight in zip(mkl.kernel_names_, mkl.kernel_weights_, strict=True):
        print(f"{name:<24} {weight:6.3f}  {'#' * round(40 * weight)}")
    print(f"test accuracy {model.score(X_test, y_test):.3f}")
    bounds = mkl.certificate_
    print(f"optimum between {bounds.lower:.4f} and {bounds.upper:.4f}: relative gap {mkl.duality_gap_:.1e}")


if __name__ == "__main__":
    main()
