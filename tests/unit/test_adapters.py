"""House rules that no linter knows: adapters are thin and alone join stages, rules hold no code, files stay small."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "workflow_scripts"
PACKAGE = SCRIPTS / "layerwise"
ADAPTERS = sorted(SCRIPTS.glob("*.py"))
MODULES = sorted(PACKAGE.rglob("*.py"))
RULES = [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]
STAGES = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
ALLOWED = {"activations": {"models"}}  # beside itself and the ground


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def imports(tree: ast.AST) -> set[str]:
    """Modules that are imported anywhere in ``tree``."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return found


def stages_of(names: set[str]) -> set[str]:
    parts = [name.split(".") for name in names if name.startswith("layerwise.")]
    return {part[1] for part in parts} & STAGES


def named(paths: list[Path]) -> list:
    return [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in paths]


def is_snakemake_block(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "'snakemake' in globals()"


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def test_there_is_something_to_check() -> None:
    assert len(ADAPTERS) >= 9
    assert {"models", "data", "activations", "metrics", "tasks", "tables", "figures"} <= STAGES
    assert len(MODULES) > 40


@pytest.mark.parametrize("path", named(ADAPTERS))
def test_an_adapter_is_a_main_and_one_block(path: Path) -> None:
    assert lines(path) <= 60
    tree = parsed(path)
    assert ast.get_docstring(tree).startswith(f"Rule {path.stem}: ")
    kinds = [node for node in tree.body[1:] if not isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef)]
    assert [is_type_checking(node) or is_snakemake_block(node) for node in kinds] == [True, True]
    assert is_type_checking(kinds[0])
    assert ast.unparse(kinds[0].body) == "from snakemake.iocontainers import snakemake"
    assert kinds[1] is tree.body[-1]
    assert not kinds[1].orelse


@pytest.mark.parametrize("path", named(ADAPTERS))
def test_an_adapters_main_takes_plain_annotated_arguments(path: Path) -> None:
    functions = {node.name: node for node in parsed(path).body if isinstance(node, ast.FunctionDef)}
    arguments = functions["main"].args
    assert arguments.args
    assert not (arguments.vararg or arguments.kwarg)
    for function in functions.values():
        assert function.returns is not None
        assert ast.get_docstring(function)
        for argument in function.args.args:
            assert argument.annotation is not None
            assert "snakemake" not in ast.unparse(argument.annotation).lower()
    inside = [ast.unparse(node) for node in functions.values()]
    assert not any(re.search(r"\bsnakemake\b", text) for text in inside)  # main runs without Snakemake


@pytest.mark.parametrize("path", named(ADAPTERS))
def test_an_adapter_runs_below_the_code_that_snakemake_prepends(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "__future__" not in text
    assert "snakemake.config" not in text  # what a rule depends on is in its input and params
    block = next(node for node in parsed(path).body if is_snakemake_block(node))
    assert "rule_log" in ast.unparse(block)  # errors are a sentence, tracebacks go to the log
    assert "main(" in ast.unparse(block)


def test_every_rule_that_runs_a_script_has_its_adapter_and_every_adapter_its_rule() -> None:
    text = "\n".join(path.read_text("utf-8") for path in RULES)
    scripts = re.findall(r'script:\s*\n\s*"\.\./workflow_scripts/(\w+)\.py"', text)
    rules = re.findall(r"^rule (\w+):", text, re.MULTILINE)
    assert sorted(scripts) == sorted(path.stem for path in ADAPTERS)
    assert set(rules) == {"all", *scripts}


@pytest.mark.parametrize("path", named(MODULES))
def test_only_adapters_join_stages(path: Path) -> None:
    stage = path.relative_to(PACKAGE).parts[0]
    own = {stage} | ALLOWED.get(stage, set()) if stage in STAGES else set()
    assert stages_of(imports(parsed(path))) <= own


def test_the_package_knows_neither_snakemake_nor_an_adapter() -> None:
    adapters = {path.stem for path in ADAPTERS}
    for path in MODULES:
        roots = {name.split(".")[0] for name in imports(parsed(path))}
        assert not roots & ({"snakemake"} | adapters), path


@pytest.mark.parametrize("path", named(RULES))
def test_rules_hold_no_code(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"\blambda\b", text)
    assert not re.search(r"^\s*run\s*:", text, re.MULTILINE)
    assert not re.search(r"^\s*shell\s*:", text, re.MULTILINE)  # no string of a config reaches a shell
    for rule in re.split(r"^rule ", text, flags=re.MULTILINE)[1:]:
        if not rule.startswith("all:"):
            for keyword in ("log:", "benchmark:", "threads:", "params:", "script:", "code="):
                assert keyword in rule, f"rule {rule.splitlines()[0]} lacks {keyword}"


def test_the_snakefile_is_an_overview() -> None:
    assert lines(ROOT / "Snakefile") <= 40


@pytest.mark.parametrize("path", named([*MODULES, *ADAPTERS]))
def test_files_and_functions_stay_small(path: Path) -> None:
    assert lines(path) <= 400
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < 80, f"{node.name} has {node.end_lineno - node.lineno + 1} lines"


@pytest.mark.parametrize("path", named(MODULES))
def test_nothing_evaluates_text_or_unpickles(path: Path) -> None:
    banned = {"eval", "exec", "compile", "__import__"}
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name not in banned
            assert name not in {"pickle.load", "pickle.loads", "torch.load", "joblib.load", "yaml.unsafe_load"} or (
                path.name == "published.py"  # its unpickler admits listed classes only
            )
            arguments = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            assert arguments.get("trust_remote_code", "False") == "False"
            assert arguments.get("allow_pickle", "False") == "False"


def test_test_files_stay_small_too() -> None:
    for path in sorted((ROOT / "tests").rglob("*.py")):
        assert lines(path) <= 400, path
