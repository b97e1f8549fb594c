"""The plan of searches for hyper-parameters: their settings, files and choices. Rules only call it.

A tuning of a protocol of several folds searches in each fold by itself: the classes that one fold learns from
are those that another one searches among.
"""

from workflow.errors import ConfigurationError
from workflow.plan.data import pick
from workflow.plan.runs import Cell
from workflow.tuning.files import RULE


class TuningPlan:
    """What the searches of `tuning` are made of. plan: a `workflow.plan.runs.Plan`."""

    def __init__(self, plan):
        self.plan = plan

    def protocols(self, tuning):
        """The protocols that a tuning searches in: the folds of its own, or that one."""
        return self.plan.configuration.members(self.plan.entry("tuning", tuning)["protocol"])

    def split(self, tuning, protocol):
        """The split of a protocol of a tuning. Raises ConfigurationError for another protocol."""
        if protocol not in self.protocols(tuning):
            known = ", ".join(self.protocols(tuning))
            raise ConfigurationError(
                f"tuning {tuning} does not search in protocol {protocol}, but in {known}"
            )
        return f"resources/protocols/{protocol}/split.npz"

    def settings(self, tuning, protocol, method, bits):
        """What a search is made with: spaces, those that the method declares unless the tuning gives one; its
        budget; the hyper-parameters that its trials change, whatever was chosen before."""
        entry = self.plan.entry("tuning", tuning)
        spaces = self.plan.configuration.metadata(method).spaces
        if "space" in entry:
            spaces = [entry["space"] | entry.get("space_of", {}).get(method, {})]
        given = self.plan.hyperparameters(Cell(protocol, method, int(bits)), tuned=False)
        rule = {key: entry[key] for key in RULE if key in entry}
        found = self.plan.learning(protocol, method)
        found |= pick(self.plan.entry("protocols", protocol), "ap_at_normaliser")
        found |= {
            "spaces": spaces,
            "search": rule,
            "hyperparameters": given,
        }
        if "candidates" in entry:
            found["search"] = rule | {"candidates": True}
            found["candidates"] = entry["candidates"].get(method, [])
        return found

    def code(self, protocol, method):
        """What a method learns by, and the scores and the choices of its trials."""
        of_search = ("workflow.scripts.tune_method", "workflow.tuning.validation", "workflow.tuning.search")
        return self.plan.learning_code(protocol, method) | self.plan.code(*of_search)

    def choices(self, tuning):
        """What each search of a tuning chose."""
        entry = self.plan.entry("tuning", tuning)
        return [
            f"results/tuning/{tuning}/{protocol}/{method}/{bits}.json"
            for protocol in self.protocols(tuning)
            for method in entry["methods"]
            for bits in entry["bits"]
        ]

    def collected(self, tuning):
        return {"searches": self.choices(tuning)}
