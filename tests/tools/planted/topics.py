"""Twelve topics that were open on 26 October 2025, with invented reports from before and after.

The outcomes are invented, so nothing depends on what really happened.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Topic:
    name: str
    question: str
    before: str
    """A report from before the cutoff."""
    scheduled: str
    """A plan for a day after the cutoff, known before it."""
    dated_outcome: str
    """The outcome with its date."""
    bare_outcome: str
    """The outcome without a date."""


TOPICS = (
    Topic(
        name="rates",
        question="Will the Fed cut rates at its December 2025 meeting?",
        before="The Federal Reserve kept its target range in September while officials stayed divided over inflation.",
        scheduled="The next policy meeting is scheduled for 9-10 December 2025, the decision due on December 10, 2025.",
        dated_outcome="On December 10, 2025 the Federal Reserve lowered its target range by a quarter point.",
        bare_outcome="The Federal Reserve lowered its range by a quarter point at the last meeting of the year.",
    ),
    Topic(
        name="election",
        question="Will the governing coalition keep its majority?",
        before="Polls taken in early October put the coalition four points behind the opposition.",
        scheduled="Voters will go to the polls on 16 November 2025; counting is expected to take two days.",
        dated_outcome="The coalition lost its majority on November 16, 2025, and the prime minister conceded.",
        bare_outcome="The coalition lost its majority, and the prime minister conceded before midnight.",
    ),
    Topic(
        name="launch",
        question="Will the lander launch before the end of 2025?",
        before="Engineers finished the vibration tests of the lander last month.",
        scheduled="The launch window opens on November 22, 2025 and the backup date is set to be 2 December 2025.",
        dated_outcome="The rocket lifted off on November 22, 2025 and deployed the lander an hour later.",
        bare_outcome="The rocket lifted off and deployed the lander an hour later, engineers cheered.",
    ),
    Topic(
        name="final",
        question="Will United win the cup final?",
        before="United reached the final after a late goal in the second leg.",
        scheduled="The final will be played on 7 December 2025 in Lisbon; kick-off is planned for 20:00.",
        dated_outcome="United won the final 2-1 in Lisbon on December 7, 2025 after extra time.",
        bare_outcome="United won the final 2-1 in Lisbon after extra time.",
    ),
    Topic(
        name="ruling",
        question="Will the court strike the tariff down by the end of the year?",
        before="The lower court heard both sides in August and left the tariff in place.",
        scheduled="Oral argument is set for November 5, 2025, and a decision is expected by 31 December 2025.",
        dated_outcome="The court struck the tariff down on 18 December 2025 by six votes to three.",
        bare_outcome="The court struck the tariff down by six votes to three.",
    ),
    Topic(
        name="storm",
        question="Will a major hurricane make landfall in Florida in November 2025?",
        before="The season has been quiet so far, with four hurricanes by the middle of October.",
        scheduled="The season officially ends on November 30, 2025; the outlook will be revised on 6 November 2025.",
        dated_outcome="The storm came ashore near Tampa on November 12, 2025 and left two million without power.",
        bare_outcome="The storm came ashore near Tampa and left two million without power.",
    ),
    Topic(
        name="earnings",
        question="Will the company report revenue above 30 billion?",
        before="The company guided for revenue between 28 and 31 billion in July.",
        scheduled="Results for the quarter are due after the market closes on November 19, 2025.",
        dated_outcome="Revenue was 31.4 billion, the company reported on November 19, 2025.",
        bare_outcome="Revenue was 31.4 billion, well above guidance, and the shares jumped nine percent.",
    ),
    Topic(
        name="treaty",
        question="Will the two governments sign the treaty in 2025?",
        before="Negotiators said in September that two articles were still open.",
        scheduled="A signing ceremony is planned for 15 December 2025 in Geneva if the texts are ready.",
        dated_outcome="Both presidents signed the treaty in Geneva on December 15, 2025.",
        bare_outcome="Both presidents signed the treaty in Geneva and shook hands.",
    ),
    Topic(
        name="vaccine",
        question="Will the agency approve the vaccine by January 2026?",
        before="The phase three trial found an efficacy of 71 percent, the company said in June.",
        scheduled="The advisory panel is to meet on 20 November 2025; the agency's deadline is January 9, 2026.",
        dated_outcome="The agency approved the vaccine on January 8, 2026, one day ahead of time.",
        bare_outcome="The agency approved the vaccine for adults over sixty.",
    ),
    Topic(
        name="strike",
        question="Will the dock workers strike before Christmas 2025?",
        before="The union and the port operators met twice in October without a result.",
        scheduled="The contract expires on 30 November 2025 and members will vote on December 3, 2025.",
        dated_outcome="Dock workers walked out on December 4, 2025 and closed three ports.",
        bare_outcome="Dock workers walked out and closed three ports for a week.",
    ),
    Topic(
        name="award",
        question="Will the film win best picture?",
        before="The film opened in Venice to long applause and sells well.",
        scheduled="Nominations will be announced on January 22, 2026; the ceremony is scheduled for 15 March 2026.",
        dated_outcome="The film won best picture on March 15, 2026 and four other prizes.",
        bare_outcome="The film won best picture and four other prizes on the night.",
    ),
    Topic(
        name="chess",
        question="Will the challenger win the match?",
        before="The challenger gained eleven rating points over the summer.",
        scheduled="The match starts on 21 November 2025 and the last game is scheduled for December 12, 2025.",
        dated_outcome="The challenger won the match 7.5-6.5 on December 11, 2025.",
        bare_outcome="The challenger won the match 7.5-6.5 and becomes the youngest champion.",
    ),
)
