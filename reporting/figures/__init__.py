"""Figures of a table, one module each: <module>.py makes `results/figures/<module>_<table>.pdf`.

A module has
* `TITLE`, `CAPTION`: plain text for the page that shows the figure (AP_T and NDCG_T are set with subscripts);
* `NEEDS`: what it reads of records besides their scores: some of "training", "per_query";
* `applies(table)`: whether a table asks for anything that it can draw;
* `draw(table, records)`: a matplotlib Figure, from `reporting.records.table_records`.
"""
