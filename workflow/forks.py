"""Jobs as forks of a process that has imported what they need: importing takes longer than many a job's work.

Snakemake's process starts a template for each kind of job. It imports nothing until a first job asks for it,
and runs no thread, as a fork would lack it. A job is started as ever, by its command. It hands its arguments,
variables, folder and standard streams to the template, waits for the fork that this makes, and ends with the
fork's status.

Nothing outlives what it works for: the system ends templates with Snakemake's process, and forks with their
template; a template ends the fork of a job that was ended.

A job does its work itself on a cluster, with several threads or a device other than the CPU, by another
interpreter (`--sdm conda`), outside of Linux since 5.3 (macOS cannot fork safely once its frameworks are
loaded), and with TIEBENCH_FORKS=off.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import secrets
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

VARIABLE = "TIEBENCH_FORKS"
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
_KERNELS = (
    "methods.base.catalogue",
    "tiebench.counting.histograms",
    "tiebench.scoring",
    "workflow.stages.checkpoints",
    "workflow.stages.protocol_data",
    "workflow.stages.run_records",
    "workflow.stages.transfer",
)
# Kind of job -> what its template imports. A fork imports what is missing, but what is too much stays:
# run.json has the version of torch wherever torch is imported.
TEMPLATES = {
    "kernels": _KERNELS,
    "torch": (*_KERNELS, "methods.base.deep", "tiebench.losses"),
    "figures": (
        "matplotlib.backends.backend_agg",
        "matplotlib.backends.backend_pdf",
        "matplotlib.backends.backend_svg",
        "reporting.page.document",
        "reporting.page.gallery",
        "reporting.published",
    ),
}


def use_threads(number):
    """Set the variables that NumPy, torch and Numba read when they are imported."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(number)))


def die_with_parent(parent):
    """End when `parent`, the process that started this one, does, or at once if it has; on Linux."""
    if sys.platform != "linux":
        return
    set_parent_death_signal = 1
    ctypes.CDLL(None, use_errno=True).prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def start_templates():
    """Start the template of each kind of job, where there can be any; they end with this process."""
    if sys.platform != "linux" or VARIABLE in os.environ:
        return
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return
    token = secrets.token_hex(8)
    for kind in TEMPLATES:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(_address(token, kind))
            listener.listen(1024)
            words = [kind, str(listener.fileno()), str(os.getpid())]
            command = [sys.executable, "-m", "workflow.forks", *words]
            template = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[listener.fileno()])
        atexit.register(_end, template)
    os.environ[VARIABLE] = f"{token} {sys.prefix}"


def run_in_fork(kind, threads):
    """Run the command of this process in a fork of a template; its exit status, or None if there is none."""
    token, _, prefix = os.environ.get(VARIABLE, "").partition(" ")
    if prefix != sys.prefix or threads > 1:
        return None
    with socket.socket(socket.AF_UNIX) as template:
        try:
            template.connect(_address(token, kind))
        except ConnectionRefusedError:  # somebody ended it
            return None
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the fork is sent it too, and tells
        specification: Any = sys.modules["__main__"].__spec__
        request = [specification.name, sys.argv, str(Path.cwd()), dict(os.environ)]
        text = json.dumps(request).encode()
        socket.send_fds(template, [len(text).to_bytes(8, "big")], [0, 1, 2])
        template.sendall(text)
        answer = template.makefile().read()
    if not answer:
        sys.exit("error: the process that jobs are forked from has ended")
    status = int(answer)
    return status if status >= 0 else 128 - status


def _address(token, kind):
    # In Linux's abstract names: nothing is left on a disk by a process that was killed.
    return f"\0tiebench-{token}-{kind}"


def _end(template):
    template.kill()
    template.wait()


def _serve(listener, modules):
    """Fork for each request; returns in forks only, with the request and the standard streams."""
    template, prepared = os.getpid(), False
    jobs: dict[int, tuple[Any, Any]] = {}
    with selectors.PollSelector() as events:
        events.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in events.select():
                if key.data:  # of a fork
                    _finish(key, jobs, events)
                    continue
                client, _ = listener.accept()
                if not _is_ours(client):
                    client.close()
                    continue
                try:
                    request, streams = _received(client)
                except (OSError, ValueError):  # the job was ended before it had said what it does
                    client.close()
                    continue
                if not prepared:
                    _prepare(modules)
                    prepared = True
                process = os.fork()
                if not process:
                    die_with_parent(template)
                    watched: Any
                    for watched in (client, *(key.fileobj for key in events.get_map().values())):
                        watched.close()
                    return request, streams
                for stream in streams:
                    os.close(stream)
                ended = os.fdopen(os.pidfd_open(process), "rb", buffering=0)
                jobs[process] = client, ended
                for watched in jobs[process]:
                    events.register(watched, selectors.EVENT_READ, process)


def _finish(key, jobs, events):
    """End the fork of a job that was ended, or tell a job that its fork has ended, and how."""
    process = key.data
    if process not in jobs:  # both happened at once
        return
    client, ended = jobs.pop(process)
    if key.fileobj is client:
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    for watched in (client, ended):
        events.unregister(watched)
    with client, ended, suppress(OSError):
        client.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _is_ours(client):
    """Whether a process of the same user is at the other end: abstract names have no permissions."""
    size = struct.calcsize("3i")
    credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return struct.unpack("3i", credentials)[1] == os.getuid()


def _received(client):
    length, streams, _, _ = socket.recv_fds(client, 8, 3)
    with client.makefile("rb") as request:
        return json.loads(request.read(int.from_bytes(length, "big"))), streams


def _prepare(modules):
    """Import modules. One that cannot be imported ends the jobs that need it, each with its own message."""
    for module in modules:
        with suppress(Exception):
            importlib.import_module(module)
    if numba := sys.modules.get("numba"):
        numba.njit(lambda: 0)()  # loads what Numba loads at its first function
    gc.freeze()  # collections in forks leave these pages shared


def _become(request, streams):
    """End as a new interpreter would with the command of a job."""
    module, arguments, folder, variables = request
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    del os.environ[VARIABLE]
    sys.argv = arguments
    status: Any = 1
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as error:
        status = error.code
    except BaseException:
        traceback.print_exc()
    if not isinstance(status, int):
        if status is not None:
            print(status, file=sys.stderr)
        status = 0 if status is None else 1
    # Without the end of the interpreter, which would look at every object of the template.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status & 0xFF)


def _main(kind, descriptor, parent):
    die_with_parent(int(parent))
    use_threads(1)
    # Ctrl-C goes to all processes of a terminal: jobs end, and templates with Snakemake's process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    request, streams = _serve(socket.socket(fileno=int(descriptor)), TEMPLATES[kind])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _become(request, streams)


if __name__ == "__main__":
    _main(*sys.argv[1:])
