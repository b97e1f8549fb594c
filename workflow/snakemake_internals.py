"""All that the rules take from Snakemake's own objects, which have no documented interface.

`workflow` is the `snakemake.workflow.Workflow` that Snakefiles see by that name. Another version of Snakemake
may break what is here, and nothing else; tests/workflow/test_snakemake_internals.py tests each function.
"""

from collections import defaultdict


def given_configfiles(workflow):
    """Paths of --configfile, in their order."""
    return list(workflow.overwrite_configfiles)


def given_config(workflow):
    return workflow.config_settings.config or {}


def plans(workflow):
    """Whether this process plans, and does not only run a job that another one planned."""
    return workflow.is_main_process


def target_files(workflow):
    """Files that are asked for: those named, and the inputs of named rules that are no functions."""
    given = workflow.dag_settings.targets or [workflow.default_target]
    rules = [workflow.get_rule(name) for name in given if workflow.is_rule(name)]
    files = [name for name in given if not workflow.is_rule(name)]
    return files + [file for rule in rules for file in rule.input if isinstance(file, str)]


def ungroup(workflow):
    """Forget the groups of rules where jobs run on this machine: groups are for clusters.

    A dry run forms them anyway, and compares all pairs of a table's jobs for it. They stay where
    --group-components asks for them.
    """
    if workflow.local_exec and not workflow.group_settings.group_components:
        for rule in workflow.rules:
            rule.group = None


def stop_submission_timers(workflow):
    """Turn off the limit of submissions per second where jobs run on this machine: only a cluster needs it.

    It starts a timer with every pass of the scheduler, and each timer starts another pass: after a hundred
    short jobs the scheduler takes a core. No option turns it off: --max-jobs-per-timespan only changes its
    numbers, and the process waits for the last timer at its end.
    """
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


def runs_here(workflow):
    """Whether jobs run on this machine, and not on a cluster."""
    return workflow.local_exec


class Producers:
    """The rules that make a file, in the place of Snakemake's own index, which answers the same.

    That one looks at all patterns that begin alike: for each file of a group of runs at the hundreds of files
    of its protocol's groups, a quarter of the time of a large plan. Here patterns are found by the folder in
    which their first wildcard is, and by what stands behind their last one.
    """

    def __init__(self, rules):
        # Folder -> ending -> (rule, pattern).
        known: dict = defaultdict(lambda: defaultdict(list))
        for rule in rules:
            for pattern in rule.products():
                folder = "".join(str(pattern.constant_prefix()).rpartition("/")[:2])
                known[folder][pattern.constant_suffix()].append((rule, pattern))
        self._known = {
            folder: (sorted({len(ending) for ending in endings}), dict(endings))
            for folder, endings in known.items()
        }

    def match_producers(self, file):
        """The set of rules with an output, a log or a benchmark of this name."""
        found, folder = set(), ""
        for part in file.split("/"):
            if folder in self._known:
                lengths, endings = self._known[folder]
                for length in lengths:
                    for rule, pattern in endings.get(file[max(0, len(file) - length) :], ()):
                        if pattern.match(file):
                            found.add(rule)
            folder += f"{part}/"
        return found


def index_products(workflow):
    """Find the rules of files by `Producers` from now on."""
    workflow.dag.output_index = Producers(workflow.dag.rules)


def skip_directory_check(workflow):
    """Do not look for outputs inside of outputs that are folders, where no rule has a folder as output: the
    check sorts the paths of all outputs."""
    if not any("directory" in file.flags for rule in workflow.rules for file in rule.output):
        workflow.dag.check_directory_outputs = lambda: None
