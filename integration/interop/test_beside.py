"""Other engines at work on the same table while it is mounted."""

import multiprocessing
import os
import shutil
import subprocess
import sys
import time

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from mount import actions, eventually, fails, leftovers, versions

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(*ids):
    return pa.table({"id": list(ids), "name": [f"n{i}" for i in ids]}, schema=SCHEMA)


def ids(table, version=None):
    return sorted(DeltaTable(str(table), version=version).to_pyarrow_table()["id"].to_pylist())


def mounted_ids(directory):
    return sorted(i for (i,) in duckdb.sql(f"SELECT id FROM '{directory}/*.parquet'").fetchall())


@pytest.fixture
def live(mounted, table):
    write_deltalake(str(table), rows(1))
    return mounted(table)


def shows(m, version):
    """Nothing once the mount shows the version, else what it shows."""
    return None if m.latest() == version else f"latest is {m.latest()}, not {version}"


def test_appends_of_delta_rs_and_spark_show_within_a_second(spark, live, table):
    assert mounted_ids(live.current) == [1]
    write_deltalake(str(table), rows(2), mode="append")
    eventually(1, lambda: shows(live, 1))
    assert mounted_ids(live.current) == [1, 2]
    spark.createDataFrame([(3, "n3")], "id long, name string").coalesce(1).write.format("delta").mode("append").save(str(table))
    eventually(1, lambda: shows(live, 2))
    assert mounted_ids(live.current) == mounted_ids(live / "@v2") == [1, 2, 3]
    assert (mounted_ids(live / "@v0"), mounted_ids(live / "@v1")) == ([1], [1, 2])


def test_files_removed_elsewhere_are_not_listed_any_more(live, table):
    old = os.listdir(live.current)
    with open(live.current / old[0], "rb") as f:
        before = f.read()
    write_deltalake(str(table), rows(7, 8), mode="overwrite")
    eventually(1, lambda: shows(live, 1))
    names = os.listdir(live.current)
    assert not set(names) & set(old)
    assert mounted_ids(live.current) == [7, 8]
    for name in names:
        assert os.path.getsize(live.current / name) == os.path.getsize(table / name)
    # A reader between its glob and its open is safe.
    with open(live.current / old[0], "rb") as f:
        assert f.read() == before


def test_table_made_again_at_the_same_path_shows_only_the_new_one(live, table):
    shutil.copy(pq_file(table.parent, rows(2)), live.current / "x.parquet")
    write_deltalake(str(table), rows(3), mode="append")
    eventually(1, lambda: shows(live, 2))
    assert mounted_ids(live.current) == [1, 2, 3]
    for entry in os.listdir(table):
        if entry != ".deltafs":
            path = table / entry
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    write_deltalake(str(table), rows(100, 101))
    eventually(2, lambda: shows(live, 0))
    assert mounted_ids(live.current) == mounted_ids(live / "@v0") == [100, 101]
    assert sorted(n for n in os.listdir(live.dir) if n.startswith("@v")) == ["@v0"]
    with pytest.raises(FileNotFoundError):
        os.stat(live / "@v2")
    assert not os.path.exists(live.current / "x.parquet")
    shutil.copy(pq_file(table.parent, rows(102)), live.current / "y.parquet")
    assert ids(table) == [100, 101, 102]


def pq_file(directory, table, name="drop.parquet"):
    path = directory / name
    pq.write_table(table, path)
    return path


def refused(live, table, write):
    before = versions(table)
    fails(write)
    assert versions(table) == before
    reasons = live.failures()
    assert any("_delta_log" in f["name"] for f in reasons), reasons
    assert ids(table) == [1]


def test_delta_rs_pointed_at_current_fails_without_a_commit(live, table):
    refused(live, table, lambda: write_deltalake(str(live.current), rows(2), mode="append"))


def test_spark_delta_pointed_at_current_fails_without_a_commit(spark, live, table):
    frame = spark.createDataFrame([(2, "x")], "id long, name string").coalesce(1)
    refused(live, table, lambda: frame.write.format("delta").mode("append").save(str(live.current)))


