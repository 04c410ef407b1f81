"""Which versions there are and what holds them up: logs that were cleaned up,
data that VACUUM took, tables that were copied, pointers that lie."""

import datetime
import errno
import json
import os
import shutil
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import mount
import oracle
from mount import versions


def rows(first, n=4):
    return pa.table({"id": range(first, first + n)})


def made(table, commits, checkpoints=()):
    """A table of one append a commit, with checkpoints of some."""
    for i in range(commits):
        write_deltalake(str(table), rows(4 * i), mode="append")
        if i in checkpoints:
            DeltaTable(str(table)).create_checkpoint()
    return table


def forget(table, commits):
    for version in commits:
        os.unlink(table / "_delta_log" / f"{version:020}.json")


def shown(m):
    return sorted(int(n[2:]) for n in os.listdir(m.dir) if n.startswith("@v"))


def count(snapshot):
    return sum(pq.read_table(snapshot / name).num_rows for name in os.listdir(snapshot))


def history(table):
    out = subprocess.run([mount.BINARY, "history", "--json", str(table)], capture_output=True, text=True, check=True)
    return {line["version"]: line for line in map(json.loads, out.stdout.splitlines())}


@pytest.mark.parametrize("gone", [range(5), [0], [1], [4], range(7)], ids=str)
def test_what_history_lists_opens_or_is_marked(mounted, table, gone):
    """Commits before a checkpoint are cleaned up, all or some of them."""
    made(table, 12, checkpoints=(5, 10))
    forget(table, gone)
    # A version needs all commits since the checkpoint before it, or since 0.
    there = [v for v in range(12) if not any(g <= v for g in gone if g > 10 or (v < 10 and (g > 5 or v < 5)))]
    m = mounted(table, "--list-versions", "all")
    assert shown(m) == there
    for version, line in history(table).items():
        if line["readable"]:
            assert count(m / f"@v{version}") == 4 * (version + 1)
        else:
            assert version not in there
    for version in set(range(14)) - set(there):
        with pytest.raises(FileNotFoundError):
            os.stat(m / f"@v{version}")
    assert {v for v, line in history(table).items() if line["readable"]} == set(there)


def unreadable(m, snapshot):
    """Opens every file; returns the names of those that cannot be read."""
    out = []
    for name in oracle.walk(snapshot):
        try:
            (snapshot / name).read_bytes()
        except OSError as e:
            assert e.errno == errno.EIO
            out.append(name)
    return out


def check_told(m, names):
    """errors.jsonl names each file that is lost, and what took it."""
    failures = m.failures()
    for name in names:
        told = [f for f in failures if os.path.basename(name) in json.dumps(f)]
        assert told and all("vacuum" in json.dumps(f).lower() for f in told), told


def test_vacuumed_versions_list_their_files_and_say_what_took_them(mounted, table):
    made(table, 3)
    write_deltalake(str(table), rows(100, 5), mode="overwrite")
    write_deltalake(str(table), rows(200, 15), mode="append")
    DeltaTable(str(table)).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    m = mounted(table, "--list-versions", "all")
    lost = {v: unreadable(m, m / f"@v{v}") for v in range(5)}
    assert {v: len(names) for v, names in lost.items()} == {0: 1, 1: 2, 2: 3, 3: 0, 4: 0}
    assert count(m / "@v4") == 20
    check_told(m, lost[2])


@pytest.mark.parametrize(
    "name", ["dat/column_mapping", "delta-kernel-java/basic-dv-no-checkpoint", "kernel-rs-data/type-widening", "delta-golden/kernel-timestamp-INT96"]
)
def test_lost_files_that_would_be_rendered_are_listed_and_named(mounted, tmp_path, name):
    """A file whose size cannot be known without it is lost like any other."""
    source = oracle.copy(oracle.named(name), tmp_path / "table")
    latest = oracle.expected(oracle.named(name))["versions"][-1]
    gone = latest["files"][0]["decoded"]
    os.unlink(source / gone)
    m = mounted(source, "--list-versions", "all")
    snapshot = m / f"@v{latest['version']}"
    assert len(oracle.walk(snapshot)) == latest["numFiles"]
    lost = unreadable(m, snapshot)
    assert [os.path.basename(n) for n in lost] == [os.path.basename(gone)]
    check_told(m, lost)


def test_copied_table_does_not_answer_for_another_time(mounted, table, tmp_path):
    """A copy loses the times of commits: by time nothing is found, and the log of
    the mount says why."""
    made(table, 3)
    start = datetime.datetime(2024, 5, 1, tzinfo=datetime.timezone.utc)
    for version in versions(table):
        log = table / "_delta_log" / f"{version:020}.json"
        when = (start + datetime.timedelta(days=version)).timestamp()
        text = log.read_text()
        stamped = json.loads(text.splitlines()[-1] if "commitInfo" in text.splitlines()[-1] else text.splitlines()[0])
        log.write_text(text.replace(str(stamped["commitInfo"]["timestamp"]), str(int(when * 1000))))
        os.utime(log, (when, when))
    m = mounted(table)
    assert [os.readlink(m / f"@2024-05-0{day}T12:00:00Z") for day in (1, 2, 3)] == ["@v0", "@v1", "@v2"]
    assert "enableInCommitTimestamps" not in m.output()
    shutil.copytree(table, tmp_path / "copy", copy_function=shutil.copyfile)
    m = mounted(tmp_path / "copy")
    for day in (1, 2, 3):
        with pytest.raises(FileNotFoundError):
            os.readlink(m / f"@2024-05-0{day}T12:00:00Z")
    assert m.latest() == 2 and "delta.enableInCommitTimestamps" in m.output()


