"""What a monitor says, in the text format that Prometheus scrapes."""

from __future__ import annotations

from datetime import datetime

from cpmmd.monitoring.monitor import DriftMonitor

# Name, what it is, kind.
METRICS = (
    ("cpmmd_alarm", "1 while there is an alarm that was neither acknowledged nor dismissed", "gauge"),
    ("cpmmd_wealth", "evidence against nothing having changed", "gauge"),
    ("cpmmd_wealth_limit", "wealth at which the alarm is raised, 1 / alpha", "gauge"),
    ("cpmmd_batches_total", "batches that were counted", "counter"),
    ("cpmmd_episode", "alarms that were acknowledged or dismissed", "gauge"),
    ("cpmmd_since_batch", "number of the estimated first changed batch, 0 without an alarm", "gauge"),
    ("cpmmd_last_pvalue", "p-value of the latest batch by itself", "gauge"),
    ("cpmmd_last_rows", "rows of the latest batch", "gauge"),
    ("cpmmd_last_batch_timestamp_seconds", "when the latest batch was tested", "gauge"),
)


def prometheus_text(monitor: DriftMonitor, name: str) -> str:
    """Return the metrics of a monitor, labelled with its name; those of a latest batch only where there is one.

    Examples
    --------
    >>> import numpy as np
    >>> monitor = DriftMonitor(method="median", n_permutations=99, rng=0).fit(np.random.default_rng(0).normal(size=(50, 2)))
    >>> prometheus_text(monitor, "sales").splitlines()[2]
    'cpmmd_alarm{monitor="sales"} 0'
    """
    values: dict[str, float] = {
        "cpmmd_alarm": int(monitor.alarm_),
        "cpmmd_wealth": monitor.wealth_,
        "cpmmd_wealth_limit": 1 / monitor.alpha,
        "cpmmd_batches_total": monitor.number_,
        "cpmmd_episode": monitor.episode_,
    }
    if monitor.records_:
        last = monitor.records_[-1]
        values |= {
            "cpmmd_since_batch": last["since_number"] if monitor.alarm_ else 0,
            "cpmmd_last_pvalue": last["pvalue"],
            "cpmmd_last_rows": last["rows"],
            "cpmmd_last_batch_timestamp_seconds": datetime.fromisoformat(last["time"]).timestamp(),
        }
    label = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return "".join(
        f'# HELP {metric} {words}\n# TYPE {metric} {kind}\n{metric}{{monitor="{label}"}} {values[metric]:.17g}\n'
        for metric, words, kind in METRICS
        if metric in values
    )
