"""Codes to joint histograms of Hamming distance and affinity."""
