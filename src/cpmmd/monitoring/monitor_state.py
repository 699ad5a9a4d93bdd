"""What a monitor knows between two batches."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from cpmmd.core.plain import PlainDict
from cpmmd.data.table import Table
from cpmmd.monitoring.batches import content_digest
from cpmmd.monitoring.looks import Look, first_looks, wealth_of
from cpmmd.monitoring.online_fdr import Saffron
from cpmmd.monitoring.past import Past
from cpmmd.monitoring.since import Since, estimate

RECENT = 1000  # answers that are kept: batches sent again are known among them
KEY = 32  # hexadecimal digits of a batch's key: half of them say whose it is
CANDIDATES = 100  # batches among which a change is looked for


def identify(reference: Table, seed: int, method: str, alpha: float) -> str:
    """Return what the keys of a monitor's batches begin with."""
    return hashlib.sha256(f"{seed} {method} {alpha} {content_digest(reference)}".encode()).hexdigest()[: KEY // 2]


@dataclass(frozen=True, eq=False)
class MonitorState:
    """Everything a fitted monitor answers from.

    Attributes
    ----------
    params
        The constructor's parameters.
    seed
        What all randomness comes from.
    past
        Rows that came before.
    looks, fdr
        The evidence so far.
    number
        Batches so far.
    start
        The first batch of this episode.
    episode
        How often an alarm was acknowledged or dismissed.
    raised
        The batch at which the wealth reached its limit; None while it has not.
    recent
        Records of the latest answers.
    notes
        What fitting had to say.
    identity
        A digest of the reference, the method, the level and the seed: tells the monitor from others in one history.
    """

    params: PlainDict
    seed: int
    past: Past
    looks: tuple[Look, ...]
    fdr: Saffron
    number: int = 0
    start: int = 1
    episode: int = 0
    raised: int | None = None
    recent: tuple[PlainDict, ...] = ()
    notes: tuple[str, ...] = ()
    identity: str = ""

    @property
    def wealth(self) -> float:
        """The evidence so far."""
        return wealth_of(self.looks)

    def since(self, name: str, rank: int, total: int) -> Since | None:
        """While there is an alarm, where it began: at the latest batch, which had this rank, or before."""
        if self.raised is None:
            return None
        answers = [record for record in self.recent[-CANDIDATES + 1 :] if record["episode"] == self.episode]
        seen = [(one["batch"], one["number"], (one["looks"][0]["rank"], one["looks"][0]["total"])) for one in answers]
        return estimate(*zip(*seen, (name, self.number, (rank, total)), strict=True))

    def key(self, table: Table, name: str | None) -> str:
        """Return what a batch is known by: its name and rows, or its number, and whose it is."""
        which = f"unnamed {self.number + 1}" if name is None else f"named {name} {content_digest(table)}"
        return (self.identity + hashlib.sha256(f"{self.seed} {which}".encode()).hexdigest())[:KEY]

    def find(self, key: str) -> PlainDict | None:
        """Return the record of a batch that came before."""
        return next((record for record in reversed(self.recent) if record["key"] == key), None)

    def raise_alarm(self, limit: float) -> MonitorState:
        """Return the state with an alarm where the wealth has reached its limit; one that is there stays."""
        return replace(self, raised=self.number) if self.raised is None and self.wealth >= limit else self

    def remember(self, record: PlainDict) -> MonitorState:
        """Return the state with one more answer."""
        return replace(self, recent=(*self.recent[-RECENT + 1 :], record))

    def start_anew(self, past: Past) -> MonitorState:
        """Return the state of an episode that begins with the next batch: no evidence yet."""
        looks = first_looks(tuple(look.batches for look in self.looks), self.params["bet"])
        return replace(
            self,
            past=past,
            looks=looks,
            fdr=Saffron(self.fdr.fdr),
            start=self.number + 1,
            episode=self.episode + 1,
            raised=None,
        )
