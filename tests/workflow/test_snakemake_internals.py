"""What the rules take from Snakemake's own objects is there in the installed version and does its work."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
# A job with `run:` runs in a process of its own, which reads the Snakefile again.
SNAKEFILE = f"""
import json, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from workflow import snakemake_internals

def note(**values):
    with open("notes", "a") as file:
        print(json.dumps(values, default=str), file=file)

note(plans=snakemake_internals.plans(workflow))

def nothing(wildcards):
    if snakemake_internals.plans(workflow):
        note(
            configfiles=snakemake_internals.given_configfiles(workflow),
            config=dict(snakemake_internals.given_config(workflow)),
            files=snakemake_internals.target_files(workflow),
        )
        snakemake_internals.ungroup(workflow)
    return []

def producers(wildcards):
    index = workflow.dag.output_index
    snakemake_internals.index_products(workflow)
    ours = workflow.dag.output_index
    found = {{}}
    for file in {{files}}:
        theirs = index.match_producers(file)
        assert ours.match_producers(file) == theirs, file
        found[file] = sorted(rule.name for rule in theirs)
    note(index=type(ours).__name__, producers=found)
    return []

def groups(wildcards):
    note(groups=[job.group for job in workflow.dag.jobs if job.rule.name == "make"])

onstart:
    limit = workflow.scheduler.job_rate_limiter
    snakemake_internals.stop_submission_timers(workflow)
    note(here=snakemake_internals.runs_here(workflow))
    note(limited=[limit is not None, workflow.scheduler.job_rate_limiter is not None])

rule all:
    input: nothing, producers, "a", "b"

rule make:
    output: "{{name}}"
    wildcard_constraints: name="[ab]"
    group: "together"
    params: groups
    run: Path(output[0]).touch()

rule runs:
    output: expand("runs/p/{{{{method}}}}/8/{{s}}/{{f}}.npz", s=(1, 2), f=("codes", "model"))
    log: "logs/{{method}}.log"
    benchmark: "logs/{{method}}.tsv"
    wildcard_constraints: method="lsh|itq"
    shell: "exit 1"

rule run:
    output: "runs/{{p}}/{{method}}/{{b}}/{{s}}/codes.npz"
    wildcard_constraints: p="(?!p/(?:lsh|itq)/8/[12]/)[a-z]+"
    shell: "exit 1"

rule figure:
    output: "runs/tie_{{figure}}_{{table}}.svg", "runs/tie_{{figure}}_{{table}}.png"
    wildcard_constraints: figure="a|b"
    shell: "exit 1"

rule twice:
    output: "runs/{{x}}/{{x}}"
    shell: "exit 1"

rule other:
    output: "runs/{{unknown}}", "{{unknown}}/other"
    wildcard_constraints: unknown=".*t.*"
    shell: "exit 1"
"""
# File -> rules that make it.
PRODUCERS = {
    "a": ["make"],
    "c": [],
    "": [],
    "runs/p/lsh/8/1/codes.npz": ["runs"],
    "runs/p/lsh/8/2/model.npz": ["runs"],
    "runs/p/lsh/8/3/codes.npz": ["run"],
    "runs/p/sign/8/1/codes.npz": ["run"],
    "runs/q/itq/8/1/codes.npz": ["other", "run"],
    "logs/lsh.log": ["runs"],
    "logs/itq.tsv": ["runs"],
    "logs/sign.log": [],
    "runs/tie_a_t.svg": ["figure", "other"],
    "runs/tie_c_t.svg": ["other"],
    "runs/tie_a_t.pdf": ["other"],
    "runs/x/x": ["twice"],
    "runs/x/y": [],
    "t/other": ["other"],
    "other": [],
    "/a": [],
}
SNAKEFILE = SNAKEFILE.replace("{files}", repr(list(PRODUCERS)))
# Two rules, the output of one inside that of the other.
INSIDE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from workflow import snakemake_internals

def skip(wildcards):
    snakemake_internals.skip_directory_check(workflow)
    return []

rule all:
    input: FUNCTION, "x", "x/inside"
rule inside:
    output: "x/inside"
    shell: "exit 1"
rule outside:
    output: OUTPUT
    shell: "exit 1"
"""


@pytest.fixture(scope="module")
def noted(tmp_path_factory):
    """What the Snakefile notes, key -> values: of a run, a dry run, and one with components of groups."""
    place = tmp_path_factory.mktemp("internals")
    (place / "Snakefile").write_text(SNAKEFILE)
    (place / "given.json").write_text('{"x": 1}')

    def run(*options):
        (place / "notes").unlink(missing_ok=True)
        command = [sys.executable, "-m", "snakemake", "--cores", "1", *options]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = {}
        for line in (place / "notes").read_text().splitlines():
            for key, value in json.loads(line).items():
                found.setdefault(key, []).append(value)
        return found

    dry = run("-n", "--configfile", "given.json", "--config", "more=2")
    grouped = run("-n", "--group-components", "together=2", "--", "all", "a")
    return run(), dry, grouped


def test_files_values_and_targets_of_the_command_line(noted):
    real, dry, grouped = noted
    assert [Path(path).name for path in dry["configfiles"][0]] == ["given.json"]
    assert dry["config"][0] == {"more": 2}
    assert (real["configfiles"][0], real["config"][0]) == ([], {})
    assert real["files"][0] == ["a", "b"]  # of the first rule
    assert grouped["files"][0] == ["a", "a", "b"]


def test_one_process_plans_and_starts_and_those_of_jobs_do_not(noted):
    """Without timers of submissions: there is a limit by default, and jobs run without one."""
    real, dry, _ = noted
    assert (real["plans"], dry["plans"]) == ([True, False, False], [True])
    assert (real["here"], real["limited"]) == ([True], [[True, False]])


def test_groups_are_forgotten_unless_they_are_asked_for(noted):
    _, dry, grouped = noted
    assert dry["groups"][-1] == [None, None]
    assert grouped["groups"][-1] == ["together", "together"]


def test_a_file_has_the_producers_that_snakemake_finds(noted):
    _, dry, _ = noted
    assert dry["index"] == ["Producers"]
    assert dry["producers"] == [PRODUCERS]


@pytest.mark.parametrize(
    ("function", "output", "refused"),
    [("[]", '"x"', True), ("skip", '"x"', False), ("skip", 'directory("x")', True)],
)
def test_outputs_inside_of_outputs_are_looked_for_only_beside_folders(tmp_path, function, output, refused):
    (tmp_path / "Snakefile").write_text(INSIDE.replace("FUNCTION", function).replace("OUTPUT", output))
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "-n"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ("ChildIOException" in done.stdout) == refused == (done.returncode != 0), done.stdout


def test_rules_reach_into_snakemake_nowhere_else():
    places = [ROOT / "Snakefile", *(ROOT / "workflow" / "rules").glob("*.smk")]
    assert len(places) > 5
    text = "\n".join(path.read_text(encoding="utf-8") for path in places)
    code = re.sub(r'"[^"\n]*"|#.*|^from workflow.*$', "", text, flags=re.MULTILINE)
    assert set(re.findall(r"\bworkflow\.(\w+)", code)) == {"basedir"}
    assert set(re.findall(r"\((workflow)\)", code)) == {"workflow"}
