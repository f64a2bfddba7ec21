"""layerwise: which layer holds the best representation, and can one know it without labels?"""

from snakemake.utils import min_version

min_version("9.0")


configfile: "config.yaml"


report: "rules/captions/study.rst"


include: "rules/common.smk"
include: "rules/models.smk"
include: "rules/data.smk"
include: "rules/activations.smk"
include: "rules/metrics.smk"
include: "rules/tasks.smk"
include: "rules/tables.smk"
include: "rules/figures.smk"
include: "rules/export.smk"
include: "rules/provenance.smk"


rule all:
    input:
        final_targets(),
