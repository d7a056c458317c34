"""What all other packages stand on: errors, files, checked arrays, protocols, sums, plain data."""
