"""Every shipped table and example is planned as a cluster would run it.

tests/test_documentation.py plans the documented commands as one machine would.
"""

import os
import re
import shlex

import forked
import pytest
import snakemake.cli
import yaml

from workflow.configuration.merged import load, merge
from workflow.plan.runs import Plan

from conftest import ROOT  # isort: skip

pytestmark = pytest.mark.thorough

EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.yaml"))
TABLES = sorted((ROOT / "config" / "tables").glob("*.yaml"))


def example_files(path):
    """What the command at the top of an example names: what it stands on, and itself."""
    named = re.search(r"--configfile ((?:\S+\.yaml )+)", path.read_text(encoding="utf-8"))
    return [ROOT / name for name in named[1].split()]


TUNED = {path.stem.removesuffix("_tuned") for path in EXAMPLES if path.stem.endswith("_tuned")}
# They have no kind of job that others lack, and tests/test_documentation.py plans all of their tables.
PLANNED_THERE = {"cifar10_images", "cifar10_mobilenet", "cifar10_neighbours", "cifar10_small", "reuters"}
PLANNED_THERE |= {"tiny_imagenet_features"}
CASES = {"all tables": []} | {
    f"example {path.stem}": example_files(path) for path in EXAMPLES if path.stem not in TUNED | PLANNED_THERE
}


def overrides(config, tables):
    """Every source is one to be downloaded, so that planning reads no data. Tables have one seed and their
    longest codes: more are more of the same jobs, and Snakemake compares all pairs of them for a plan with
    groups.
    """
    found = load(ROOT, config)
    changes = {"datasets": {}, "networks": {}, "tables": {}}
    for name, table in tables.items():
        blocks = [block | {"bits": block["bits"][-1:]} for block in table["blocks"]]
        changes["tables"][name] = {"seeds": found["tables"][name]["seeds"][:1], "blocks": blocks}
    address = {"sha256": "0" * 64, "urls": ["https://example.org/file"]}
    for name, entry in found["datasets"].items():
        if entry["sources"]:
            changes["datasets"][name] = {
                "sources": [
                    {"file": f"absent/{name}/{index}"} | address for index in range(len(entry["sources"]))
                ]
            }
    for name, entry in found["networks"].items():
        if entry["weights"]:
            changes["networks"][name] = {"weights": {"file": f"absent/{name}"} | address}
    return changes


def slurm_profile(folder):
    """profiles/slurm without its executor, which is a package of its own: groups are formed the same."""
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text())
    assert profile.pop("executor") == "slurm"
    (folder / "slurm").mkdir()
    (folder / "slurm" / "config.yaml").write_text(yaml.safe_dump(profile))
    return ["--workflow-profile", str(folder / "slurm")]


def test_a_cluster_has_no_limits_of_the_machine_that_submits(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    snakemake (--workflow-profile profiles/slurm .*?)$\n\n", page, re.M | re.S)
    words = shlex.split(command.replace("\\\n", " "))
    _, options = snakemake.cli.parse_args([*slurm_profile(tmp_path), *words[2:]])
    assert {name: of.value for name, of in options.resources.items()} == {"mem_mb": 8000}
    assert options.cores is None and options.jobs == 100
    assert "mem_mb=2000*2**(attempt-1)" in options.default_resources.args


def planned(folder, targets, files, options):
    program = ["-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--directory", folder / "run"]
    arguments = [*program, "--dry-run", "--cores", "2", *options, "--configfile", *files, "--", *targets]
    done = forked.run(arguments, cwd=folder, env=os.environ | {"TIEBENCH_RESOURCES": ""}, timeout=900)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("files", CASES.values(), ids=CASES)
def test_every_shipped_table_and_example_can_be_planned(tmp_path, files):
    """On a cluster: such a plan has the jobs of one machine, in groups."""
    config = {}
    for path in files:
        config = merge(config, yaml.safe_load(path.read_text()))
    if files:  # the tables of the example itself, unless it has settings alone
        tables = yaml.safe_load(files[-1].read_text()).get("tables", config["tables"])
    else:
        tables = {path.stem: yaml.safe_load(path.read_text()) for path in TABLES}
    names = sorted(tables)
    file = tmp_path / "overrides.yaml"
    file.write_text(yaml.safe_dump(overrides(config, tables)))
    targets = [f"results/{name}.html" for name in names]
    listed = planned(tmp_path, targets, [*files, file], slurm_profile(tmp_path))
    plan = Plan(load(ROOT, config))
    cells = [cell for name in names for cell in plan.served_cells(name)]
    for name in names:
        assert f": Page results/{name}.html\n" in listed
    members = plan.configuration.members
    for protocol, method in {(fold, cell.method) for cell in cells for fold in members(cell.protocol)}:
        taken = plan["protocols"][protocol]["codes_of"] is not None
        assert f": {protocol}: {'codes of' if taken else 'train'} {method}, " in listed
    of_images = [cell for cell in cells if plan.protocol_network(cell.protocol)]
    if any(plan.end_to_end(cell.protocol, cell.method) is None for cell in of_images):
        assert "extract_features" in listed and "normalise_features" in listed
    if any(plan.network_weights(plan.protocol_network(cell.protocol)) for cell in of_images):
        assert "check_weights" in listed and "download" in listed
