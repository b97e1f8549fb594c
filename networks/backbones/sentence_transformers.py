"""sentence-transformers: embeddings of texts, pooled as each model states.

The library runs in a process of its own (_sentence_process.py), because it imports another package called
`datasets` than the one here.
"""

import io
import json
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np

from networks.backbones import Backbone, BackboneError, hub_name

ITEMS = ("texts",)
PACKAGES = ("sentence-transformers",)
OPTIONS = {
    "prefix": "text that stands before every text, as 'query: '; the model's default prompt by default",
    "max_length": "tokens after which a text is cut; the model's limit by default",
}
ROOT = Path(__file__).parents[2]


def models():
    return []  # they are names on a server, or folders


def load(model, items, weights, seed, prefix=None, max_length=None):
    """`model`: a name on the hub, its owner left out for sentence-transformers' own, or a folder."""
    name = f"sentence-transformers/{model}"
    if weights is not None or seed is not None:
        raise BackboneError(f"model '{name}': name the folder of a model; other weights have no place in it")
    folder = hub_name(name, model)
    process = _Process(name)
    about = process.ask({"load": folder, "max_length": max_length})

    def encode(texts, batch_size, device):
        import torch

        asked = {"texts": texts, "prompt": prefix, "batch_size": batch_size, "device": str(device)}
        contents = process.read(process.ask(asked)["bytes"])
        return torch.from_numpy(np.load(io.BytesIO(contents), allow_pickle=False))

    settings = about["settings"] | {"prefix": prefix}
    return Backbone(None, encode, None, settings, about["weights_sha256"])


class _Process:
    """A process that answers requests, for as long as this object lives. name: of the model, for messages."""

    def __init__(self, name):
        self.name = name
        program = Path(__file__).with_name("_sentence_process.py")
        paths = [path for path in sys.path if path and Path(path).resolve() != ROOT]
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(program), *paths], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdin is not None and self.process.stdout is not None  # both are pipes
        self.requests, self.answers = self.process.stdin, self.process.stdout
        weakref.finalize(self, _end, self.process, self.requests, self.answers)

    def ask(self, request):
        """The answer to a request. Raises what the library raised, or BackboneError if the process ended."""
        try:
            self.requests.write(json.dumps(request).encode() + b"\n")
            self.requests.flush()
        except BrokenPipeError:
            self._ended()
        line = self.answers.readline()
        if not line.endswith(b"\n"):
            self._ended()
        answer = json.loads(line)
        if "error" in answer:
            raise _as_raised(answer["error"])
        return answer

    def read(self, size):
        """So many bytes that follow an answer."""
        contents = self.answers.read(size)
        if len(contents) < size:
            self._ended()
        return contents

    def _ended(self):
        status = self.process.wait()
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        raise BackboneError(f"model '{self.name}': the process of the library ended ({how})")


def _end(process, requests, answers):
    requests.close()
    answers.close()
    process.kill()
    process.wait()


def _as_raised(causes):
    """An error with its causes, as [type, text] each: their classes are those of the other process."""
    error = None
    for kind, text in reversed(causes):
        cause, error = error, type(kind, (Exception,), {})(text)
        error.__cause__ = cause
    return error
