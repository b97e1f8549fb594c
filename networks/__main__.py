"""The command `python -m networks`: features by models of other libraries. See docs/make-features.md."""

import argparse
import fnmatch
import sys
from collections.abc import Sequence
from pathlib import Path

from networks import backbones
from networks.backbones import BackboneError
from tiebench.command_line import Parser, Reads, Writes, word
from tiebench.messages import nearest, one_line

EXAMPLES = """examples:
  python -m networks features photographs/ --model timm/resnet18.a1_in1k --output photographs.npz
  python -m networks features corpus.jsonl --model sentence-transformers/all-MiniLM-L6-v2 --output corpus.npz
  python -m networks models timm "vit_*"

Sources: a folder, tar or zip of images; texts in a .txt, .tsv or .jsonl file.
The same command resumes after an interruption. At the end it prints the
configuration that makes the file a dataset.
"""


def parser() -> Parser:
    """The parser of all commands."""
    top = Parser(
        prog="python -m networks",
        description="Features of images or texts by pretrained models of other libraries.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add = (one := commands.add_parser("features", help="vectors of images or texts into a file")).add_argument
    sources = "folder, tar or zip of images; .txt, .tsv or .jsonl of texts"
    add("source", metavar="SOURCE", type=Reads("*"), help=sources)
    add("--model", required=True, metavar="LIBRARY/NAME", type=word, help="as timm/resnet18; see `models`")
    written = Writes(also=(".partial", ".progress"))
    add("--output", required=True, metavar="FILE", type=written, help="file to write, .npz")
    weights = one.add_mutually_exclusive_group()
    own = "weights from a file (default: the library's download)"
    weights.add_argument("--weights", metavar="FILE", type=Reads(), help=own)
    weights.add_argument("--random-weights", metavar="SEED", type=_number(0), help="random, for tests")
    add("--batch-size", metavar="N", type=_number(1), default=64, help="items a batch (default 64)")
    add("--device", type=word, default="auto", help="cpu, cuda or auto (default)")
    types = ("float32", "float16")
    add("--dtype", choices=types, default="float32", help="of the vectors in the file (default float32)")
    add = one.add_argument_group("images").add_argument
    paths = "where class and split are in paths, as {split}/{class}/{name} (default {class}/{name})"
    add("--paths", metavar="PATTERN", type=word, help=paths)
    add("--corrupt", choices=("error", "skip"), help="images that cannot be decoded (default error)")
    add = one.add_argument_group("models, where `models` lists the option").add_argument
    add("--pool", metavar="NAME", type=word, help="how outputs become one vector")
    add("--prefix", metavar="TEXT", type=word, help="text before every text, as 'query: '")
    add("--max-length", metavar="N", type=_number(1), help="tokens after which texts are cut")
    add = commands.add_parser("models", help="libraries with options, or a library's models").add_argument
    add("library", nargs="?", metavar="LIBRARY", type=word, help="a library; all by default")
    add("pattern", nargs="?", default="*", metavar="PATTERN", type=word, help='part of names, as "vit_*"')
    return top


def _number(least):
    def whole(text):
        number = int(text)
        if number < least:
            raise ValueError
        return number

    whole.__name__ = f"whole number from {least}"  # argparse names it in its message
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0, 1 after one line on standard error, 130 on Ctrl-C."""
    options = parser().parse_args(arguments)
    try:
        COMMANDS[options.command](options)
    except BrokenPipeError:  # the reader, say `head`, has enough
        sys.stderr.close()
    except (ValueError, OSError) as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; the same command resumes", file=sys.stderr)
        return 130
    return 0


def _features(options):
    from networks.backbones import _configuration, _extraction, _sources

    output = Path(options.output)
    if output.suffix != ".npz":
        raise ValueError(f"{output}: the file to write must end in .npz")
    backbones.check_installed(backbones.find(options.model)[0])  # before anything is read
    source, about_images = Path(options.source), {"paths": options.paths, "corrupt": options.corrupt}
    about_images = {name: value for name, value in about_images.items() if value is not None}
    if _sources.is_text(source):
        if about_images:
            raise ValueError(f"--{next(iter(about_images))} is an option of images, and {source} holds texts")
        items: _sources.Images | _sources.Texts = _sources.Texts(source)
    elif source.is_file() and source.suffix in (".csv", ".json", ".md", ".parquet"):
        close = nearest(source.suffix, _sources.ENDINGS, 1) or [".tsv"]
        raise ValueError(f"{source}: texts are read from {', '.join(_sources.ENDINGS)}; write {close[0]}")
    else:
        items = _sources.Images(source, **about_images)
    about_model = {"pool": options.pool, "prefix": options.prefix, "max_length": options.max_length}
    about_model = {name: value for name, value in about_model.items() if value is not None}
    weights = (options.weights, options.random_weights)
    backbone = backbones.load(options.model, items.kind, *weights, **about_model)
    output.parent.mkdir(parents=True, exist_ok=True)
    given = (options.batch_size, options.device, options.dtype, _progress(items.kind))
    left_out = _extraction.write_features(output, options.model, backbone, items, *given)
    if left_out:
        shown = ", ".join(left_out[:3]) + (", ..." if len(left_out) > 3 else "")
        count = f"{len(left_out)} of {items.count}"
        print(f"left out, cannot be decoded: {count} images: {shown}", file=sys.stderr)
    print(f"{output}: {items.count - len(left_out)} {items.kind}", file=sys.stderr)
    print(_configuration.configuration(output), end="")


def _progress(kind):
    """A function that prints what is done, how fast, and how long the rest takes."""

    def report(record):
        new = record["images"] - record["resumed"]
        rate = new / max(record["seconds"], 1e-9)
        words = f"{record['images']:,} of {record['of']:,} {kind}"
        if new:
            words += f", {rate:,.0f} a second"
        if new and record["images"] < record["of"]:
            words += f", {(record['of'] - record['images']) / rate:,.0f} s left"
        if record["resumed"]:
            words += f" ({record['resumed']:,} were there)"
        print(words, file=sys.stderr, flush=True)

    return report


def _models(options):
    if options.library is None:
        for name, library in backbones.KIND.find().items():
            there = all(map(backbones.installed, library.said.packages))
            print(f"{name}: {', '.join(library.said.items)}; {'installed' if there else 'not installed'}")
            for option, words in library.said.options.items():
                print(f"  --{option.replace('_', '-')}: {words}")
        return
    library, _ = backbones.find(f"{options.library}/any")
    backbones.check_installed(library)
    names = library.load().models()
    if not names:
        raise BackboneError(
            f"{options.library} knows no list of models: they are names on a server, or folders"
        )
    found = fnmatch.filter(names, options.pattern)
    if not found:
        raise BackboneError(f"{options.library} has no model that matches '{options.pattern}'")
    print("\n".join(f"{options.library}/{name}" for name in found))


COMMANDS = {"features": _features, "models": _models}

if __name__ == "__main__":
    sys.exit(main())
