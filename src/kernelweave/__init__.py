"""kernelweave: multiple kernel learning with certificates."""
