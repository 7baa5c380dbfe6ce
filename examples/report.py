"""A page about a model: what it learnt, how sure it is, and what it has to beat."""

import tempfile
from pathlib import Path

from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import KernelBank, MKLClassifier, write_report
from kernelweave.explain import leave_view_out
from kernelweave.geometry import BoxSimplex

wine = load_wine(as_frame=True)
X, y = wine.data, wine.target_names[wine.target]
views = {"acids": [0, 1, 2, 3, 4], "phenols": [5, 6, 7, 8], "colour": [9, 10, 11], "proline": [12]}
model = make_pipeline(
    StandardScaler(), MKLClassifier(KernelBank.per_view(views=views), geometry=BoxSimplex(theta=0.5))
)
model.fit(X, y)

for view, cost in leave_view_out(model, X, y).costs().items():
    low, high = cost.interval
    print(f"without {view:<8} the accuracy drops by {cost.difference:+.3f} [{low:+.3f}, {high:+.3f}]")

page = write_report(
    model, X, y, Path(tempfile.mkdtemp()) / "wine.html", title="Three cultivars of wine", n_resamples=20
)
print(f"open {page.name} in a browser: {page.stat().st_size // 1000} kB, no network needed")
