"""What every loader refuses alike, in its description and in loading, and writes nothing."""

import pytest

from datasets import loaders
from tests.tiebench.refusals import refused


@pytest.mark.parametrize("name", loaders.KIND.find())
def test_unknown_options_and_sources_that_are_not_there(name, tmp_path):
    loader, sources, folder = loaders.KIND.named(name).load(), [tmp_path / "nothing.npz"], tmp_path / "out"
    folder.mkdir()
    kind, message = FileNotFoundError, r"nothing\.npz: no such"
    if name == "digits":
        kind, message = ValueError, "digits: takes no source"
    for call in (loader.describe, lambda sources, **options: loader.load(sources, folder, **options)):
        with refused(f"{name}: unknown option 'optoin'"):
            call(sources, optoin=3)
        with pytest.raises(kind, match=message):
            call(sources)
    assert not list(folder.iterdir())
