"""Checkpoints that a mount or the command writes: every engine opens the table
from one alone, reads the same rows, and skips files by its statistics."""

import datetime
import decimal
import json
import os
import re
import shutil
import subprocess
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import engines
import mount
import oracle
import readers
import test_tables
from mount import Mount, eventually, versions

DAY = datetime.date(2024, 5, 1)
NOON = datetime.datetime(2024, 5, 1, 12, 30, 15, 123456, tzinfo=datetime.timezone.utc)


def log(table):
    return sorted(os.listdir(table / "_delta_log"))


def checkpoints(table):
    return [int(n[:20]) for n in log(table) if n.endswith(".checkpoint.parquet")]


def checkpoint_alone(table):
    """Leaves nothing of the log before the newest checkpoint but its own commit."""
    newest = checkpoints(table)[-1]
    for name in log(table):
        if re.match(r"\.?\d{20}\.", name):
            version = int(name.lstrip(".")[:20])
            if version < newest or (version == newest and name.endswith(".crc")):
                os.unlink(table / "_delta_log" / name)
    return newest


def command(table):
    out = subprocess.run([mount.BINARY, "checkpoint", "--json", str(table)], capture_output=True, text=True)
    return json.loads(out.stdout) if out.returncode == 0 else None


SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("number", pa.int32()),
        ("ratio", pa.float64()),
        ("thin", pa.float32()),
        ("flag", pa.bool_()),
        ("name", pa.string()),
        ("raw", pa.binary()),
        ("price", pa.decimal128(10, 2)),
        ("cents", pa.decimal128(5, 2)),
        ("total", pa.decimal128(38, 10)),
        ("day", pa.date32()),
        ("seen", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.int64()), ("y", pa.string())])),
    ]
)


def rows(first, n=3):
    return pa.Table.from_pylist(
        [
            {
                "id": i,
                "tiny": i % 100 - 50,
                "small": i,
                "number": -i,
                "ratio": i / 4,
                "thin": i / 2,
                "flag": i % 2 == 0,
                "name": f"name {i} é",
                "raw": bytes([i % 256]),
                "price": decimal.Decimal(i) / 4,
                "cents": decimal.Decimal(-i) / 4,
                "total": decimal.Decimal(-i) * 10**20,
                "day": DAY + datetime.timedelta(days=i),
                "seen": NOON + datetime.timedelta(hours=i),
                "tags": ["a", None, f"t{i}"],
                "place": {"x": i, "y": None},
            }
            for i in range(first, first + n)
        ],
        schema=SCHEMA,
    )


def everywhere(duck, spark, table, version):
    return {
        "delta-rs": engines.with_delta_rs(table, version),
        "Polars": engines.with_polars(table, version),
        "DuckDB": engines.with_duckdb(duck, table, version),
        "Spark": engines.with_spark(spark, table, version),
    }


