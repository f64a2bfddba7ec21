"""The 32 tasks of the study against its Table 1 and against mteb's own list."""

from collections import Counter

from layerwise.tasks.mteb_source import registered
from layerwise.tasks.study_tasks import STUDY_TASKS

# PAPER.md, section 4.
TABLE_1 = {
    "PairClassification": "SprintDuplicateQuestions TwitterSemEval2015 TwitterURLCorpus",
    "Classification": "AmazonCounterfactualClassification AmazonReviewsClassification Banking77Classification "
    "EmotionClassification MTOPDomainClassification MTOPIntentClassification MassiveIntentClassification "
    "MassiveScenarioClassification ToxicConversationsClassification TweetSentimentExtractionClassification",
    "Clustering": "ArxivClusteringS2S BiorxivClusteringS2S MedrxivClusteringS2S RedditClustering StackExchangeClustering "
    "TwentyNewsgroupsClustering",
    "Reranking": "AskUbuntuDupQuestions MindSmallReranking SciDocsRR StackOverflowDupQuestions",
    "STS": "BIOSSES SICK-R STS12 STS13 STS14 STS15 STS16 STS17 STSBenchmark",
}


def test_the_tasks_are_those_of_table_1() -> None:
    assert len(STUDY_TASKS) == 32
    for kind, names in TABLE_1.items():
        assert {task.name for task in STUDY_TASKS if task.kind == kind} == set(names.split())


def test_mteb_has_them_at_the_revision_that_is_recorded() -> None:
    for study in STUDY_TASKS:
        task = registered(study.name)
        assert task.metadata.type == study.kind
        assert task.metadata.dataset["revision"] == study.revision, study.name
        assert study.subset in task.hf_subsets, study.name


def test_the_main_subset_is_the_one_the_study_reports() -> None:
    subsets = {task.name: task.subset for task in STUDY_TASKS}
    assert subsets["STS17"] == "en-de"
    assert subsets["AmazonCounterfactualClassification"] == "en-ext"
    assert Counter(subsets.values()) == {"default": 25, "en": 5, "en-de": 1, "en-ext": 1}
