"""One update of the weights, on however many devices."""
