"""What does not factor into learner, geometry and solver alone."""