def test_vacuum_beside_appends_takes_no_committed_file(live, table, tmp_path, full):
    """Files staged and last modified days ago, vacuumed with an hour's retention."""
    old = time.time() - 5 * 86400
    n = 100 if full else 20
    vacuum = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys\n"
            "from deltalake import DeltaTable\n"
            "print('ready', flush=True)\n"
            "runs = 0\n"
            "while not sys.stdin.closed and runs < 10000:\n"
            "    DeltaTable(sys.argv[1]).vacuum(retention_hours=1, enforce_retention_duration=False, dry_run=False)\n"
            "    runs += 1\n"
            "    print(runs, flush=True)\n",
            str(table),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert vacuum.stdout.readline().strip() == "ready"
        for i in range(n):
            source = pq_file(tmp_path, rows(10 + i), f"f{i}.parquet")
            os.utime(source, (old, old))
            shutil.copy2(source, live.current)
            # Another whole vacuum run has passed over what was just committed.
            vacuum.stdout.readline()
            vacuum.stdout.readline()
    finally:
        vacuum.kill()
        vacuum.wait()
    added = [a["path"] for v in versions(table) for kind, a in actions(table, v) if kind == "add"]
    assert len(added) == n + 1
    # VACUUM goes by the age of the file on disk, whatever its writer said.
    assert all(os.path.getmtime(table / path) > time.time() - 3600 for path in added)
    assert ids(table) == [1] + list(range(10, 10 + n))
    assert mounted_ids(live.current) == ids(table)


APPEND_THROUGH_MOUNT = """
import sys, pyarrow as pa, pyarrow.parquet as pq
target, worker, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for i in range(n):
    id = worker * 1000 + i
    pq.write_table(pa.table({"id": pa.array([id], pa.int64()), "name": [f"w{worker}"]}), f"{target}/w{worker}-{i}.parquet")
"""

APPEND_WITH_DELTA_RS = """
import sys, pyarrow as pa
from deltalake import CommitProperties, write_deltalake
target, worker, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
# Eight others leave it few turns; its 15 attempts by default may all lose.
patient = CommitProperties(max_commit_retries=1000)
for i in range(n):
    id = worker * 1000 + i
    rows = pa.table({"id": pa.array([id], pa.int64()), "name": [f"w{worker}"]})
    write_deltalake(target, rows, mode="append", commit_properties=patient)
"""


def test_two_mounts_eight_processes_and_delta_rs_lose_nothing(live, mounted, table, full):
    other = mounted(table)
    n, beside = (100, 40) if full else (25, 10)
    processes = [
        subprocess.Popen([sys.executable, "-c", APPEND_THROUGH_MOUNT, str((live, other)[w % 2].current), str(w), str(n)])
        for w in range(1, 9)
    ]
    processes.append(subprocess.Popen([sys.executable, "-c", APPEND_WITH_DELTA_RS, str(table), "9", str(beside)]))
    assert [p.wait(600) for p in processes] == [0] * 9
    total = 8 * n + beside
    latest = versions(table)[-1]  # appends of one mount may share a commit
    assert versions(table) == list(range(latest + 1)) and latest <= total
    expected = [1] + [w * 1000 + i for w in range(1, 9) for i in range(n)] + [9000 + i for i in range(beside)]
    assert ids(table) == sorted(expected)
    for m in (live, other):
        eventually(1, lambda: shows(m, latest))
        assert mounted_ids(m.current) == sorted(expected)
        m.close()
    assert leftovers(table) == []


def replace(path, source, barrier, results):
    """Writes a replacement whose close waits for the other one's."""
    data = open(source, "rb").read()
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
    os.write(fd, data)
    barrier.wait(60)
    try:
        os.close(fd)
        results.put(0)
    except OSError as e:
        results.put(e.errno)


def test_two_mounts_replacing_one_name_one_wins(live, mounted, table, tmp_path):
    import errno

    other = mounted(table)
    shutil.copy(pq_file(tmp_path, rows(50)), live.current / "x.parquet")
    eventually(1, lambda: shows(other, 1))
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    writers = [
        context.Process(
            target=replace,
            args=(str(m.current / "x.parquet"), str(pq_file(tmp_path, rows(n), f"{n}.parquet")), barrier, results),
        )
        for m, n in ((live, 60), (other, 70))
    ]
    for w in writers:
        w.start()
    outcomes = sorted(results.get(timeout=60) for _ in writers)
    for w in writers:
        w.join(60)
    assert outcomes == [0, errno.EBUSY]
    assert versions(table) == [0, 1, 2]
    assert ids(table) in ([1, 60], [1, 70])
    kinds = sorted(k for k, _ in actions(table, 2) if k != "commitInfo")
    assert kinds == ["add", "remove"]
    assert any("x.parquet" in f["name"] for m in (live, other) for f in m.failures())
