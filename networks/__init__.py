"""Images to feature vectors: convolutional networks, the reader of their weights, GIST, and extraction."""
