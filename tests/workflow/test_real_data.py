"""CIFAR-10 on real features, by the example's own configuration: is what is learned worth it?"""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from files import resource

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "cifar10_features.yaml"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    name = yaml.safe_load(EXAMPLE.read_text())["datasets"]["cifar10_mobilenetv2"]["sources"][0]["file"]
    resource(name)
    folder = tmp_path_factory.mktemp("cifar10")
    protocol = {"split": {"kind": "per_class", "query": 100, "training": 200}}  # of 500: a third of the time
    table = {
        "methods": ["itq", "bre", "machash", "fasthash", "talr_ap", "onehot"],
        "seeds": [0],
        "supervised_bounds": False,
        "blocks": [{"protocol": "cifar10_features", "metric": "ap", "bits": [12]}],
    }
    less = {"protocols": {"cifar10_features": protocol}, "tables": {"cifar10_features": table}}
    (folder / "less.yaml").write_text(yaml.safe_dump(less))
    subprocess.run(
        [
            *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"),
            *("--directory", str(folder), "--configfile", str(EXAMPLE), str(folder / "less.yaml")),
            *("--", "results/cifar10_features.csv"),
        ],
        check=True,
    )
    return pd.read_csv(folder / "results" / "cifar10_features.csv", index_col="method").iloc[:, 0]


def test_supervised_methods_pass_a_linear_classifiers_codes(table):
    """Below one-hot codes of a logistic regression's classes, nothing is learned that it does not know."""
    assert table[["talr_ap", "machash"]].min() > table["onehot"] + 0.02


def test_the_pairwise_methods_stand_as_in_the_paper(table):
    """Table 1 of He et al.: MACHash and FastHash far above BRE."""
    assert table["bre"] > table["itq"]
    assert table[["machash", "fasthash"]].min() > table["bre"] + 0.1


def test_supervision_pays(table):
    assert table["talr_ap"] > table["itq"] + 0.1
