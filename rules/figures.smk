"""Stage figures: what the tables say, drawn; each figure goes into the report."""


rule draw_figure:
    input:
        unpack(figure_tables),
    output:
        pdf="results/figures/{figure}.pdf",
        png=report(
            "results/figures/{figure}.png",
            caption="captions/figure.rst",
            category=figure_section,
            labels=figure_label,
        ),
    log:
        "results/logs/draw_figure/{figure}.log",
    benchmark:
        "results/benchmarks/draw_figure/{figure}.tsv"
    wildcard_constraints:
        figure=one_of(figure_names()),
    conda:
        ENVIRONMENT
    threads: 1
    params:
        options=figure_options,
        caption=figure_caption,
        code=figure_code,
    script:
        "../workflow_scripts/draw_figure.py"
