"""All that the rules take from Snakemake's own objects, which have no documented interface.

`workflow` is the `snakemake.workflow.Workflow` that Snakefiles see by that name. Another version of Snakemake
may break what is here, and nothing else; tests/workflow/test_snakemake_internals.py tests each function.
"""


def given_configfiles(workflow):
    """Paths of --configfile, in their order."""
    return list(workflow.overwrite_configfiles)


def given_config(workflow):
    """What --config says, a dict."""
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