PROPERTIES = {
    "text": {},
    "structs": {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"},
    "both": {"delta.checkpoint.writeStatsAsStruct": "true"},
}


@pytest.mark.parametrize("statistics", PROPERTIES)
def test_every_engine_reads_the_checkpoint_alone(duck, spark, mounted, table, statistics):
    DeltaTable.create(str(table), schema=SCHEMA, configuration=PROPERTIES[statistics])
    m = mounted(table)
    for i in range(12):
        pq.write_table(rows(10 * i), m.current / f"f{i}.parquet")
    pq.write_table(rows(1000), m.current / "f3.parquet")  # replaces one
    for i in range(14, 20):
        os.unlink(m.current / f"f{i - 10}.parquet")
        fd = os.open(m.current, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
    pq.write_table(rows(2000), m.current / "last.parquet")
    assert versions(table)[-1] == 20
    eventually(30, lambda: None if checkpoints(table) == [10, 20] else log(table))
    # The mount itself goes on from it.
    before = {v: everywhere(duck, spark, table, v) for v in (20,)}
    assert engines.with_mount(duck, m / "@v20") == before[20]["Spark"]
    m.close()
    assert checkpoint_alone(table) == 20
    assert len([n for n in log(table) if n.endswith(".json")]) == 1
    after = everywhere(duck, spark, table, 20)
    for engine, wanted in before[20].items():
        assert len(wanted) == 3 * 7
        assert after[engine] == wanted, engine
    m = mounted(table)
    assert engines.with_mount(duck, m / "@v20") == before[20]["Spark"]
    pq.write_table(rows(3000), m.current / "more.parquet")
    assert len(engines.with_spark(spark, table, 21)) == 3 * 8
    check_hint(table, 20)


def hinted(table):
    """The version that _last_checkpoint names, -1 without one."""
    try:
        return json.loads((table / "_delta_log" / "_last_checkpoint").read_text())["version"]
    except (FileNotFoundError, ValueError, KeyError):
        return -1


def check_hint(table, version):
    hint = json.loads((table / "_delta_log" / "_last_checkpoint").read_text())
    name = table / "_delta_log" / f"{version:020}.checkpoint.parquet"
    file = pq.ParquetFile(name)
    assert hint["version"] == version
    assert hint["sizeInBytes"] == os.path.getsize(name)
    assert hint["size"] == file.metadata.num_rows
    paths = file.read(columns=["add.path"]).column("add").combine_chunks().field("path")
    assert hint["numOfAddFiles"] == len(paths) - paths.null_count


# Predicates and which of the files 0 to 9 hold rows for them: f<i> has the ids
# 10*i to 10*i+2.
PREDICATES = {
    "id = 31": {3},
    "id > 75": {8, 9},
    "tiny = 1": {5},
    "number <= -80": {8, 9},
    "ratio < 1": {0},
    "thin = 20.5": {4},
    "name = 'name 42 é'": {4},
    "price = 15.25": {6},
    "cents < -22": {9},
    "total < -9000000000000000000000": {9},
    "day = DATE '2024-05-12'": {1},
    "seen > TIMESTAMP '2024-05-05 07:00:00+00:00'": {9},
    "place.x = 52": {5},
    "name IS NULL": set(),
}


@pytest.mark.parametrize("statistics", PROPERTIES)
def test_files_are_skipped_by_the_statistics_of_a_checkpoint(duck, spark, mounted, table, statistics):
    DeltaTable.create(str(table), schema=SCHEMA, configuration=PROPERTIES[statistics])
    m = mounted(table)
    for i in range(10):
        pq.write_table(rows(10 * i), m.current / f"f{i}.parquet")
    eventually(30, lambda: None if checkpoints(table) == [10] else log(table))
    m.close()
    names = {}
    for version in versions(table):
        for kind, action in mount.actions(table, version):
            if kind == "add":
                names[action["path"]] = int(re.fullmatch(r"f(\d)\.parquet", action["tags"]["deltafs.name"])[1])
    checkpoint_alone(table)
    frame = spark.read.format("delta").load(str(table))
    for predicate, wanted in PREDICATES.items():
        expected = sorted(i for f in wanted for i in range(10 * f, 10 * f + 3))
        found = frame.where(predicate)
        got = sorted(r.id for r in found.select("id").collect())
        assert set(got) <= set(expected), predicate
        assert {names[os.path.basename(f)] for f in found.inputFiles()} == wanted, f"Spark, {predicate}"
        in_duckdb = duck.sql(f"SELECT id FROM delta_scan('{table}') WHERE {predicate}").fetchall()
        assert sorted(i for (i,) in in_duckdb) == got, f"DuckDB, {predicate}"
    # delta-rs tells what it knows of each file.
    known = pa.table(DeltaTable(str(table)).get_add_actions(flatten=True)).to_pylist()
    assert sorted(a["min.id"] for a in known) == [10 * i for i in range(10)]
    assert sorted(a["max.total"] for a in known) == sorted(decimal.Decimal(-10 * i) * 10**20 for i in range(10))
    assert all(a["null_count.name"] == 0 and a["num_records"] == 3 for a in known)


PARTITIONS = {
    "text": (pa.string(), ["a b/c=d%e", "é", None, "x"]),
    "tiny": (pa.int8(), [-128, 0, None, 127]),
    "small": (pa.int16(), [-1, 0, None, 1]),
    "number": (pa.int32(), [-1, 0, None, 1]),
    "big": (pa.int64(), [-(2**63), 0, None, 2**63 - 1]),
    "ratio": (pa.float64(), [-1.5, 1e10, None, 0.001]),
    "thin": (pa.float32(), [-1.5, 0.0, None, 1.5]),
    "flag": (pa.bool_(), [True, False, None, True]),
    "cents": (pa.decimal128(5, 2), [decimal.Decimal("-1.50"), decimal.Decimal("0.00"), None, decimal.Decimal("1.25")]),
    "price": (pa.decimal128(18, 4), [decimal.Decimal("-1.5000"), decimal.Decimal("0.0000"), None, decimal.Decimal("1.2500")]),
    "total": (pa.decimal128(38, 2), [decimal.Decimal("-1.50"), decimal.Decimal("0.00"), None, decimal.Decimal("1.25")]),
    "day": (pa.date32(), [DAY, datetime.date(1969, 12, 31), None, datetime.date(9999, 12, 31)]),
    "seen": (pa.timestamp("us", tz="UTC"), [NOON, NOON.replace(microsecond=0), None, NOON.replace(year=1969)]),
}


def test_partition_values_of_every_type_survive(duck, spark, table):
    """Written by Spark, checkpointed by the command, with parsed values beside."""
    schema = pa.schema([("id", pa.int64())] + [(n, t) for n, (t, _) in PARTITIONS.items()])
    data = pa.Table.from_pylist(
        [{"id": i} | {n: v[i] for n, (_, v) in PARTITIONS.items()} for i in range(4)], schema=schema
    )
    source = table.parent / "source.parquet"
    pq.write_table(data, source)
    (
        spark.read.parquet(str(source))
        .repartition(1)
        .write.format("delta")
        .partitionBy(*PARTITIONS)
        .option("delta.checkpoint.writeStatsAsStruct", "true")
        .save(str(table))
    )
    # delta-rs does not cast decimals of partitions.
    before = engines.with_duckdb(duck, table, 0), engines.with_spark(spark, table, 0)
    assert command(table)["written"]
    checkpoint_alone(table)
    assert (engines.with_duckdb(duck, table, 0), engines.with_spark(spark, table, 0)) == before
    adds = pq.read_table(table / "_delta_log" / f"{0:020}.checkpoint.parquet", columns=["add"]).column("add").to_pylist()
    ids = {}
    for add in adds:
        if add is not None:
            stats = json.loads(add["stats"])
            assert add["stats_parsed"]["numRecords"] == stats["numRecords"]
            assert add["stats_parsed"]["minValues"]["id"] == stats["minValues"]["id"]
            ids[stats["minValues"]["id"]] = add["partitionValues_parsed"]
    assert [ids[i] for i in range(4)] == [{n: v[i] for n, (_, v) in PARTITIONS.items()} for i in range(4)]
    for name in PARTITIONS:
        for i in (0, 1, 3):
            value = spark.read.format("delta").load(str(table)).where(f"id = {i}").select(name).collect()[0][0]
            assert engines.plain(value) is not None, name
        assert spark.read.format("delta").load(str(table)).where(f"{name} IS NULL").count() == 1


def test_other_engines_go_on_from_a_checkpoint(duck, spark, mounted, table):
    """Spark and delta-rs write, checkpoint and are checkpointed in turn."""
    DeltaTable.create(str(table), schema=SCHEMA, configuration={"delta.checkpointInterval": "3"})
    m = mounted(table)
    for i in range(12):
        data = rows(10 * i)
        if i % 3 == 0:
            pq.write_table(data, table.parent / "x.parquet")
            frame = spark.read.schema(spark.read.format("delta").load(str(table)).schema).parquet(str(table.parent / "x.parquet"))
            frame.write.format("delta").mode("append").save(str(table))
        else:
            pq.write_table(data, m.current / f"f{i}.parquet")
    assert versions(table)[-1] == 12
    eventually(30, lambda: None if checkpoints(table)[-1] == 12 else log(table))
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id < 40")
    DeltaTable(str(table)).create_checkpoint()
    pq.write_table(rows(500), m.current / "g.parquet")
    pq.write_table(rows(600), m.current / "h.parquet")
    eventually(30, lambda: None if 15 in checkpoints(table) else log(table))
    wanted = everywhere(duck, spark, table, 15)
    m.close()
    assert checkpoint_alone(table) == 15
    assert everywhere(duck, spark, table, 15) == wanted
    assert len(wanted["Spark"]) == 3 * (12 - 4 + 2)


def test_every_engine_copes_with_a_log_that_the_mount_cleaned_up(duck, spark, mounted, table):
    """Versions 0 to 9 are older than the retention; another mount is open."""
    # Spark travels no further back than deleted files are kept.
    properties = {"delta.logRetentionDuration": "interval 5 days", "delta.deletedFileRetentionDuration": "interval 30 days"}
    DeltaTable.create(str(table), schema=SCHEMA, configuration=properties)
    m = mounted(table)
    for i in range(19):
        pq.write_table(rows(10 * i), m.current / f"f{i}.parquet")
    eventually(30, lambda: None if checkpoints(table) == [10] else log(table))
    m.close()
    now = time.time()
    for version in versions(table):
        when = now - (20 - version) * 86400
        os.utime(table / "_delta_log" / f"{version:020}.json", (when, when))
    other = mounted(table)
    assert engines.with_mount(duck, other / "@v3") == engines.with_delta_rs(table, 3)
    m = mounted(table)
    pq.write_table(rows(1000), m.current / "last.parquet")
    eventually(30, lambda: None if versions(table) == list(range(10, 21)) else log(table))
    assert checkpoints(table) == [10, 20]
    for version in (10, 15, 20):
        wanted = 3 * version
        for engine, found in everywhere(duck, spark, table, version).items():
            assert len(found) == wanted, (engine, version)
        for view in (m, other):
            assert len(engines.with_mount(duck, view / f"@v{version}")) == wanted
    for view in (m, other):
        with pytest.raises(FileNotFoundError):
            os.stat(view / "@v9")
        # A file whose commit is gone.
        name = "f0.parquet" if view is m else "f1.parquet"
        os.unlink(view.current / name)
        fd = os.open(view.current, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
    assert versions(table)[-1] == 22
    removed = [a for v in (21, 22) for kind, a in mount.actions(table, v) if kind == "remove"]
    assert len(removed) == 2 and all(a["extendedFileMetadata"] and a["size"] > 0 for a in removed)
    assert len(engines.with_spark(spark, table, 22)) == 3 * 18


@pytest.fixture(scope="module")
def checkpointed(tmp_path_factory):
    """A copy of the third-party tables that can be written, each with nothing
    but a checkpoint of its newest version."""
    root = tmp_path_factory.mktemp("checkpointed")
    done = []
    for row in test_tables.READABLE:
        target = root / oracle.ids(row)
        shutil.copytree(oracle.ROOT / row["table_path"], target, symlinks=True)
        before = hinted(target)
        result = command(target)
        if result is None:
            shutil.rmtree(target)
            continue
        checkpoint_alone(target)
        done.append((row, result, before))
    return root, done


def spark_takes_paths(duck, table):
    """Spark takes what is before a colon for the scheme of a URI, also in tables
    of writers that do not escape it."""
    checkpoints = str(table / "_delta_log" / "*.checkpoint*.parquet")
    paths = duck.execute("SELECT add.path FROM read_parquet(?) WHERE add IS NOT NULL", [checkpoints]).fetchall()
    return not any(re.match("[^/:]*[^/:A-Za-z0-9+.-][^/:]*:", path) for path, in paths)


def test_third_party_tables_are_the_same_from_a_checkpoint(duck, spark, checkpointed, full):
    root, done = checkpointed
    compared = by_spark = 0
    with Mount(root, "--read-only", "--list-versions", "all") as m:
        for i, (row, result, hint) in enumerate(done):
            expected = oracle.expected(row)
            newest = expected["versions"][-1]
            assert result["version"] == newest["version"] == expected["latestVersion"], row
            table = root / oracle.ids(row)
            snapshot = m / oracle.ids(row) / f"@v{newest['version']}"
            try:
                files = oracle.walk(snapshot)
                test_tables.check_names(newest, files)
                if row["class"] != "template":  # whose deletion vector has a placeholder for a path
                    compared += test_tables.check_rows(duck, snapshot, newest, files, newest["partitionColumns"], readers.duckdb)
                if result["written"]:
                    assert result["numFiles"] == newest["numFiles"]
                    if hint < newest["version"]:
                        check_hint(table, newest["version"])
                # Spark opens no version without its commit, and takes its time.
                if versions(table) and row["class"] == "ok" and (full or i % 8 == 0) and spark_takes_paths(duck, table):
                    found = spark.read.format("delta").load(str(table)).inputFiles()
                    assert len(found) == newest["numFiles"], "Spark"
                    by_spark += 1
            except Exception as e:
                e.add_note(str(row))
                raise
    written = [r for _, r, _ in done if r["written"]]
    assert len(written) > 80 and compared > 50 and by_spark > 10, (len(written), compared, by_spark)
