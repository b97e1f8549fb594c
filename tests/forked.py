"""Runs `python -m MODULE ...` in forks of a process that has imported the packages which the module needs.

Importing Snakemake, torch or matplotlib takes seconds, and tests of the workflow start hundreds of processes
that do. A fork has the arguments, variables, folder and standard streams of the command, and imports
this project's own modules anew, from where the command would find them. Jobs that Snakemake starts are forks
too, and Snakemake where a fork starts it: the `sys.executable` of a fork, and the `python` beside it, is a
client of the same server.

Forks share the seed of hashes and the state of packages: what depends on these shows in no comparison
of two forks. So a test that compares runs, or kills a process, has one of them started in the ordinary way.
"""

import ast
import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from pathlib import Path

JOBS = "workflow.scripts."
KERNELS = ("numpy", "numba")
TORCH = (*KERNELS, "torch", "torch.optim")
TABLES = ("numpy", "pandas", "scipy.stats", "jinja2")
FIGURES = (*TABLES, "matplotlib.pyplot", *(f"matplotlib.backends.backend_{b}" for b in ("agg", "pdf", "svg")))
# Module -> packages imported before its first fork. This saves time only: a fork imports what is missing.
PACKAGES = {
    "snakemake": (
        "snakemake.cli",
        "snakemake.report",
        "snakemake.storage",
        "smart_open",
        "numpy",
        "pandas",
        "jsonschema",
        "filelock",
        "PIL.Image",
        "jinja2",
        "scipy.special",
    ),
    f"{JOBS}train_and_encode": TORCH,
    f"{JOBS}tune_method": TORCH,
    f"{JOBS}extract_features": TORCH,
    f"{JOBS}score_codes": KERNELS,
    f"{JOBS}count_part": KERNELS,
    f"{JOBS}score_uncoded": KERNELS,
    f"{JOBS}collect_table": TABLES,
    f"{JOBS}plot_figure": FIGURES,
    f"{JOBS}plot_gallery": FIGURES,
    f"{JOBS}render_page": FIGURES,
}
PYTHON = """#!{python} -IS
import os, sys
if sys.argv[1:2] != ["-m"] or not sys.argv[2].startswith(("snakemake", "{jobs}")):
    os.execv("{python}", ["{python}", *sys.argv[1:]])
import json, socket
request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect("{address}")
    socket.send_fds(server, [len(request).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(request)
    answer = server.makefile().read().split()
sys.exit(int(answer[1]) % 256)
"""


def run(arguments, cwd, env, timeout):
    """As subprocess.run of `python` with these arguments, the first of them -m; captures output as text."""
    if not sys.platform.startswith("linux"):
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout)
    python = Path(_python())
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as output,
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        Path(os.devnull).open() as nothing,
        socket.socket(socket.AF_UNIX) as server,
    ):
        server.settimeout(timeout)
        server.connect(str(python.with_name("server")))
        streams = [stream.fileno() for stream in (nothing, output, errors)]
        variables = {**env, "TIEBENCH_FORKS": "off"}  # jobs are forks of this server already
        request = json.dumps([list(map(str, arguments)), str(cwd), variables]).encode()
        socket.send_fds(server, [len(request).to_bytes(8, "big")], streams)
        server.sendall(request)
        answer = server.makefile()
        process = int(answer.readline())
        try:
            status = int(answer.readline())
        except TimeoutError as error:
            os.kill(process, signal.SIGKILL)
            raise subprocess.TimeoutExpired(arguments, timeout) from error
        for stream in (output, errors):
            stream.seek(0)
        return subprocess.CompletedProcess(arguments, status, output.read(), errors.read())


@functools.cache
def _python():
    """Start the server, which ends with this process; the path of the client."""
    folder = Path(tempfile.mkdtemp(prefix="forked"))
    address, python = folder / "server", folder / "python"
    python.write_text(PYTHON.format(python=sys.executable, jobs=JOBS, address=address))
    python.chmod(0o755)
    command = [sys.executable, "-I", __file__, address, python]
    server = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
    assert server.stdout.readline() == b"ready\n"

    def end():
        server.stdin.close()
        server.wait()
        shutil.rmtree(folder)

    atexit.register(end)
    return python


def _serve(address, python):
    """Fork for every request; tell each client the process id, and its status when it ends."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    ended, signalled = socket.socketpair()
    for end in (ended, signalled):
        end.setblocking(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, and with them this process
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(signalled.fileno(), warn_on_full_buffer=False)
    clients = {}
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([listener, ended, sys.stdin], [], [])
        if sys.stdin in ready:  # closed: the tests have ended
            return None
        if ended in ready:
            ended.recv(4096)
            while clients:
                process, status = os.waitpid(-1, os.WNOHANG)
                if not process:
                    break
                with clients.pop(process) as client, suppress(OSError):
                    client.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        if listener in ready:
            client, _ = listener.accept()
            (arguments, *where), streams = _received(client)
            _prepare(arguments[1])
            process = os.fork()
            if not process:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                for open_here in (listener, ended, signalled, client, *clients.values()):
                    open_here.close()
                return lambda: _become(python, arguments, *where, streams)
            clients[process] = client
            client.sendall(f"{process}\n".encode())
            for stream in streams:
                os.close(stream)


@functools.cache
def _prepare(module):
    """Import what a module needs; called before its first fork."""
    packages = PACKAGES.get(module, ())
    for package in packages:
        importlib.import_module(package)
    if "numba" in packages:
        sys.modules["numba"].njit(lambda: 0)()  # loads what Numba loads at its first function
    if module == "snakemake":
        sys.modules["snakemake.cli"].get_argument_parser()  # finds and loads its plug-ins
        _parse_ahead()
    gc.freeze()  # collections in forks leave these pages shared


def _parse_ahead():
    """Syntax trees of this checkout's files, which each run of the Snakefile asks for, are made here once."""
    parse, root = ast.parse, Path(__file__).parents[1]
    sources = [path for package in root.glob("*/__init__.py") for path in package.parent.rglob("*.py")]
    trees = {text: parse(text) for text in (path.read_bytes() for path in sources)}
    ast.parse = lambda text, *given, **named: trees.get(text) or parse(text, *given, **named)


def _received(client):
    length, streams, _, _ = socket.recv_fds(client, 8, 3)
    with client.makefile("rb") as request:
        return json.loads(request.read(int.from_bytes(length, "big"))), streams


def _become(python, arguments, cwd, variables, streams):
    """As a new interpreter would: `python -m MODULE ...` with these variables, in this folder."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(variables)
    sys.dont_write_bytecode = bool(variables.get("PYTHONDONTWRITEBYTECODE"))
    sys.executable = python
    sys.path[:0] = [cwd, *filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))]
    _, module, *rest = arguments
    sys.argv = [module, *rest]
    status = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as error:
        status = error.code
    except BaseException:
        traceback.print_exc()
        status = 1
    if not isinstance(status, int):
        if status is not None:
            print(status, file=sys.stderr)
        status = 0 if status is None else 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    if fork := _serve(*sys.argv[1:]):
        fork()
