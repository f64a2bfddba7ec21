"""The 32 MTEB tasks of the study, by name, because mteb's ``MTEB(eng)`` has become another benchmark.

Its main score of a task with several subsets is that of the first one in its result files (STS17: ``en-de``, not
``en-en``); its benchmark held the subsets with English only.
"""

from typing import NamedTuple


class StudyTask(NamedTuple):
    """A task of the study.

    Attributes:
        name: in mteb.
        kind: mteb's type.
        subset: whose score the study reports.
        revision: of the data, as mteb 2.26 pins it; recorded with every score.
    """

    name: str
    kind: str
    subset: str
    revision: str


STUDY_TASKS: tuple[StudyTask, ...] = (
    StudyTask("SprintDuplicateQuestions", "PairClassification", "default", "d66bd1f72af766a5cc4b0ca5e00c162f89e8cc46"),
    StudyTask("TwitterSemEval2015", "PairClassification", "default", "70970daeab8776df92f5ea462b6173c0b46fd2d1"),
    StudyTask("TwitterURLCorpus", "PairClassification", "default", "8b6510b0b1fa4e4c4f879467980e9be563ec1cdf"),
    StudyTask("AmazonCounterfactualClassification", "Classification", "en-ext", "1f7e6a9d6fa6e64c53d146e428565640410c0df1"),
    StudyTask("AmazonReviewsClassification", "Classification", "en", "6b5d328eaae8ef408dd7d775040245cf86f92e9d"),
    StudyTask("Banking77Classification", "Classification", "default", "0fd18e25b25c072e09e0d92ab615fda904d66300"),
    StudyTask("EmotionClassification", "Classification", "default", "4f58c6b202a23cf9a4da393831edf4f9183cad37"),
    StudyTask("MTOPDomainClassification", "Classification", "en", "a76d16fae880597b9c73047b50159220a441cb54"),
    StudyTask("MTOPIntentClassification", "Classification", "en", "2992d820f31312593c49a4890430aadadb0f0039"),
    StudyTask("MassiveIntentClassification", "Classification", "en", "4672e20407010da34463acc759c162ca9734bca6"),
    StudyTask("MassiveScenarioClassification", "Classification", "en", "fad2c6e8459f9e1c45d9315f4953d921437d70f8"),
    StudyTask("ToxicConversationsClassification", "Classification", "default", "edfaf9da55d3dd50d43143d90c1ac476895ae6de"),
    StudyTask(
        "TweetSentimentExtractionClassification", "Classification", "default", "d604517c81ca91fe16a244d1248fc021f9ecee7a"
    ),
    StudyTask("ArxivClusteringS2S", "Clustering", "default", "f910caf1a6075f7329cdf8c1a6135696f37dbd53"),
    StudyTask("BiorxivClusteringS2S", "Clustering", "default", "258694dd0231531bc1fd9de6ceb52a0853c6d908"),
    StudyTask("MedrxivClusteringS2S", "Clustering", "default", "35191c8c0dca72d8ff3efcd72aa802307d469663"),
    StudyTask("RedditClustering", "Clustering", "default", "24640382cdbf8abc73003fb0fa6d111a705499eb"),
    StudyTask("StackExchangeClustering", "Clustering", "default", "6cbc1f7b2bc0622f2e39d2c77fa502909748c259"),
    StudyTask("TwentyNewsgroupsClustering", "Clustering", "default", "6125ec4e24fa026cec8a478383ee943acfbd5449"),
    StudyTask("AskUbuntuDupQuestions", "Reranking", "default", "c5691e3c48741d5f83b5cc8e630653d7a8cfc048"),
    StudyTask("MindSmallReranking", "Reranking", "default", "227478e3235572039f4f7661840e059f31ef6eb1"),
    StudyTask("SciDocsRR", "Reranking", "default", "39b8377811871075eed9de3b8a7e21aaa6acb3d8"),
    StudyTask("StackOverflowDupQuestions", "Reranking", "default", "5debda000fe8e27ebb5c123d38081f92e1847a59"),
    StudyTask("BIOSSES", "STS", "default", "d3fb88f8f02e40887cd149695127462bbcf29b4a"),
    StudyTask("SICK-R", "STS", "default", "20a6d6f312dd54037fe07a32d58e5e168867909d"),
    StudyTask("STS12", "STS", "default", "a0d554a64d88156834ff5ae9920b964011b16384"),
    StudyTask("STS13", "STS", "default", "7e90230a92c190f1bf69ae9002b8cea547a64cca"),
    StudyTask("STS14", "STS", "default", "6031580fec1f6af667f0bd2da0a551cf4f0b2375"),
    StudyTask("STS15", "STS", "default", "ae752c7c21bf194d8b67fd573edf7ae58183cbe3"),
    StudyTask("STS16", "STS", "default", "4d8694f8f0e0100860b497b999b3dbed754a0513"),
    StudyTask("STS17", "STS", "en-de", "faeb762787bd10488a50c8b5be4a3b82e411949c"),
    StudyTask("STSBenchmark", "STS", "default", "b0fddb56ed78048fa8b90373c8a3cfc37b684831"),
)

STUDY_SUBSETS: dict[str, str] = {task.name: task.subset for task in STUDY_TASKS}
