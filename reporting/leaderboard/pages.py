"""Generated parts of Markdown pages: what the leaderboard has, or what a benchmark has measured, between a
marker and its end; the picture of a link below a marker; numbers of sentences before a comment.

    <!-- leaderboard:
    protocol: cifar10_seen
    columns: [score]
    -->

    the table, or the verdicts on claims, that these settings ask for

    <!-- end -->

    <!-- leaderboard: {figure: tie_ranges, protocol: digits} -->

    ![what it shows](images/tie_ranges_digits.png)

    AP is 0.551<!-- mean digits ap 12 talr_ap -->.

The settings are YAML; generated-parts.md describes them. Markers in blocks of code are not read.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from reporting.leaderboard import measured, pictures, quantities, summary_text, tables, verdicts
from reporting.leaderboard.boards import Boards
from reporting.leaderboard.settings import parse_yaml
from tiebench.files import write_text

MARKER = re.compile(r"^<!-- leaderboard:(.*?)-->[ \t]*$", re.DOTALL | re.MULTILINE)
END = re.compile(r"^<!-- end -->[ \t]*$", re.MULTILINE)
FENCED = re.compile(r"^(```+|~~~+).*?^\1[`~]*[ \t]*$", re.DOTALL | re.MULTILINE)
IMAGE = re.compile(r"\s*!\[[^\]]*\]\(([^()\s]+)\)")
PAGES = ("README.md", "docs/**/*.md")


@dataclass(frozen=True)
class Region:
    """A generated part of a page: the line of its marker, its settings, and the place of what they make."""

    line: int
    settings: dict
    start: int
    end: int


@dataclass(frozen=True)
class Page:
    """A page as it is and as it should be. regions: (region, text now, text as it should be)."""

    path: Path
    regions: Sequence[tuple[Region, str, str]]
    pictures: Sequence[tuple[Region, "pictures.Picture"]]
    text: str


def find(root: str | Path = ".") -> list[Path]:
    """README.md and the pages of docs/ and of its folders."""
    return [path for pattern in PAGES for path in sorted(Path(root).glob(pattern))]


def regions(text: str) -> list[Region]:
    """The generated parts of a page, in its order. Their settings are those of the marker; `figure` and
    `image` of a picture, whose link is written by hand; `number`, the words of one.

    Raises ValueError, naming the line, for a marker that has no end, no image or no YAML.
    """
    plain = FENCED.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)
    found = []
    for marker in MARKER.finditer(plain):
        line = text.count("\n", 0, marker.start()) + 1
        settings = _settings(marker[1], line)
        if "figure" in settings:
            if not (image := IMAGE.match(plain, marker.end())):
                raise ValueError(f"line {line}: there is no ![words](image.png) below the marker of a figure")
            found.append(Region(line, {"figure": settings, "image": image[1]}, marker.end(), marker.end()))
            continue
        end = END.search(plain, marker.end())
        following = MARKER.search(plain, marker.end())
        if end is None or (following is not None and following.start() < end.start()):
            raise ValueError(f"line {line}: there is no <!-- end --> after the marker")
        found.append(Region(line, settings, marker.end() + 1, end.start()))
    for place in quantities.PLACE.finditer(plain):
        line = text.count("\n", 0, place.start()) + 1
        found.append(Region(line, {"number": place[2]}, place.start(1), place.end(1)))
    return sorted(found, key=lambda region: region.start)


def _settings(text: str, line: int) -> dict:
    try:
        settings = parse_yaml(text)
    except yaml.YAMLError as error:
        raise ValueError(f"line {line}: the marker is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(settings, dict):
        example = "<!-- leaderboard: {protocol: digits} -->"
        raise ValueError(f"line {line}: the marker must hold settings, as in {example}")
    return settings


def read(path: Path, boards: Boards) -> Page:
    """A page with what its regions should be.

    Raises ValueError, one line that names page and line, for a marker that does not make anything.
    """
    text, place, pieces = path.read_text(encoding="utf-8"), 0, []
    made: list[tuple[Region, str, str]] = []
    drawn: list[tuple[Region, pictures.Picture]] = []
    try:
        found = regions(text)
    except ValueError as error:
        raise ValueError(f"{path}, {error}") from error
    for region in found:
        now = text[region.start : region.end]
        try:
            if "figure" in region.settings:
                drawn.append((region, pictures.parse(**region.settings, folder=path.parent, boards=boards)))
                content = ""
            elif "number" in region.settings:
                content = quantities.render(region.settings["number"], now, boards)
            else:
                content = f"\n{_part(region.settings, path.parent, boards)}\n\n"
        except ValueError as error:
            raise ValueError(f"{path}, line {region.line}: {error}") from error
        made.append((region, now, content))
        pieces += [text[place : region.start], content]
        place = region.end
    return Page(path, made, drawn, "".join([*pieces, text[place:]]))


def _part(settings: dict, folder: Path, boards: Boards) -> str:
    """What stands between a marker and its end."""
    if "claims" in settings:
        return verdicts.render(settings, folder, boards)
    if "measured" in settings:
        return measured.render(settings, folder)
    if "summary" in settings:
        return summary_text.render(settings, boards)
    return tables.render(settings, folder, boards)


def outdated(paths: Iterable[Path], boards: Boards) -> list[str]:
    """What differs from the leaderboard, a line for each region and figure; pages are read, not written."""
    lines = []
    for path in paths:
        page = read(path, boards)
        for region, now, wanted in page.regions:
            lines += [f"{path}, line {region.line}: the text differs from the leaderboard"] * (now != wanted)
        for region, picture in page.pictures:
            lines += [f"{path}, line {region.line}: {fault}" for fault in [picture.fault()] if fault]
    return lines


def rewrite(paths: Iterable[Path], boards: Boards) -> list[Path]:
    """Write the pages and the figures that differ from the leaderboard; the paths of what was written.

    All pages are read before anything is written.
    """
    written = []
    for page in [read(path, boards) for path in paths]:
        for _, picture in page.pictures:
            if picture.fault():
                picture.write()
                written.append(picture.path)
        if any(now != wanted for _, now, wanted in page.regions):
            write_text(page.path, page.text)
            written.append(page.path)
    return written
