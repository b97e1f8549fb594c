"""`tiebench metrics`: every metric, its bounds and its source."""

import argparse
import textwrap

from tiebench.command_line import Parser
from tiebench.commands import print_text
from tiebench.metric_table import METRICS, SYMBOLS

HELP = "list the metrics"
DESCRIPTION = "List every metric, its bounds and its source."


def add_arguments(parser: Parser) -> None:
    """It has none."""


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the list."""
    lines = []
    for metric in METRICS.values():
        value = SYMBOLS.get(metric.parameter or "")
        better = "higher" if metric.higher_is_better else "lower"
        also = f"; also {metric.name}_min and {metric.name}_max over the orders of tied items"
        text = f"{metric.description.format(value)} {metric.low:g} to {metric.high:g}, {better} is better"
        lines += [metric.name, *textwrap.wrap(text + (also if metric.has_range else "") + ".", 100)]
        lines += [f"Source: {metric.source}.", ""]
    return print_text(
        "\n".join(line if line in METRICS or not line else f"    {line}" for line in lines[:-1])
    )
