"""Methods that are more than learner, geometry and solver."""
