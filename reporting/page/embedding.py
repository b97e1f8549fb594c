"""Files and figures in a form that can stand inside of an HTML page."""

import base64
import gzip
import html
import io
import re
from collections import Counter
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup
from PIL import Image

from reporting.page.colours import themed
from reporting.page.templates import anchor
from tiebench.figure_style import PAGE

MEDIA = {".csv": "text/csv", ".md": "text/markdown", ".tex": "application/x-tex"}
# Characters that may stand as they are in a data: URL inside a quoted attribute.
PLAIN_IN_URL = " !$()*+,/:;=?@[]|"


def data_url(name: str, text: str) -> str:
    """A file as a data: URL of its bytes in UTF-8, of the media type that its name's ending says."""
    media = MEDIA.get(Path(name).suffix, "text/plain")
    # A run of spaces at the end of a URL would be cut off.
    content = re.sub(r" +$", lambda run: "%20" * len(run[0]), quote(text, safe=PLAIN_IN_URL))
    return f"data:{media};charset=utf-8,{content}"


def packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def smallest_svg(svg: str, png: bytes) -> str:
    """A figure of many pictures as an SVG to embed in a page: unchanged, or compressed if that is smaller.

    svg, png: two files of one figure. Photographs in an SVG are PNG; compressed, the whole figure is one WebP
    picture without text, but a fraction of the size.
    """
    with Image.open(io.BytesIO(png)) as drawn:
        buffer = io.BytesIO()
        drawn.convert("RGB").save(buffer, "WEBP", quality=75)
        width, height = drawn.size
    content = base64.b64encode(buffer.getvalue()).decode()
    compressed = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        f'<image width="{width}" height="{height}" href="data:image/webp;base64,{content}"/></svg>\n'
    )
    return min(svg, compressed, key=len)


