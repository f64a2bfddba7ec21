"""Stage tasks: what a task asks for, and every layer's score on it: from stored vectors, or of attention probes."""


rule prepare_task:
    input:
        unpack(task_parent),
    output:
        samples="results/data/{task}/samples.parquet",
        pairs="results/data/{task}/pairs.parquet",
        manifest="results/data/{task}/manifest.json",
        spec="results/data/{task}/task/spec.json",
        baselines="results/data/{task}/baselines.json",
        sample="results/data/{task}~sample/samples.parquet",
        sample_pairs="results/data/{task}~sample/pairs.parquet",
        sample_manifest="results/data/{task}~sample/manifest.json",
    log:
        "results/logs/prepare_task/{task}.log",
    benchmark:
        "results/benchmarks/prepare_task/{task}.tsv"
    priority: 3
    conda:
        ENVIRONMENT
    threads: 1
    params:
        options=task_options,
        source=task_source,
        code=prepare_code,
    script:
        "../workflow_scripts/prepare_task.py"


rule score_task:
    input:
        activations=task_activations,
        spec="results/data/{task}/task/spec.json",
    output:
        "results/tasks/{model}/{task}.json",
    log:
        "results/logs/score_task/{model}/{task}.log",
    benchmark:
        "results/benchmarks/score_task/{model}/{task}.tsv"
    wildcard_constraints:
        task=one_of(LOOKED_UP),
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=scoring_memory,
        runtime=scoring_minutes,
    params:
        seed=STUDY.seed,
        code=score_code,
    script:
        "../workflow_scripts/score_task.py"


rule probe_attention:
    input:
        model="results/models/{model}/manifest.json",
        samples=task_samples,
        dataset=probe_dataset,
        spec="results/data/{task}/task/spec.json",
    output:
        "results/tasks/{model}/{task}.json",
    log:
        "results/logs/probe_attention/{model}/{task}.log",
    benchmark:
        "results/benchmarks/probe_attention/{model}/{task}.tsv"
    wildcard_constraints:
        task=one_of(PROBED),
    priority: 1
    conda:
        ENVIRONMENT
    threads: extraction_threads
    resources:
        mem_mb=probe_memory,
        runtime=probe_minutes,
        gpu=model_gpus,
    params:
        model=probe_model,
        code=probe_code,
    script:
        "../workflow_scripts/probe_attention.py"
