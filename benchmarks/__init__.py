"""Speed and memory of the hot loops beside their peers and beside the limits of the machine.

`python -m benchmarks` prints Markdown tables. Everything runs on one thread; competitors take turns, so that
a busy machine slows all of them alike. Ratios are to be trusted, seconds belong to the machine.
"""
