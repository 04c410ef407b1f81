"""Mounts for tests: the built binary as a subprocess on a real mount point."""

import gc
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

BINARY = os.environ.get("DELTAFS_BIN", "")


def eventually(limit, missing):
    """Waits until missing() returns nothing; else fails with what it returned."""
    deadline = time.monotonic() + limit
    while what := missing():
        assert time.monotonic() < deadline, f"after {limit} s still: {what}"
        time.sleep(0.005)


def fails(operation):
    """Runs what has to fail and forgets it: a kept exception keeps files open."""
    try:
        operation()
    except Exception:
        failed = True
    else:
        failed = False
    gc.collect()
    assert failed, "reported success"


def is_mounted(path):
    with open("/proc/self/mountinfo") as f:
        return any(line.split()[4] == str(path) for line in f)


class Mount:
    """A running mount; use it as a context manager."""

    def __init__(self, source, *flags, zone="UTC"):
        self.source = pathlib.Path(source)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="deltafs-mnt-"))
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [BINARY, "mount", *flags, str(source), str(self.dir)],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env=os.environ | {"TZ": zone},
        )
        try:
            eventually(30, self._not_ready)
        except BaseException:
            self.close()
            raise

    def _not_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"mount of {self.source} ended at once: {self.output()}")
        return None if is_mounted(self.dir) else f"{self.source} is not mounted"

    def output(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()
        if kind is not None:
            print(f"log of the mount of {self.source}:\n{self.output()}")
        return False

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                code = self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                code = "a mount that did not end"
        else:
            code = self.process.returncode
        if is_mounted(self.dir):
            subprocess.run(["umount", "-l", str(self.dir)], check=False)
            code = code or "left the mount"
        # Only an empty directory goes: never delete through a mount.
        if os.path.isdir(self.dir) and not is_mounted(self.dir):
            os.rmdir(self.dir)
        assert code == 0, f"the mount ended with {code}: {self.output()}"
        for sign in ("DATA RACE", "defect:", "panic:"):
            assert sign not in self.output()

    def __truediv__(self, name):
        return self.dir / name

    @property
    def current(self):
        return self.dir / "current"

    def latest(self, table=""):
        target = os.readlink(self.dir / table / "latest")
        assert re.fullmatch(r"@v\d+", target), target
        return int(target[2:])

    def failures(self, table=""):
        """The lines of errors.jsonl of a table."""
        with open(self.dir / table / ".delta" / "errors.jsonl") as f:
            return [json.loads(line) for line in f if line.strip()]


def versions(table):
    """The versions in the log of a table."""
    names = os.listdir(pathlib.Path(table) / "_delta_log")
    return sorted(int(n[:20]) for n in names if re.fullmatch(r"\d{20}\.json", n))


def actions(table, version):
    """The actions of one commit, as (kind, content) pairs."""
    path = pathlib.Path(table) / "_delta_log" / f"{version:020}.json"
    with open(path) as f:
        return [next(iter(json.loads(line).items())) for line in f if line.strip()]


def leftovers(table):
    """Files that the staging area of a table still holds."""
    root = pathlib.Path(table) / ".deltafs"
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir())