def in_commit_timestamps(table):
    """Gives a table the feature from its first version on; returns the times."""
    times = {}
    for version in versions(table):
        actions = {k: a for k, a in mount.actions(table, version)}
        times[version] = actions["commitInfo"]["timestamp"] + 60_000 * version
        actions = {"commitInfo": actions.pop("commitInfo") | {"inCommitTimestamp": times[version]}} | actions
        if version == 0:
            actions["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}
            actions["metaData"]["configuration"]["delta.enableInCommitTimestamps"] = "true"
        log = table / "_delta_log" / f"{version:020}.json"
        log.write_text("".join(json.dumps({k: a}) + "\n" for k, a in actions.items()))
    return times


@pytest.mark.parametrize("order", [1, -1, 0], ids=["rising", "reversed", "equal"])
def test_in_commit_timestamps_do_not_care_for_file_times(mounted, table, order):
    made(table, 4)
    times = in_commit_timestamps(table)
    for version in times:
        when = 1_000_000_000 + order * version * 86400
        os.utime(table / "_delta_log" / f"{version:020}.json", (when, when))
    m = mounted(table, "--list-versions", "all")
    links = {n: os.readlink(m / n) for n in os.listdir(m.dir) if n.startswith("@2")}
    assert links == {oracle.spell(t): f"@v{v}" for v, t in times.items()}


def test_in_commit_timestamps_that_fall_lead_to_no_later_version(mounted, tmp_path):
    """Version 1 lies three years before version 0."""
    row = oracle.named("delta-rs/cdc_ict_table")
    source = oracle.copy(row, tmp_path / "table")
    m = mounted(source, "--list-versions", "all")
    links = {n: os.readlink(m / n) for n in os.listdir(m.dir) if n.startswith("@2")}
    assert sorted(links.values()) == [f"@v{v}" for v in oracle.expected(row)["reconstructableVersions"]]
    # The links rise with the versions, and each is found by its name.
    assert [links[n] for n in sorted(links)] == sorted(links.values())
    for name, target in links.items():
        assert os.readlink(m / name) == target


POINTERS = {
    "lags": '{"version":5,"size":8}',
    "is empty": "",
    "names a deleted checkpoint": '{"version":7,"size":8}',
    "lies ahead": '{"version":999,"size":8}',
    "is not JSON": "{version",
    "has a negative version": '{"version":-1,"size":8}',
    "is missing": None,
}


@pytest.mark.parametrize("pointer", POINTERS)
def test_pointer_to_the_last_checkpoint_is_only_a_hint(mounted, table, pointer):
    made(table, 13, checkpoints=(5, 10))
    forget(table, range(5))
    hint = table / "_delta_log" / "_last_checkpoint"
    hint.unlink()
    if POINTERS[pointer] is not None:
        hint.write_text(POINTERS[pointer])
    m = mounted(table, "--list-versions", "all")
    assert shown(m) == list(range(5, 13))
    assert count(m / "latest") == 4 * 13 and count(m / "@v6") == 4 * 7


def without(table, version, action):
    """Rewrites a checkpoint without the rows of an action."""
    path = table / "_delta_log" / f"{version:020}.checkpoint.parquet"
    whole = pq.read_table(path)
    pq.write_table(whole.filter(whole.column(action).is_null()), path)


@pytest.mark.parametrize("action", ["metaData", "protocol"])
def test_checkpoint_without_metadata_or_protocol_is_refused(mounted, table, action):
    made(table, 8, checkpoints=(5,))
    without(table, 5, action)
    m = mounted(table, "--list-versions", "all")
    for version in (5, 7):
        with pytest.raises(OSError) as e:
            os.listdir(m / f"@v{version}")
        assert e.value.errno in (errno.EIO, errno.ENOENT)
    assert action in json.dumps(m.failures())
    assert count(m / "@v4") == 20


def test_checksum_that_contradicts_the_log_changes_nothing(mounted, table):
    """Neither the files, sizes and protocol that a .crc tells of, nor its metadata."""
    made(table, 3)
    meta = dict(mount.actions(table, 0))["metaData"]
    lie = {
        "tableSizeBytes": 1,
        "numFiles": 77,
        "numMetadata": 1,
        "numProtocol": 1,
        "protocol": {"minReaderVersion": 99, "minWriterVersion": 99},
        "metadata": meta | {"schemaString": '{"type":"struct","fields":[]}', "partitionColumns": ["id"]},
        "allFiles": [],
    }
    (table / "_delta_log" / f"{2:020}.crc").write_text(json.dumps(lie))
    m = mounted(table)
    assert count(m / "latest") == 12
    assert [f["name"] for f in json.loads((m / ".delta" / "schema.json").read_text())["fields"]] == ["id"]
    detail = json.loads((m / ".delta" / "detail.json").read_text())
    assert detail["numFiles"] == 3


def compacted(table, first, last, lines):
    path = table / "_delta_log" / f"{first:020}.{last:020}.compacted.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_compacted_commits_that_are_not_reconciled_resurrect_nothing(mounted, table):
    """One that holds an add beside the removal of the same file, newest first."""
    made(table, 3)
    write_deltalake(str(table), rows(100), mode="overwrite")
    write_deltalake(str(table), rows(200), mode="append")
    lines = [{k: a} for v in reversed(range(5)) for k, a in mount.actions(table, v) if k != "commitInfo"]
    compacted(table, 0, 4, lines)
    m = mounted(table, "--list-versions", "all")
    assert [count(m / f"@v{v}") for v in range(5)] == [4, 8, 12, 4, 8]
    ids = sorted(i for n in os.listdir(m / "latest") for i in pq.read_table(m / "latest" / n)["id"].to_pylist())
    assert ids == list(range(100, 104)) + list(range(200, 204))
