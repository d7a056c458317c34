"""The page of the reproduction: curves beside the published ones, claims, rates."""
