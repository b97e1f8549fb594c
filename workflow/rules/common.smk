# The configuration and its plan, and what turns its functions into input functions of rules.

import functools
import gc
import inspect
import sys
from pathlib import Path

import filelock

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT))

from reporting import figures
from workflow import forks, snakemake_internals
from workflow.configuration import external_codes
from workflow.plan import targets
from workflow.configuration.merged import load, merge_settings
from workflow.code_dependencies import use_this_python
from workflow.errors import ConfigurationError
from workflow.plan.pages import PagePlan
from workflow.plan.runs import CODE, FIGURE_ENDINGS, LOCK, NAME, SCORED, SETTINGS, TRAINED
from workflow.plan.runs import Plan, one_of, runs_of, write_settings
from workflow.plan.groups import run_jobs
from workflow.plan.searches import TuningPlan
from workflow.configuration.yaml_reader import read_settings

use_this_python(ROOT)
# A plan is a million objects that stay: looking through them for garbage takes a tenth of its time.
gc.set_threshold(50_000, 20, 20)


def refuse(message):
    """End with one line: Snakemake would wrap an exception in its own message and trace."""
    sys.exit(f"error: {message}")


def or_exit(function, *arguments, **named):
    """Call a function of the configuration or the plan; its errors end the run with their one line."""
    try:
        return function(*arguments, **named)
    except ConfigurationError as error:
        refuse(error)


# Snakemake has read these already, but of two equal keys it takes the last one silently, and it would mix what
# two files say of one split, or of one method in `tuned`.
GIVEN = {file: or_exit(read_settings, Path(file)) for file in snakemake_internals.given_configfiles(workflow)}
CHANGED = functools.reduce(merge_settings, (*GIVEN.values(), snakemake_internals.given_config(workflow)))
CONFIGURATION = or_exit(load, ROOT, CHANGED, GIVEN.items() or [("--config", CHANGED)])
PLAN = Plan(CONFIGURATION)
SEARCHES = TuningPlan(PLAN)
PAGES = PagePlan(PLAN)
if hint := CONFIGURATION.sources.absent_folders():
    print(f"warning: {hint}", file=sys.stderr)


@functools.cache
def prepare():
    """What can be done only once Snakemake knows its targets and options: when the first input function runs."""
    if not snakemake_internals.plans(workflow):
        return
    snakemake_internals.ungroup(workflow)
    snakemake_internals.index_products(workflow)
    snakemake_internals.skip_directory_check(workflow)
    if any(Path("results/runs").glob("*")) and not any(Path(".snakemake/metadata").glob("*")):
        unknown = "results/runs has no .snakemake/metadata beside it, which says how runs were made"
        print(f"warning: {unknown}: they count as made by this configuration and code", file=sys.stderr)
    files = snakemake_internals.target_files(workflow)
    if missing := or_exit(targets.missing_sources, PLAN, files):
        refuse(missing)


def known(function):
    """The function with its signature cached: Snakemake inspects it several times at each call."""
    function.__signature__ = inspect.signature(function)
    return function


def of(function, **given):
    """An input function that calls a function of the plan with the wildcards that it names, and `given`."""
    names = [name for name in inspect.signature(function).parameters if name not in given]

    def of_wildcards(wildcards):
        prepare()
        return or_exit(
            function, **given, **{name: wildcards[name] for name in names if name in wildcards.keys()}
        )

    return known(of_wildcards)


def sources(function, **given):
    """An input function of source files. One with a recorded checksum, which is a setting of the jobs that read
    the file, counts as the same file whatever its time: a copy makes nothing run again."""
    find = of(function, **given)

    def found(wildcards):
        return [ancient(path) if path in PLAN.recorded_sources else path for path in find(wildcards)]

    return known(found)


def settings(function, compared=True, folder=SETTINGS, **given):
    """A parameter of rules: the file with the settings that a function of the plan returns.

    compared: settings that changed since the last run of a job make it run again. What depends on `output`
    is left out of that comparison by Snakemake.
    """
    found, written = of(function, **given), {}
    names = inspect.signature(function).parameters

    def path(wildcards):
        key = tuple(item for item in wildcards.items() if item[0] in names)
        if key not in written:
            written[key] = write_settings(found(wildcards), folder)
        return written[key]

    return known(path if compared else lambda wildcards, output: path(wildcards))


def code(function, *modules, **given):
    """A parameter of rules: a file that names the source files that decide a job's result, with their digests.

    An edit makes the jobs run again that depend on it, and no others. As inputs, thirty files of each job would
    take a third of the time of a large plan.
    """
    return write_settings(function(*modules), CODE) if modules else settings(function, folder=CODE, **given)


def resource(key, stage):
    return known(lambda wildcards, attempt: PLAN.resource(key, stage, attempt))


@known
def runs_of_job(wildcards, output):
    # Of the output, so not compared: a finished run stays valid if its group becomes smaller.
    return runs_of(output)


wildcard_constraints:
    dataset=NAME,
    protocol=NAME,
    method=NAME,
    bits=r"\d+",
    seed=r"\d+",
    table=NAME,
    page=NAME,
    tuning=NAME,
    network=NAME,


onstart:
    # Held until this process ends, in whatever way: the system releases it even after a SIGKILL, unlike
    # Snakemake's own locks.
    global HELD
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    HELD = filelock.FileLock(LOCK)
    try:
        HELD.acquire(blocking=False)
    except filelock.Timeout:
        refuse(f"another snakemake is running in {Path.cwd()}: wait for it, or stop it")
    snakemake_internals.stop_submission_timers(workflow)
    # CUDA does not survive a fork.
    if snakemake_internals.runs_here(workflow) and PLAN["device"] == "cpu":
        forks.start_templates()
