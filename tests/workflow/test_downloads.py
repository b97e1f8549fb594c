"""Downloads from a real HTTP server on this machine, which behaves and misbehaves as servers do."""

import fcntl
import gzip
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from workflow.configuration.merged import load
from workflow.configuration.source_checks import check, is_plain, is_trusted, mirrors
from workflow.configuration.sources import Place
from workflow.downloads.fetch import RETRIES, DownloadError, fetch
from workflow.plan.runs import Plan

from conftest import ROOT, read_json  # isort: skip

pytestmark = pytest.mark.thorough

BODY = random.Random(0).randbytes(300_000)
OTHER = random.Random(1).randbytes(300_000)
CUT = 100_000
REST = f"bytes={CUT}-"
SUM = hashlib.sha256(BODY).hexdigest()
QUICK = RETRIES.new(total=3, backoff_factor=0.01)


def serve(body=BODY, ranges=True, cut=None, stall=False, **headers):
    """An answer with a file: `cut` after so many bytes, or stalled there."""

    def answer(request):
        begin = 0
        if ranges and (asked := re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))):
            begin = int(asked[1])
            if begin >= len(body):
                return fail(416)(request)
        request.send_response(206 if begin else 200)
        request.send_header("Content-Length", str(len(body) - begin))
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body[begin:cut])
        if stall:
            request.server.released.wait(20)

    return answer


def fail(status, **headers):
    def answer(request):
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()

    return answer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.lstrip("/")
        self.server.seen.append((path, self.headers.get("Range")))
        answers = self.server.answers.get(path, [fail(404)])
        (answers.pop(0) if len(answers) > 1 else answers[0])(self)

    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    """answers: path -> what it answers, one by one, the last for ever; seen: (path, Range)."""

    daemon_threads = True

    def __init__(self, host="127.0.0.1"):
        super().__init__((host, 0), Handler)
        self.answers, self.seen, self.released = {}, [], threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def give(self, path, *answers):
        """Its address."""
        self.answers[path] = list(answers)
        return f"http://{self.server_address[0]}:{self.server_address[1]}/{path}"

    def stop(self):
        self.released.set()
        self.shutdown()
        self.server_close()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def target(tmp_path):
    return tmp_path / "downloads" / "data.bin"


def source(*urls, **more):
    return {"file": "data.bin", "urls": list(urls)} | more


def got(wanted, target, expected=BODY, timeout=(2, 2), retries=QUICK):
    """The address of a file, which must be the expected one, and what was reported."""
    reports = []
    found = fetch(wanted, target, reports.append, retries, timeout)
    assert target.read_bytes() == expected
    return found, reports


def failed(wanted, target, **more):
    """The one line of a download that fails."""
    with pytest.raises(DownloadError) as caught:
        got(wanted, target, **more)
    assert "\n" not in str(caught.value)
    assert not target.exists()
    return str(caught.value)


def files(target):
    return {path.name for path in target.parent.iterdir()}


def test_a_whole_file_is_stored_checked_and_reported(server, target):
    url = server.give("a", serve())
    found, reports = got(source(url, sha256=SUM, md5=hashlib.md5(BODY).hexdigest(), bytes=300_000), target)
    assert found == url
    assert files(target) == {"data.bin"}
    assert set(reports[-1]) == {"file", "megabytes", "of", "megabytes_per_second"}
    assert (reports[-1]["file"], reports[-1]["megabytes"], reports[-1]["of"]) == ("data.bin", 0.3, 0.3)
    assert server.seen == [("a", None)]


