"""Speed and memory of the hot loops, compared with other implementations and with the limits of the machine.

`python -m benchmarks` prints Markdown tables. Everything runs on one thread; competitors take turns, so that
a busy machine slows all of them alike. Rely on ratios: seconds depend on the machine.
"""
