"""Everything of a table that is text, by the ending of its file."""

from collections.abc import Iterable, Mapping

import pandas as pd

from reporting import frames
from reporting.claims import verdicts
from reporting.printed import latex, markdown
from reporting.printed.cells import cells
from reporting.tables.model import Table

ENDINGS = (".csv", ".tidy.csv", ".statistics.csv", ".claims.csv", ".health.csv", ".md", ".tex")


def table_files(
    table: Table,
    tidy: pd.DataFrame,
    compared: pd.DataFrame,
    judged: Iterable[Mapping],
    health: pd.DataFrame,
) -> dict[str, str]:
    """Ending -> text for each of ENDINGS.

    tidy: of `frames.tidy`; compared: of `columns.comparisons`; judged: of `verdicts.judge`; health: of
    `health.frame`.
    """
    judged, printed = list(judged), cells(tidy, table, compared)
    texts = (
        frames.to_csv(frames.wide(tidy, table)),
        frames.to_csv(tidy),
        frames.to_csv(compared),
        frames.to_csv(verdicts.to_frame(judged)),
        frames.to_csv(health),
        markdown.to_markdown(printed) + markdown.claims_to_markdown(judged),
        latex.to_latex(printed),
    )
    return dict(zip(ENDINGS, texts, strict=True))
