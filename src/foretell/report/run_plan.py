"""The plan of a run: how many trials and calls, what they cost, how long they take and what the models would read."""

from collections.abc import Mapping

from foretell.frozen import frozen
from foretell.number_text import dollars, duration, plural
from foretell.report.result import Result
from foretell.runs.spec import SpecPrompt


@frozen
class RunPlan(Result):
    """What a run would do and cost. Nothing was started."""

    run: str
    """Its id; empty if no model is used."""
    questions: int
    trials: int
    """Trials of each question."""
    open: int
    """Trials that are still to be answered."""
    models: Mapping[str, str]
    """Model by role."""
    search: tuple[str, ...] = ()
    calls: float = 0.0
    """Usual number of model calls."""
    dollars: float | None
    """Usual cost; None if no price is known."""
    nine_in_ten: float | None = None
    """90th percentile of the cost in dollars; None if too little was measured."""
    most: float | None = None
    """The most that the budget allows; None if none is set."""
    seconds: float = 0.0
    """Usual duration."""
    basis: str
    """Where the figures come from."""
    prompts: tuple[SpecPrompt, ...] = ()
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def money(self) -> str:
        """The usual cost and the most, in words."""
        if self.dollars is None:
            usual = "price not known"
        elif not self.dollars:
            return "costs nothing"
        else:
            usual = f"about {dollars(self.dollars)}"
            usual += f" (9 in 10 under {dollars(self.nine_in_ten)})" if self.nine_in_ten else ""
        return f"{usual}, " + ("no budget is set" if self.most is None else f"at most {dollars(self.most)}")

    def __str__(self) -> str:
        done = self.questions * self.trials - self.open
        before = f", {done} done before" if done > 0 else ""
        size = f"{plural(self.questions, 'question')} × {plural(self.trials, 'trial')}"
        lines = [f"{f'run {self.run}: ' if self.run else ''}{size}, {self.open} to do{before}"]
        if self.models:
            others = "".join(f", {role} {name}" for role, name in self.models.items() if role != "agent")
            search = f"; search {', '.join(self.search)}" if self.search else ""
            lines.append(f"model {self.models.get('agent', '–')}{others}{search}")
        calls = f"about {self.calls:,.0f} model calls, " if self.calls else ""
        lines.append(f"{calls}{self.money}, about {duration(self.seconds)} ({self.basis})")
        return "\n".join([*lines, *(f"\n{prompt}" for prompt in self.prompts)])
