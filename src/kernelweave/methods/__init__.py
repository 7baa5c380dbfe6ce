"""What does not factor into learner × geometry × solver: methods with a mathematics of their own."""

from kernelweave.methods.target_alignment import alignf_weights, alignment, centered_alignment

__all__ = ["alignf_weights", "alignment", "centered_alignment"]
