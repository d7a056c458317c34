"""What theory promises: bounds and promises, which learners use; surveys and certificates."""
