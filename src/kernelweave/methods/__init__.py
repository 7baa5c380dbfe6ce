"""What does not factor into learner × geometry × solver."""

from kernelweave.methods.target_alignment import alignf_weights, alignment, centered_alignment

__all__ = ["alignf_weights", "alignment", "centered_alignment"]
"""Methods that are more than learner, geometry and solver."""
"""What does not factor into learner, geometry and solver: methods with a mathematics of their own."""
"""What does not factor into learner, geometry and solver alone."""