OTHER_MD5 = {"md5": hashlib.md5(OTHER).hexdigest()}
# answers of two mirrors -> (what is recorded, the file, the requests, files beside it)
ANSWERS = {
    "a cut file goes on": ([serve(cut=CUT), serve()], [], {"sha256": SUM}, BODY, [None, REST], ""),
    "without a checksum it starts again": ([serve(cut=CUT), serve(OTHER)], [], {}, OTHER, [None] * 2, ""),
    "a server without ranges gives all of it": (
        [serve(cut=CUT), serve(ranges=False)], [], {"sha256": SUM}, BODY, [None, REST], "",
    ),
    "a file that changed meanwhile is taken whole": (
        [serve(cut=CUT), serve(OTHER)], [], OTHER_MD5, OTHER, [None, REST, None], "",
    ),
    "a failure that passes": ([fail(503), fail(429), serve()], [], {"sha256": SUM}, BODY, [None] * 3, ""),
    "one mirror finishes what another began": (
        [serve(cut=CUT), fail(404)], [serve()], {"sha256": SUM}, BODY, [None, REST, REST], "",
    ),
    "a wrong file is kept aside": (
        [serve(OTHER)], [serve()], {"sha256": SUM}, BODY, [None, None], "data.bin.rejected",
    ),
    "more than the recorded bytes": (
        [serve(BODY + OTHER)], [serve()], {"bytes": 300_000}, BODY, [None, None], "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "recorded", "expected", "ranges", "beside"), ANSWERS.values(), ids=ANSWERS.keys()
)
def test_interruptions_failures_and_wrong_files(
    server, target, first, second, recorded, expected, ranges, beside
):
    urls = [server.give("a", *first)] + ([server.give("b", *second)] if second else [])
    assert got(source(*urls, **recorded), target, expected)[0] == urls[-1]
    assert [seen[1] for seen in server.seen] == ranges
    assert files(target) == {"data.bin", beside} - {""}
    if beside:
        assert target.with_name(beside).read_bytes() == OTHER


def test_a_failure_that_stays_leads_to_the_next_mirror_at_once(server, target, caplog):
    first, second = server.give("a", fail(403)), server.give("b", serve())
    assert got(source(first, second), target)[0] == second
    assert [seen[0] for seen in server.seen] == ["a", "b"]
    assert f"{first}: 403" in caplog.text
    assert SUM in caplog.text  # no checksum is recorded: this one may be


def test_a_wrong_sum_everywhere_ends_in_one_line(server, target):
    md5 = hashlib.md5(BODY).hexdigest()
    url = server.give("a", serve(OTHER))
    line = failed(source(url, md5=md5, instructions="ask the authors"), target)
    assert all(word in line for word in (url, md5, OTHER_MD5["md5"], "data.bin.rejected", "ask the authors"))
    assert files(target) == {"data.bin.rejected"}


def test_a_part_that_never_fits_is_fetched_as_a_whole_once(server, target):
    """Interrupted after each mebibyte, which by itself would be tried for ever."""
    large = random.Random(2).randbytes(3 << 20)
    url = server.give("a", *[serve(large, cut=end << 20) for end in (2, 3)] * 2, fail(404))
    assert hashlib.sha256(large).hexdigest() in failed(source(url, sha256=SUM), target)
    assert [seen[1] for seen in server.seen] == [None, "bytes=2097152-"] * 2
    assert files(target) == {"data.bin.rejected"}


def test_a_wrong_file_of_a_server_without_ranges_is_fetched_once(server, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    target.with_name("data.bin.partial").write_bytes(BODY[:CUT])
    url = server.give("a", serve(OTHER, ranges=False), fail(404))
    assert "data.bin.rejected" in failed(source(url, sha256=SUM), target)
    assert [seen[1] for seen in server.seen] == [REST]


def test_a_redirect_is_followed(server, target):
    there = server.give("there", serve(cut=CUT), serve())
    url = server.give("a", fail(302, Location=there))
    assert got(source(url, sha256=SUM), target)[0] == url
    assert server.seen == [("a", None), ("there", None), ("a", REST), ("there", REST)]


@pytest.mark.skipif(sys.platform != "linux", reason="all of 127.0.0.0/8 is this machine on Linux only")
def test_a_redirect_to_plain_http_elsewhere_is_not_believed_without_a_sum(server, target):
    elsewhere = Server("127.0.0.2")
    try:
        there = elsewhere.give("there", serve())
        url = server.give("a", fail(302, Location=there))
        assert f"leads to {there}" in failed(source(url), target)
        got(source(url, sha256=SUM), target)
    finally:
        elsewhere.stop()


def test_a_stalled_connection_is_left_and_resumed(server, target):
    url = server.give("a", serve(cut=CUT, stall=True), serve())
    got(source(url, sha256=SUM), target, timeout=(2, 0.3))
    assert server.seen[1:] == [("a", REST)]


def test_what_arrived_before_all_tries_failed_serves_the_next_call(server, target):
    url = server.give("a", serve(cut=CUT), fail(503))
    assert "503" in failed(source(url, sha256=SUM), target)
    assert len(server.seen) == 2 + QUICK.total
    assert files(target) == {"data.bin.partial"}
    assert target.with_name("data.bin.partial").read_bytes() == BODY[:CUT]
    server.give("a", serve())
    got(source(url, sha256=SUM), target)
    assert server.seen[-1] == ("a", REST)
    assert files(target) == {"data.bin"}


def test_a_file_that_always_breaks_off_is_one_line_and_nothing_unverifiable_stays(server, target):
    url = server.give("a", serve(cut=CUT))
    assert url in failed(source(url), target)
    assert len(server.seen) == 1 + QUICK.total
    assert files(target) == set()


def test_a_server_that_does_not_answer_is_one_line(server, target):
    url = server.give("a", serve())
    server.stop()
    line = failed(source(url), target)
    assert url in line and "onnection refused" in line
    assert files(target) == set()


@pytest.mark.parametrize(("asked", "waited"), [("5", 5), ("4000", 60)])
def test_a_mirror_says_how_long_to_wait_within_reason(server, target, monkeypatch, asked, waited):
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)
    got(source(server.give("a", fail(503, Retry_After=asked), serve())), target, retries=RETRIES)
    assert waits == [waited]


def test_a_compressed_file_stays_as_it_is(server, target):
    """Some hosts declare .gz files to be an encoding of what is inside."""
    packed = gzip.compress(BODY)
    got(source(server.give("a", serve(packed, Content_Encoding="gzip"))), target, packed)


PROGRAM = """
import json, sys
from pathlib import Path
from workflow.downloads.fetch import fetch
fetch(json.loads(sys.argv[1]), Path(sys.argv[2]), lambda record: None)
"""


def test_a_killed_download_is_resumed_by_another_process(server, target):
    wanted = json.dumps(source(server.give("a", serve(cut=CUT, stall=True), serve()), sha256=SUM))
    command = [sys.executable, "-c", PROGRAM, wanted, str(target)]
    first = subprocess.Popen(command, cwd=ROOT)
    partial = target.with_name("data.bin.partial")
    deadline = time.monotonic() + 20
    while not (partial.exists() and partial.stat().st_size == CUT):
        assert time.monotonic() < deadline and first.poll() is None
        time.sleep(0.02)
    # Meanwhile no other process writes there.
    assert "another process" in failed(json.loads(wanted), target)
    first.send_signal(signal.SIGKILL)
    first.wait()
    subprocess.run(command, cwd=ROOT, check=True)
    assert target.read_bytes() == BODY
    assert server.seen == [("a", None), ("a", REST)]
    assert files(target) == {"data.bin"}


@pytest.mark.parametrize(
    ("left", "requests"),
    [(BODY, []), (OTHER[:CUT], [REST, None]), (BODY + OTHER, ["bytes=600000-", None])],
    ids=["whole", "of another file", "too long"],
)
def test_what_an_earlier_process_left_is_used_if_the_sum_fits(server, target, left, requests):
    target.parent.mkdir()
    with target.with_name("data.bin.partial").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # a stale lock
        file.write(left)
    got(source(server.give("a", serve()), sha256=SUM), target)
    assert [seen[1] for seen in server.seen] == requests


def test_a_file_that_is_there_is_used_or_refused_but_never_written(server, target):
    url = server.give("a", serve())
    target.parent.mkdir()
    target.write_bytes(BODY)
    assert got(source(url, sha256=SUM), target)[0] is None
    target.write_bytes(OTHER)
    with pytest.raises(ValueError) as caught:
        got(source(url, sha256=SUM), target)
    assert SUM in str(caught.value) and hashlib.sha256(OTHER).hexdigest() in str(caught.value)
    assert target.read_bytes() == OTHER
    assert server.seen == []


@pytest.mark.parametrize(
    "file", ["../data.bin", "a/../../data.bin", "/tmp/data.bin", "a//data.bin", "..", ""]
)
def test_nothing_is_written_outside_of_the_folder(server, tmp_path, file):
    url = server.give("a", serve())
    with pytest.raises(ValueError):
        got({"file": file, "urls": [url]}, tmp_path / "downloads" / file)
    assert list(tmp_path.iterdir()) == []
    assert server.seen == []
    assert not is_plain(file)


def test_https_or_this_machine_or_a_sum():
    plain = {"file": "a", "urls": ["http://example.org/a", "https://example.org/a"]}
    assert mirrors(plain) == ["https://example.org/a"]
    assert mirrors(plain | {"sha256": SUM}) == plain["urls"]
    assert mirrors(plain | {"md5": "0" * 32}) == plain["urls"]
    assert mirrors(plain | {"bytes": 12}) == ["https://example.org/a"]
    assert mirrors(plain | {"file": "/data/a"}) == []
    assert is_trusted("http://localhost:8000/a", plain)
    assert not is_trusted("http://localhost.example.org/a", plain)
    assert not is_trusted("http://127.0.0.1@example.org/a", plain)


def test_sums_are_computed_once_as_long_as_the_file_stays(tmp_path):
    file, memory = tmp_path / "a", tmp_path / "sums" / "sources.json"
    file.write_bytes(BODY)
    wanted = {"file": "a", "sha256": SUM}
    check(file, wanted, memory)
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    file.write_bytes(OTHER)
    os.utime(file, ns=times)
    check(file, wanted, memory)  # not looked at: that is the point
    with pytest.raises(ValueError, match="has md5"):
        check(file, {"file": "a", "md5": hashlib.md5(BODY).hexdigest()}, memory)  # another kind of sum is
    os.utime(file, ns=(times[0], times[1] + 1))
    with pytest.raises(ValueError, match=hashlib.sha256(OTHER).hexdigest()):
        check(file, wanted, memory)
    check(tmp_path, wanted, memory)  # a folder has no sum


def dataset(*sources):
    return {"loader": "features_file", "sources": list(sources)}


def test_what_will_be_downloaded_has_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIEBENCH_RESOURCES", raising=False)
    here = {"file": "a.npz", "urls": ["https://a.org/a.npz"]}
    absolute = here | {"file": str(tmp_path / "b.npz")}
    network = {"architecture": "small", "weights": here | {"file": "nets/w.mat"}}
    mine = {"a": dataset(here), "b": dataset(absolute), "c": dataset({"file": "a.npz", "sha256": SUM})}
    configuration = load(ROOT, {"datasets": mine, "networks": {"n": network}})
    place = Place("resources/downloads/a.npz", "download")
    assert [configuration.sources.locate(mine[name]["sources"][0]) for name in "ac"] == [place, place]
    assert configuration.sources.locate(network["weights"]).path == "resources/downloads/nets/w.mat"
    # One file, whoever needs it: with all that is known of it.
    assert configuration.sources.to_download()["a.npz"] == here | {"sha256": SUM}
    # An absolute path is never downloaded.
    assert (absolute["file"], "datasets", "b") in configuration.sources.missing()


# -- the workflow ------------------------------------------------------------------------------------------


@pytest.fixture
def online(empty_laboratory, server, tiny):
    """A laboratory without the tiny file, which the server has: (laboratory, configuration, bytes)."""
    file = empty_laboratory.sources / "tiny.npz"
    body = file.read_bytes()
    file.unlink()
    url = server.give("tiny.npz", serve(body, cut=1000), serve(body))
    tiny["datasets"]["tiny"]["sources"][0] |= {"urls": [url], "sha256": hashlib.sha256(body).hexdigest()}
    return empty_laboratory, tiny, body


def test_a_dataset_comes_from_its_mirror_and_later_from_the_disk(online, server):
    laboratory, config, body = online
    target = "resources/datasets/tiny/dataset.json"
    planned = laboratory.made("results/tiny.csv", config=config, options=["-n"])
    assert "Download tiny.npz" in planned.stdout + planned.stderr
    assert server.seen == []
    laboratory.made(target, config=config)
    stored = laboratory.directory / "resources" / "downloads" / "tiny.npz"
    assert stored.read_bytes() == body
    assert [path.name for path in stored.parent.iterdir()] == ["tiny.npz"]
    assert [seen[1] for seen in server.seen] == [None, "bytes=1000-"]
    assert list(laboratory.sources.iterdir()) == []
    # What is derived can be made again offline.
    server.stop()
    card = (laboratory.directory / target).read_bytes()
    for path in (laboratory.directory / "resources" / "datasets" / "tiny").iterdir():
        path.unlink()
    laboratory.made(target, config=config)
    assert (laboratory.directory / target).read_bytes() == card
    # Neither another address nor a deleted archive is a reason to fetch it again for what is derived already.
    config["datasets"]["tiny"]["sources"][0]["urls"].append("https://example.invalid/tiny.npz")
    stored.unlink()
    assert laboratory.has_nothing_to_do(target, config=config)


def test_a_wrong_file_is_refused_by_its_sums(online, server):
    """Before anything runs where it lies there; one that is downloaded leaves nothing under its name."""
    laboratory, config, body = online
    sums = [hashlib.sha256(content).hexdigest() for content in (body, OTHER)]
    wrong = laboratory.sources / "tiny.npz"
    wrong.write_bytes(OTHER)
    line = laboratory.refused("results/tiny.csv", config=config)
    assert [word for word in ("tiny.npz", *sums) if word not in line] == []
    assert server.seen == []
    assert not (laboratory.directory / "resources").exists()
    wrong.unlink()
    server.give("tiny.npz", serve(OTHER))
    line = laboratory.refused("resources/datasets/tiny/dataset.json", config=config)
    assert [word for word in ("tiny.npz", *sums, ".rejected") if word not in line] == []
    stored = laboratory.directory / "resources" / "downloads"
    assert [path.name for path in stored.iterdir()] == ["tiny.npz.rejected"]


def test_wrong_weights_are_refused_by_their_sums(empty_laboratory, tiny):
    (empty_laboratory.sources / "w.mat").write_bytes(OTHER)
    tiny["networks"] = {"n": {"architecture": "small", "weights": {"file": "w.mat", "sha256": SUM}}}
    line = empty_laboratory.refused("resources/networks/n.json", config=tiny)
    assert re.search(rf"w\.mat has sha256 {hashlib.sha256(OTHER).hexdigest()}.*{SUM}", line)
    (empty_laboratory.sources / "w.mat").write_bytes(BODY)
    empty_laboratory.made("resources/networks/n.json", config=tiny)
    card = read_json(empty_laboratory.directory / "resources/networks/n.json")
    assert card == {"file": "w.mat", "bytes": 300_000, "sha256": SUM}


def with_absent(tiny, server):
    """The tiny table with two datasets and a network that are missing, and one that will be downloaded."""
    url = server.give("soon.npz", serve())
    tiny["datasets"] |= {
        "lost": dataset({"file": "lost.npz", "instructions": "ask the authors"}, {"file": "lost2.npz"}),
        "gone": dataset({"file": "gone.npz", "urls": ["http://example.org/gone.npz"]}),
        "soon": dataset({"file": "soon.npz", "urls": [url]}),
        "unused": dataset({"file": "unused.npz"}),
    }
    tiny["networks"] = {"net": {"architecture": "small", "weights": {"file": "net.mat"}}}
    like, asked = tiny["protocols"]["tiny"], ("lost", "gone", "soon", "deep")
    tiny["protocols"] |= {name: like | {"dataset": name} for name in ("lost", "gone", "soon", "unused")}
    tiny["protocols"]["deep"] = like | {"dataset": "soon", "input": {"kind": "network", "network": "net"}}
    tiny["protocols"]["deep"] |= {"split": like["split"] | {"folds": 2}}
    blocks = [{"protocol": name, "metric": "ap", "bits": [8]} for name in asked]
    tiny["tables"]["tiny"]["blocks"] += blocks
    return tiny


def test_all_that_is_missing_is_told_at_once_and_before_anything_runs(empty_laboratory, tiny, server):
    tiny = with_absent(tiny, server)
    done = empty_laboratory.run("results/tiny.csv", config=tiny)
    assert done.returncode != 0
    text = done.stderr[done.stderr.index("error: ") :]
    assert text.startswith("error: 4 files are missing")
    found = dict(re.findall(r"^  \w+ \w+ needs (\S+),(.*)$", text, re.MULTILINE))
    skipped = {"lost.npz": "lost", "lost2.npz": "lost", "gone.npz": "gone", "net.mat": "deep"}
    assert set(found) == set(skipped)
    assert "ask the authors" in found["lost.npz"] and "TIEBENCH_RESOURCES" not in found["lost.npz"]
    assert "TIEBENCH_RESOURCES" in found["lost2.npz"]
    assert "http://example.org/gone.npz" in found["gone.npz"]
    assert all(f"--config skip='[{name}]'" in found[file] for file, name in skipped.items())
    assert text.rstrip().endswith("--config skip='[gone, lost, deep]'")
    assert "Traceback" not in done.stderr
    assert server.seen == []
    for made in ("resources", "results"):
        assert not (empty_laboratory.directory / made).exists()


def test_what_is_skipped_leaves_empty_columns_with_their_reason(laboratory, prepared, tiny, server):
    """On top of finished runs, which are not made again."""
    tiny = with_absent(tiny, server)
    before = laboratory.stamps("results/runs/**/*")
    options = ["--config", "skip=[lost, gone, soon]"]  # deep is of soon, too
    laboratory.made("results/tiny.csv", config=tiny, options=options)
    assert laboratory.stamps("results/runs/**/*") == before
    assert server.seen == []
    empty = dict.fromkeys((f"{name} ap 8" for name in ("lost", "gone", "soon", "deep")), "")
    assert laboratory.rows("tiny.csv") == [row | empty for row in prepared.rows("tiny.csv")]
    skipped = [row for row in laboratory.rows("tiny.tidy.csv") if row["protocol"] != "tiny"]
    assert len(skipped) == 8
    assert {(row["mean"], row["status"], row["reason"]) for row in skipped} == {("", "refused", "skipped")}
    # In a --configfile it is a list, and a whole table may be left out.
    tiny["skip"] = ["tiny"]
    tiny["tables"]["tiny"]["blocks"] = tiny["tables"]["tiny"]["blocks"][:1]
    laboratory.made("results/tiny.html", config=tiny)
    assert {row["reason"] for row in laboratory.rows("tiny.tidy.csv")} == {"skipped"}
    assert laboratory.stamps("results/runs/**/*") == before


@pytest.mark.parametrize("given", ["[digits]", "['digits',\"digits_levels\"]", "digits"])
def test_skip_may_be_text(given):
    plan = Plan(load(ROOT, {"skip": given}))
    assert {plan.refusal(cell) for cell in plan.cells("quick")} == {"skipped"}


def test_every_source_of_this_checkout_is_downloaded_or_says_how_to_get_it():
    for file in ("datasets", "networks"):
        entries = yaml.safe_load((ROOT / "config" / f"{file}.yaml").read_text())
        for entry in entries.values():
            for one in [*entry.get("sources", []), *filter(None, [entry.get("weights")])]:
                assert mirrors(one) or one.get("instructions"), one["file"]
