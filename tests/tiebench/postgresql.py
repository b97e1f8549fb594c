"""A PostgreSQL server of its own for tests: Debian's, the one of PyPI's pgserver, or the one on PATH.

TIEBENCH_POSTGRESQL names its folder of programs (initdb, postgres, psql) where it is found in none of these.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAMS = ("initdb", "pg_ctl", "psql")


def programs():
    """Folder of the programs, or None."""
    folders = [os.environ.get("TIEBENCH_POSTGRESQL", "")]
    with suppress(ImportError):
        if found := importlib.util.find_spec("pgserver"):
            folders.append(str(Path(found.origin).parent / "pginstall" / "bin"))
    folders += sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
    if on_path := shutil.which("initdb"):
        folders.append(str(Path(on_path).parent))
    return next((f for f in folders if f and all(Path(f, name).exists() for name in PROGRAMS)), None)


class Server:
    """A running server; data: a folder that its user can read, which also holds its socket."""

    def __init__(self, folder, data, as_user):
        self.folder, self.data, self.as_user = folder, data, as_user

    def run(self, *words, check=True):
        """Run psql, as a user would; its output, a line per row, columns separated by |."""
        command = [Path(self.folder, "psql"), "--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]
        command += ["--set", "ON_ERROR_STOP=1", "--host", self.data, "--username", "tiebench"]
        environment = {**os.environ, "PGCLIENTENCODING": "UTF8"}
        done = subprocess.run(
            [*command, "--dbname", "postgres", *words],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment,
            **self.as_user,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout if check else done

    def rows(self, query):
        """The rows of a query, columns as text."""
        return [tuple(line.split("|")) for line in self.run("--command", query).splitlines()]


@contextmanager
def server(folder):
    """A `Server` of the programs in a folder, with an empty database, reached by a socket alone."""
    as_user = {}
    data = tempfile.mkdtemp(prefix="postgresql", dir="/tmp")  # a socket's path may have 107 bytes
    if os.geteuid() == 0:  # the server refuses to run as root
        nobody = pwd.getpwnam("nobody")
        as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": data}
        os.chown(data, nobody.pw_uid, nobody.pw_gid)
    else:
        as_user = {"cwd": data}
    cluster = Path(data, "cluster")

    def call(*words):
        log = Path(data, "log")  # not a pipe: the server would keep it open
        with log.open("ab") as output:
            done = subprocess.run(words, stdout=output, stderr=output, timeout=120, **as_user)
        assert done.returncode == 0, log.read_text(errors="replace")

    initdb = Path(folder, "initdb")
    control = [Path(folder, "pg_ctl"), "-D", cluster, "-w"]
    try:
        call(initdb, "-D", cluster, "-U", "tiebench", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        call(*control, "-o", f"-c listen_addresses= -c unix_socket_directories={data} -F", "start")
        try:
            yield Server(folder, data, as_user)
        finally:
            call(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(data, ignore_errors=True)
