"""Performance profiles: in how many tables a method comes how near to the best."""

from matplotlib.figure import Figure

from reporting.drawing.axes import LINE, NothingToDraw, heading
from reporting.drawing.method_styles import method_style
from reporting.drawing.options import DEFAULT, Options
from reporting.drawing.sheets import PITCH, Section, beside_names, label_axes, names_beside, sheet
from reporting.statistics.summary import TAUS, blocks_of, standing
from reporting.tables.model import Table
from reporting.tables.runs import Results
from tiebench import figure_style as look

TITLE = "Performance profile"
CAPTION = (
    "How to read it. A line says in which share of the tables a method has a score of at least 1 − τ of the "
    "best one: at the left edge, where it is the best itself. Higher is better. A table weighs the same "
    "however many code lengths it has. This is Dolan and Moré's profile of the ratio of the best score to a "
    "method's, 1 / (1 − τ). Names stand in the order of the lines at the right edge."
)
NEEDS = ("per_query",)
REQUIRES = {"protocols": 3, "methods": 2}


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """A line per method, "line-<method>", with names beside it.

    Raises NothingToDraw where fewer than two methods have scores everywhere.
    """
    blocks = blocks_of(table, results)
    if len(blocks) < 2 or len(blocks.everywhere().methods) < 2:
        raise NothingToDraw(f"table {table.name}: no run has scores of two methods in all columns")
    found = standing(blocks)
    left, right = beside_names([[0.5]], map(table.method_title, found.methods))
    width, body = options.width or look.PAGE, max(2.4, PITCH * (len(found.methods) + 0.5))
    lead = f"Share of {len(blocks)} tables in which a method lacks at most τ of the best score."
    with look.styled():
        figure, (((axes,),)) = sheet(
            *heading(options, TITLE, lead),
            [Section("", 1)],
            width=width,
            columns=1,
            body=body,
            left=left,
            right=right,
            above=0.08,
            below=0.36,
            foot=0.06,
        )
        last = float(TAUS[-1])
        axes.set_xlim(0, last)
        axes.set_ylim(-0.02, 1.02)
        look.style_axes(axes, look.ticks_between(0, last, 6), [0, 0.25, 0.5, 0.75, 1])
        label_axes([axes], 1, "τ, share of the best score that is missing", "share of tables")
        axes.set_gid(look.Mark("panel-profile", panel=TITLE, names="τ;share of tables"))
        ends = []
        for place, method in enumerate(found.methods):
            share = found.profile[0, place]
            mark = look.Mark(f"line-{method}", method=method, values=look.point_values(zip(TAUS, share)))
            style = method_style(table, method, 3.4)
            every = (place % 10, 10)
            axes.plot(TAUS, share, **LINE | style, markevery=every, clip_on=False, gid=mark)
            # Of lines that end together the one that was higher before stands above.
            ends.append(((last, share[-1] + 1.04e-6 * share.mean()), method, True))
        names_beside(axes, table, ends, (width - left - right, body), "profile")
    return figure
