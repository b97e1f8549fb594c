"""CIFAR-10 on real features, by the example's own configuration: is what is learned worth it?"""

import os
from pathlib import Path

import forked
import numpy as np
import pandas as pd
import pytest
import yaml
from files import resource

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "cifar10_features.yaml"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A seventh of the features, and less training: a tenth of the time."""
    example = yaml.safe_load(EXAMPLE.read_text())
    name = example["datasets"]["cifar10_mobilenetv2"]["sources"][0]["file"]
    folder = tmp_path_factory.mktemp("cifar10")
    with np.load(resource(name)) as whole:
        few = {key: whole[key] if key == "scale" else whole[key][::7] for key in whole.files}
    np.savez(folder / name, **few)
    # Without the training items, which would be a third of the database.
    split = {"kind": "per_class", "query": 100, "training": 200, "training_in_database": False}
    methods = ["itq", "bre", "machash", "fasthash", "talr_ap", "onehot"]
    block = {"protocol": "seventh", "metric": "ap", "bits": [12]}
    protocol = {"title": "A seventh", "dataset": "cifar10_mobilenetv2", "split": split, "seed": 0}
    protocol |= {"affinity": {"kind": "class"}}
    settings = {
        "bre": {"anchors": 1000, "kernel": "linear", "partners": 0.1},
        "fasthash": {"trees": 200, "depth": 6, "loss": "bre"},
        "machash": {"iterations": 8, "C": 0.03, "dissimilar": 1250, "mu": 0.03},
        "talr_ap": example["tuned"]["cifar10_splits"]["talr_ap"]["by_bits"][12],
    }
    less = {
        "protocols": {"seventh": protocol},
        "methods": {method: {"protocols": {"seventh": given}} for method, given in settings.items()},
        "tables": {
            "seventh": {
                "title": "A seventh",
                "methods": methods,
                "seeds": [0],
                "supervised_bounds": False,
                "blocks": [block],
            }
        },
    }
    (folder / "less.yaml").write_text(yaml.safe_dump(less))
    words = ["--snakefile", ROOT / "Snakefile", "--cores", "2", "--directory", folder / "run"]
    words += ["--configfile", EXAMPLE, folder / "less.yaml", "--", "results/seventh.csv"]
    variables = os.environ | {"TIEBENCH_RESOURCES": str(folder)}
    done = forked.run(["-m", "snakemake", *words], cwd=folder, env=variables, timeout=900)
    assert done.returncode == 0, done.stderr
    return pd.read_csv(folder / "run/results/seventh.csv", index_col="method").iloc[:, 0]


def test_supervised_methods_pass_a_linear_classifiers_codes(table):
    """Below one-hot codes of a logistic regression's classes, nothing is learned that it does not know."""
    assert table[["talr_ap", "machash"]].min() > table["onehot"] + 0.02


def test_the_pairwise_methods_stand_as_in_the_paper(table):
    """Table 1 of He et al.: MACHash and FastHash far above BRE."""
    assert table["bre"] > table["itq"]
    assert table[["machash", "fasthash"]].min() > table["bre"] + 0.1


def test_supervision_pays(table):
    assert table["talr_ap"] > table["itq"] + 0.1
