"""A process that encodes texts by sentence-transformers: python -I _sentence_process.py PATH...

The library imports a package of Hugging Face that is called `datasets`, as one of this repository is. Here
the repository is not on the path: Python's isolated mode leaves out the folder of this file, the working
folder and PYTHONPATH, and each PATH is a further folder of packages. So nothing of the repository can be
imported below.

Standard input has one JSON object a line: {"load": NAME, "max_length": N or null}, then any number of
{"texts": [...], "prompt": TEXT or null, "batch_size": N, "device": NAME}. Each is answered on standard output
by a line of JSON, which is {"error": [[type, text], ...]}, the error and its causes, or what was asked for:
of a model its "settings" and "weights_sha256", of texts the "bytes" of the .npy that follows the line, the
vectors, float32 (n, width). The process ends with its standard input.
"""

import hashlib
import io
import json
import os
import signal
import sys


def load(request):
    """The model, and what is said of it."""
    import sentence_transformers

    model = sentence_transformers.SentenceTransformer(request["load"], device="cpu").float().eval()
    if request["max_length"] is not None:
        model.max_seq_length = request["max_length"]
    digest = hashlib.sha256()
    for name, values in sorted(model.state_dict().items()):
        array = values.detach().cpu().numpy()
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    settings = {
        "modules": " ".join(str(model).split()),
        "prompts": [model.prompts, model.default_prompt_name],
        "max_length": model.max_seq_length,
    }
    return model, {"settings": settings, "weights_sha256": digest.hexdigest()}


def encode(model, request):
    """The vectors of texts, as the bytes of an .npy file."""
    import numpy as np
    import torch

    with torch.inference_mode(), torch.backends.cudnn.flags(True, deterministic=True, allow_tf32=False):
        found = model.to(request["device"]).encode(
            request["texts"],
            prompt=request["prompt"],
            batch_size=request["batch_size"],
            device=request["device"],
            convert_to_tensor=True,
            show_progress_bar=False,
        )
    contents = io.BytesIO()
    np.save(contents, found.float().cpu().numpy(), allow_pickle=False)
    return contents.getvalue()


def causes(error):
    """An error and what it comes from, as [type, text] each."""
    found: list[list[str]] = []
    while error is not None and len(found) < 10:
        found.append([type(error).__name__, str(error)])
        error = error.__cause__ or error.__context__
    return found


def main():
    """Answer requests until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    sys.path += [path for path in sys.argv[1:] if path not in sys.path]
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    model = None
    for line in sys.stdin.buffer:
        request, contents = json.loads(line), b""
        try:
            if "load" in request:
                model, answer = load(request)
            else:
                contents = encode(model, request)
                answer = {"bytes": len(contents)}
        except Exception as error:  # libraries raise errors of every kind
            answer = {"error": causes(error)}
        answers.write(json.dumps(answer).encode() + b"\n" + contents)
        answers.flush()


if __name__ == "__main__":
    main()
