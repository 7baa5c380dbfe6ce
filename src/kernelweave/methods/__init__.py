"""What does not factor into learner, geometry and solver: methods with a mathematics of their own."""
