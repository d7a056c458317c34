"""One slot: losses, constraints, domains, what is revealed, and the step that answers it."""