def inline_svg(text: str, name: str, label: str, ids: str) -> Markup:
    """An SVG file as an element to stand in an HTML page, beside others; `label` says what it shows.

    ids: what its own ids begin with; every marker repeats the id of its outline, so a short one.

    XML prolog, document type, metadata, comments and ids that nothing refers to go; the other ids, and every
    reference to one, become `name` and a number; the style sheet inside applies to this figure alone; black,
    white, the greys and colours too dark for it follow the page's colour scheme, see `colours`; places are
    cut to hundredths of a point; what is repeated or says nothing is left out: groups without attributes,
    pictures, letters of paths, styles, a font that all text has; the size is left to the page.

    Raises ValueError where `text` has no <svg> element with a viewBox.
    """
    start = re.search(r'<svg\b[^>]* viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', text)
    if start is None:
        raise ValueError(f"figure {name}: not an SVG file")
    width, height = start.groups()
    prefix = f"figure-{anchor(name)}"
    text = text[start.start() :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"\s*<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r">\s+<", "><", text)
    asked = dict.fromkeys(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    short = {name: f"{ids}-{number}" for number, name in enumerate(asked)}
    text = re.sub(
        r'\s+id="([^"]+)"', lambda found: f' id="{short[found[1]]}"' if found[1] in short else "", text
    )
    text = re.sub(
        r'\b(?:xlink:)?href="#([^"]+)"|url\(#([^)]+)\)',
        lambda found: f'href="#{short[found[1]]}"' if found[1] else f"url(#{short[found[2]]})",
        text,
    )
    text = re.sub(r'(<style type="text/css">)\s*\*', rf"\1#{prefix} *", text)
    text = re.sub(
        r' (?:transform|points)="[^"]*"', lambda found: re.sub(r"(\.\d\d)\d+", r"\1", found[0]), text
    )
    text = re.sub(r' ([xy])="([\d.-]+)"', lambda found: f' {found[1]}="{_number(float(found[2]), 1)}"', text)
    # Outlines of markers, which have ids, are small.
    text = re.sub(r'<path d="([^"]*)"', lambda found: f'<path d="{_compact(found[1], 1)}"', text)
    text = re.sub(
        r'(<path id="[^"]*") d="([^"]*)"', lambda found: f'{found[1]} d="{_compact(found[2], 2)}"', text
    )
    text = re.sub(r' transform="rotate\(-?0 [^"]*"', "", text)
    text = re.sub(r' style="([^"]*)"', lambda found: f' style="{_short_style(found[1])}"', text)
    text = _without_bare_groups(text)
    fonts = set(re.findall(r'font-family:[^;"]*', text))
    if len(fonts) == 1:
        (font,) = fonts
        text = re.sub(rf"(?<=[\";]){re.escape(font)};?", "", text)
    else:
        font = ""
    text = re.sub(r"(?<=:)\s*(#[0-9a-f]{6})\b", lambda found: themed(found[1]), text)
    text = _with_classes(_shared_pictures(text, ids), f"#{prefix}")
    _, rest = text.split(">", 1)
    label = html.escape(label, quote=True)
    # A figure that is narrower than the page's keeps the size of its text.
    part = float(width) / (72 * PAGE)
    share = "" if part >= 1 else f";--share:{part:.3f}"
    own_style = f' style="{(font + share).lstrip(";")}"' if font or share else ""
    return Markup(
        f'<svg id="{prefix}" viewBox="0 0 {width} {height}" role="img" aria-label="{label}"{own_style}>'
        f"{rest.rstrip()}"
    )


def _number(value: float, decimals: int) -> str:
    """A number in few characters: ".5", "-3", "0"."""
    text = f"{value:.{decimals}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    text = re.sub(r"^(-?)0\.", r"\1.", text)
    return "0" if text in ("-0", "") else text


def _compact(path: str, decimals: int) -> str:
    """The `d` of a path in few characters: lines as steps from point to point, whose errors do not add up.

    Curves keep their places, with every letter only where it is needed.
    """
    pieces = re.findall(r"([A-Za-z])([^A-Za-z]*)", path)
    if not {letter for letter, _ in pieces} <= set("MLz"):
        return "".join(letter + " ".join(numbers.split()) for letter, numbers in pieces)
    text, place, start, unit = "", (0, 0), (0, 0), 10**decimals
    for letter, numbers in pieces:
        if letter == "z":
            text, place = text + "z", start
            continue
        values = [round(unit * float(number)) for number in numbers.split()]
        for point in zip(values[::2], values[1::2]):
            if letter == "M":
                text, start, letter = text + "m", point, "L"
            elif text.endswith("z"):
                text += "l"
            for before, value in zip(place, point):
                step = _number((value - before) / unit, decimals)
                text += step if step[0] == "-" or text[-1].isalpha() else f" {step}"
            place = point
    return text


def _shared_pictures(text: str, own: str) -> str:
    """An SVG with each picture that it repeats once, and references to it."""
    picture = r'<image ((?:xlink:)?href="data:[^"]*"[^>]*?)( transform="[^"]*")([^>]*)/>'
    counts = Counter(found[1] + found[3] for found in re.finditer(picture, text))
    ids = {one: f"{own}-p{at}" for at, (one, count) in enumerate(counts.items()) if count > 1}
    shown = set()

    def shared(found):
        if (one := found[1] + found[3]) not in ids:
            return found[0]
        use = f'<use href="#{ids[one]}"{found[2]}/>'
        if one in shown:
            return use
        shown.add(one)
        return f'<defs><image id="{ids[one]}" {one}/></defs>{use}'

    return re.sub(picture, shared, text)


def _with_classes(text: str, selector: str) -> str:
    """An SVG with a class for each style and clip path that it repeats; selector: of the figure."""

    def parts(tag: str) -> tuple[str, str]:
        clip = re.search(r' clip-path="([^"]*)"', tag)
        style = re.search(r' style="([^"]*)"', tag)
        words = [f"clip-path:{clip[1]}" if clip else "", style[1] if style else ""]
        for found in filter(None, (clip, style)):
            tag = tag.replace(found[0], "", 1)
        return tag, ";".join(filter(None, words))

    opening, rest = text.split(">", 1)
    counts = Counter(parts(tag)[1] for tag in re.findall(r"<[a-z][^<>]*>", rest))
    names = {style: f"s{at}" for at, (style, count) in enumerate(counts.most_common()) if style and count > 1}

    def shorter(found):
        tag, style = parts(found[0])
        if style not in names:
            return found[0]
        return re.sub(r"(/?>)$", rf' class="{names[style]}"\1', tag)

    rest = re.sub(r"<[a-z][^<>]*>", shorter, rest)
    rules = "".join(f"{selector} .{name}{{{html.unescape(style)}}}" for style, name in names.items())
    if not rules:
        return text
    if "</style>" in rest:
        return f"{opening}>{rest.replace('</style>', f'{rules}</style>', 1)}"
    return f"{opening}><style>{rules}</style>{rest}"


def _short_style(style: str) -> str:
    """A style without spaces and without what is so anyway."""
    parts = [re.sub(r":\s+", ":", part.strip()) for part in style.split(";")]
    return ";".join(part for part in parts if part and part != "stroke-dashoffset:0")


def _without_bare_groups(text: str) -> str:
    """The content of groups that have no attribute, in their place."""
    parts, kept = [], []
    for part in re.split(r"(<g\b[^>]*>|</g>)", text):
        if re.fullmatch(r"<g\b[^>]*(?<!/)>", part):
            kept.append(part != "<g>")
            if not kept[-1]:
                continue
        elif part == "</g>" and not kept.pop():
            continue
        parts.append(part)
    return "".join(parts)
