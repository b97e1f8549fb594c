"""What every adapter does first: threads, log, one clear line for errors, and no survival of its parent."""

import argparse
import ctypes
import json
import logging
import os
import sys
import time
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path

from workflow import forks

SECONDS_BETWEEN_LINES = 5.0
# Of glibc's malloc.h: below which size a block is of the heap, how much of the heap's end may be free.
MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
METHODS = Path(__file__).parents[2] / "methods"
log = logging.getLogger("tiebench")


def parser(rule):
    """Argument parser with what every rule passes."""
    arguments = argparse.ArgumentParser(f"python -m workflow.scripts.{rule}")
    arguments.add_argument("--log", required=True)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--settings", type=_read_settings, default={}, help="JSON file")
    return arguments


def _read_settings(path):
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"settings cannot be read: {path}: {error}") from error


def add_protocol(arguments, trains=False):
    """What names the data of a protocol; trains: and what methods see, with a network's weights."""
    arguments.add_argument("--protocol-folder", required=True)
    arguments.add_argument("--dataset", required=True, help="folder of the dataset")
    if trains:
        arguments.add_argument("--items", required=True, help=".npy file of features, or of images")
        arguments.add_argument("--weights", nargs="?", help="file of a network's pretrained weights")


def add_runs(arguments):
    """What names the runs that one process serves."""
    arguments.add_argument("--folder", required=True, help="folder of the method's runs")
    arguments.add_argument("--runs", nargs="+", required=True, help="<bits>/<seed> of each run")


def prepare_training(method_class, options):
    """Of a deep method: the threads of torch, and memory that is kept where a network is trained."""
    if hasattr(method_class, "device"):
        import torch

        torch.set_num_threads(options.threads)
        if options.settings.get("network"):
            keep_memory()


def keep_memory():
    """Let this process keep what it frees for its next arrays, where the C library is glibc.

    Each block of more than 32 MB would go back to the system at once, and the next one come in fresh pages
    that are filled with zeros: a fifth of the time of a training step of VGG-F. Costs memory, as the heap may
    have gaps.
    """
    with suppress(OSError, AttributeError):  # another C library
        library = ctypes.CDLL("libc.so.6")
        for setting in (MMAP_THRESHOLD, TRIM_THRESHOLD):
            library.mallopt(setting, 2**31 - 1)


@contextmanager
def named(title):
    """Prefix errors of the block with this title: a job may serve many runs."""
    try:
        yield
    except Exception as error:
        error.add_note(title)
        raise


def run(work, arguments, template=None):
    """Run work(options) with the rule's arguments; exits 1 with one line on stderr if it fails.

    template: options -> of which of `forks.TEMPLATES` this process may be a fork. Imports of NumPy, torch and
    Numba belong inside `work`: they read the thread variables set here.
    """
    forks.die_with_parent(os.getppid())
    options = arguments.parse_args()
    if template and (status := forks.run_in_fork(template(options), options.threads)) is not None:
        sys.exit(status)
    forks.use_threads(options.threads)
    logging.raiseExceptions = False  # a log on a full disk must not hide what is wrong
    terminal = logging.StreamHandler()
    terminal.setFormatter(logging.Formatter("%(message)s"))
    try:
        file = logging.FileHandler(options.log, mode="w", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        sys.exit(f"error: the log cannot be written: {error}")
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.setLevel(logging.DEBUG)
    terminal.setLevel(logging.INFO)
    log.addHandler(file)
    log.addHandler(terminal)
    log.debug("%s", " ".join(sys.argv))
    with suppress(OSError):  # an old one that cannot be deleted is harmless: it has its date
        Path(f"{options.log}.traceback").unlink(missing_ok=True)
    try:
        work(options)
    except KeyboardInterrupt:
        log.error("error: interrupted")
        sys.exit(130)
    except Exception as error:
        # Beside the log, which Snakemake shows: there, one line says what is wrong.
        kept = f"{options.log}.traceback"
        with suppress(OSError):  # on a full disk the one line still says what is wrong
            Path(kept).write_text(traceback.format_exc(), encoding="utf-8", errors="backslashreplace")
        titles = "".join(f"{title}: " for title in getattr(error, "__notes__", ()))
        reason = " ".join(str(error).split()) or type(error).__name__
        frames = traceback.extract_tb(error.__traceback__)
        of_method = any(Path(frame.filename).parent == METHODS for frame in frames)
        # What packages raise for errors in data and settings, and NumPy for mistakes in the code of a method.
        if isinstance(error, (ValueError, OSError)) and not of_method:
            log.error("error: %s%s", titles, reason)
        elif isinstance(error, MemoryError):
            log.error("error: %snot enough memory (%s)", titles, reason)
        else:
            log.error("error: %s%s: %s (traceback in %s)", titles, type(error).__name__, reason, kept)
        sys.exit(1)


class Progress:
    """Lines on long work: every record goes to the log, a few to the terminal."""

    def __init__(self, title):
        self.title = title
        self.shown = time.monotonic()

    def __call__(self, record):
        words = []
        for name, value in record.items():
            if value is not None:
                words.append(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}")
        due = time.monotonic() - self.shown >= SECONDS_BETWEEN_LINES
        if due:
            self.shown = time.monotonic()
        log.log(logging.INFO if due else logging.DEBUG, "%s: %s", self.title, ", ".join(words))
