"""What the peers' programs share: how they report to scripts/bench."""

import json
import time

clock = time.perf_counter


def memory():
    """Fields of /proc/self/status, in MB."""
    out = {}
    with open("/proc/self/status") as f:
        for line in f:
            name, value = line.split(":", 1)
            if name in ("VmHWM", "VmRSS", "RssAnon"):
                out[name] = int(value.split()[0]) * 1024 / 1e6
    return out


def report(since, count):
    """Prints the result: time since, and the count found (-1: not known)."""
    ms = (clock() - since) * 1000
    print(json.dumps({"ms": ms, "count": count, "memory": memory()}))
