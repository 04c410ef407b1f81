"""The third-party tables (DELTAFS_TABLES) and what a right reader finds in them."""

import csv
import datetime
import functools
import json
import os
import pathlib
import shutil
import urllib.parse

import digest

ROOT = pathlib.Path(os.environ["DELTAFS_TABLES"])

# Stands in the log of class "template" for a directory of the table.
PLACEHOLDER = "{{FOLDER_WITH_SPECIAL_CHAR}}"


@functools.cache
def index():
    """The lines of INDEX.tsv."""
    with open(ROOT / "INDEX.tsv") as f:
        return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


def ids(row):
    return f"{row['source']}/{row['table']}"


def of_class(*classes):
    return [row for row in index() if row["class"] in classes]


def named(name):
    """The line of a table."""
    (row,) = [row for row in index() if ids(row) == name]
    return row


@functools.cache
def load(path):
    return json.loads((ROOT / path).read_text())


def expected(row):
    return load(row["oracle_json"])


def copy(row, target):
    """Copies a table so that its commit files have the times they were made with."""
    shutil.copytree(ROOT / row["table_path"], target, symlinks=True)
    if row["class"] == "template":
        fill_template(target)
    for version, when in commit_times(row).items():
        log = target / "_delta_log" / f"{version:020}.json"
        if log.exists():
            os.utime(log, ns=(when * 10**6, when * 10**6))
    return target


def fill_template(table):
    """Writes the place of the table's only other directory into its log."""
    (folder,) = [d for d in table.iterdir() if d.is_dir() and d.name != "_delta_log"]
    commit = table / "_delta_log" / f"{0:020}.json"
    text = commit.read_text()
    assert PLACEHOLDER in text
    commit.write_text(text.replace(PLACEHOLDER, urllib.parse.quote(str(folder))))


def commit_times(row):
    """Milliseconds since the epoch at which the log says each version was committed."""
    out = {}
    for v in expected(row).get("versions", []):
        info = v.get("commitInfo") or {}
        when = info.get("inCommitTimestamp") or info.get("timestamp")
        if when is not None:
            out[v["version"]] = when
    return out


def in_commit_timestamps(row):
    return (expected(row)["metadata"]["configuration"] or {}).get("delta.enableInCommitTimestamps") == "true"


def spell(milliseconds):
    """The listed spelling of a commit time: UTC, no colons."""
    when = datetime.datetime.fromtimestamp(milliseconds // 1000, datetime.timezone.utc)
    return when.strftime("@%Y-%m-%dT%H-%M-%S") + f".{milliseconds % 1000:03}Z"


def walk(root):
    """The paths, relative to root, of every file below root."""
    out = []
    for directory, _, names in os.walk(root, onerror=raise_it):
        out += [os.path.relpath(os.path.join(directory, name), root) for name in names]
    return sorted(out)


def raise_it(error):
    raise error


def partition_values(path, columns):
    """Partition values of a file by the directories it lies in, by column."""
    parts = [digest.partition_value(p) for p in path.split("/")[:-1]]
    assert [n for n, _ in parts] == columns, f"{path}: the table is partitioned by {columns}"
    return dict(parts)


def names(version):
    """The sorted names of a version's files, or None where they are not told."""
    files = version.get("files")
    if files is None:
        return None
    paths = [f["decoded"] if isinstance(f, dict) else f if isinstance(f, str) else f[0] for f in files]
    return sorted(os.path.basename(p) for p in paths)


def missing(version):
    """How many files of a version storage has lost."""
    count = version.get("missingFiles") or 0
    return len(count) if isinstance(count, list) else count
