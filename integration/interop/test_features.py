"""Tables that Spark makes with every feature that changes what a file holds:
the mount shows at each version what Spark reads there, in files that need no
knowledge of Delta; its snapshots open in engines that lack the feature; and an
append through the mount goes on or is refused by the feature's name."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import digest
import mount
import oracle
import readers
import test_tables
from mount import versions

FILLED = ("--fill-partitions", "--list-versions", "all")


class Maker:
    """Runs SQL on one table; {t} stands for it."""

    def __init__(self, session, table):
        self.session, self.table = session, table

    def __call__(self, *statements):
        for statement in statements:
            self.session.sql(statement.replace("{t}", f"delta.`{self.table}`"))

    def create(self, columns, *, partitioned="", clustered="", **properties):
        """Properties are named with _ for a dot."""
        listed = ", ".join(f"'delta.{k.replace('_', '.')}' = '{v}'" for k, v in properties.items())
        self(
            f"CREATE TABLE {{t}} ({columns}) USING delta "
            + (f"PARTITIONED BY ({partitioned}) " if partitioned else "")
            + (f"CLUSTER BY ({clustered}) " if clustered else "")
            + (f"TBLPROPERTIES ({listed})" if listed else "")
        )


@pytest.fixture
def sql(spark, table):
    return Maker(spark, table)


def check_version(duck, spark, table, snapshot, version):
    """Spark, the readers of the mount, and engines through the hidden log agree."""
    schema = test_tables.schema_of(snapshot)
    source = readers.spark(spark, version)(duck, table)
    assert [n for n, _ in digest.columns(duck, source)] == [f["name"] for f in schema["fields"]]
    wanted = digest.digest(duck, source, schema)
    files = oracle.walk(snapshot)
    for name, read in readers.ALL.items():
        if not files:
            assert wanted[0] == 0
            continue
        source = read(duck, [str(snapshot / f) for f in files])
        test_tables.check_columns(duck, source, schema, [])
        assert digest.digest(duck, source, schema) == wanted, name
    for name, read in {"delta-rs": readers.delta_rs, "delta_scan": readers.delta_scan}.items():
        assert digest.digest(duck, read(duck, snapshot), schema) == wanted, f"{name} through the hidden log"
    return wanted[0]


def check(duck, spark, mounted, table, *flags):
    """Compares every version; returns the rows of each, and the mount."""
    m = mounted(table, *FILLED, *flags)
    counts = []
    for version in versions(table):
        try:
            counts.append(check_version(duck, spark, table, m / f"@v{version}", version))
        except Exception as e:
            e.add_note(f"version {version}: {mount.actions(table, version)[0]}")
            raise
    return counts, m


def appended(m, table, rows, directory=""):
    """Appends through the mount; it is one commit."""
    before = versions(table)[-1]
    os.makedirs(m.current / directory, exist_ok=True)
    pq.write_table(rows, m.current / directory / "appended.parquet")
    assert versions(table)[-1] == before + 1, m.failures()
    return before + 1


def refused(m, table, rows, feature, directory=""):
    """An append through the mount is refused by the feature's name."""
    before = versions(table)

    def write():
        os.makedirs(m.current / directory, exist_ok=True)
        pq.write_table(rows, m.current / directory / "appended.parquet")

    mount.fails(write)
    assert versions(table) == before
    told = json.dumps(m.failures()) + (m / ".delta" / "status.json").read_text()
    assert feature in told, told


def goes_on(duck, spark, m, table, rows, total):
    version = appended(m, table, rows)
    assert check_version(duck, spark, table, m / f"@v{version}", version) == total


PEOPLE = "id BIGINT, name STRING, at TIMESTAMP"


def people(sql, first, last, files=1):
    sql(
        f"INSERT INTO {{t}} SELECT /*+ REPARTITION({files}) */ id, concat('name ', id), "
        f"timestamp_micros(1700000000000000 + id * 1000003) FROM range({first}, {last})"
    )


def person(i):
    return pa.table(
        {"id": [i], "name": ["appended"], "at": [1_700_000_000_000_000]},
        schema=pa.schema([("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us", tz="UTC"))]),
    )


def test_deletion_vectors_of_delete_update_and_merge(duck, spark, sql, mounted, table):
    sql.create(PEOPLE, enableDeletionVectors="true")
    people(sql, 0, 3000, files=2)
    sql(
        "DELETE FROM {t} WHERE id % 3 = 0",
        "UPDATE {t} SET name = 'updated' WHERE id % 500 = 1",
        "MERGE INTO {t} t USING (SELECT id FROM range(2990, 3010)) s ON t.id = s.id "
        "WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')",
        "DELETE FROM {t} WHERE id IN (2, 3009)",
    )
    counts, m = check(duck, spark, mounted, table)
    assert counts[:3] == [0, 3000, 2000] and counts[5] == counts[4] - 2
    assert any("deletionVector" in a for v in versions(table) for k, a in mount.actions(table, v) if k == "add")
    goes_on(duck, spark, m, table, person(9000), counts[-1] + 1)


def test_deletion_vectors_of_partitions(duck, spark, sql, mounted, table):
    sql.create("id BIGINT, tags ARRAY<STRING>, p INT, q STRING", partitioned="p, q", enableDeletionVectors="true")
    sql(
        "INSERT INTO {t} SELECT id, if(id % 4 = 0, NULL, array('a', concat('t', id), NULL)), id % 2, "
        "if(id % 3 = 0, NULL, 'x y') FROM range(100)",
        "DELETE FROM {t} WHERE id < 30 AND p = 1",
        "DELETE FROM {t} WHERE id % 7 = 0",
    )
    counts, _ = check(duck, spark, mounted, table)
    assert counts == [0, 100, 85, 85 - sum(1 for i in range(0, 100, 7) if i >= 30 or i % 2 == 0)]


NESTED = (
    "a INT, b INT, s STRUCT<x: INT, y: STRING, in: STRUCT<u: INT, v: INT>>, "
    "l ARRAY<STRUCT<p: INT, q: INT>>, m MAP<STRING, STRUCT<k: INT, z: INT>>, part STRING"
)


def nested(sql, i):
    """A row with the values i, i+1, … in the order of the schema's leaves."""
    sql(
        f"INSERT INTO {{t}} SELECT {i}, {i + 1}, named_struct('x', {i + 2}, 'y', 'y{i}', 'in', named_struct('u', {i + 3}, 'v', {i + 4})), "
        f"array(named_struct('p', {i + 5}, 'q', {i + 6}), NULL), map('k', named_struct('k', {i + 7}, 'z', {i + 8}), 'n', NULL), 'part {i}'"
    )


def nested_after_changes(sql, i):
    """A row of the schema that is left after the renames and drops."""
    columns = [f["name"] for f in json.loads(sql.session.read.format("delta").load(str(sql.table)).schema.json())["fields"]]
    assert columns == ["a", "c", "s", "l", "m", "the part"]
    sql(
        f"INSERT INTO {{t}} SELECT 'a{i}', {i + 1}, named_struct('y', 'y', 'in', named_struct('v', {i}, 'u', {i + 1}), 'x', 'x{i}'), "
        f"array(named_struct('q', {i + 2}, 'p', {i + 3}, 'r', 0.5D), NULL), map('k', named_struct('z', {i + 4}, 'k', {i + 5}, 'r', 1.25)), 'part {i}'"
    )


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping_with_renames_swaps_and_drops(duck, spark, sql, mounted, table, mode):
    sql.create(NESTED, partitioned="part", columnMapping_mode=mode)
    nested(sql, 10)
    sql("ALTER TABLE {t} RENAME COLUMN a TO c", "ALTER TABLE {t} RENAME COLUMN b TO a")
    nested(sql, 20)
    # Swaps at every depth.
    for prefix, one, two in (("", "a", "c"), ("s.in.", "u", "v"), ("l.element.", "p", "q"), ("m.value.", "k", "z")):
        sql(
            f"ALTER TABLE {{t}} RENAME COLUMN {prefix}{one} TO swapping",
            f"ALTER TABLE {{t}} RENAME COLUMN {prefix}{two} TO {one}",
            f"ALTER TABLE {{t}} RENAME COLUMN {prefix}swapping TO {two}",
        )
    nested(sql, 30)
    sql(
        "ALTER TABLE {t} RENAME COLUMN part TO `the part`",
        "ALTER TABLE {t} DROP COLUMN s.x",
        "ALTER TABLE {t} DROP COLUMN a",
        "ALTER TABLE {t} ADD COLUMNS (a STRING FIRST, s.x STRING, l.element.r DOUBLE, m.value.r DECIMAL(10, 2))",
    )
    nested_after_changes(sql, 40)
    counts, m = check(duck, spark, mounted, table)
    assert counts[-1] == 4
    refused(m, table, person(1), f"column mapping by {mode}", "the part=x")


def test_column_mapping_enabled_later(duck, spark, sql, mounted, table):
    """Old files have the logical names of then, and no field ids."""
    sql.create("a INT, b INT", enableDeletionVectors="true")
    sql(
        "INSERT INTO {t} VALUES (1, 10), (2, 20)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {t} RENAME COLUMN a TO c",
        "ALTER TABLE {t} RENAME COLUMN b TO a",
        "INSERT INTO {t} (a, c) VALUES (1, 3)",
        # Hits the column that is called a today: the row of the first file stays.
        "DELETE FROM {t} WHERE a = 1",
        "ALTER TABLE {t} DROP COLUMN c",
    )
    counts, m = check(duck, spark, mounted, table)
    assert counts[-2:] == [2, 2]
    got = duck.sql(f"SELECT * FROM read_parquet('{m / 'latest'}/*.parquet', hive_partitioning=false)").fetchall()
    assert sorted(got) == [(10,), (20,)]
    refused(m, table, person(1), "column mapping by name")


def test_type_widening_at_every_depth(duck, spark, sql, mounted, table):
    sql.create(
        "b BYTE, s SHORT, i INT, f FLOAT, d DECIMAL(6, 2), day DATE, id INT, "
        "n STRUCT<x: BYTE, y: STRUCT<z: FLOAT>>, l ARRAY<INT>, ll ARRAY<STRUCT<p: SHORT>>, m MAP<SHORT, INT>, part INT",
        partitioned="part",
        enableTypeWidening="true",
        feature_timestampNtz="supported",
    )

    def row(i):
        sql(
            f"INSERT INTO {{t}} VALUES ({i}, {-i}, {i}, {i}.25, {i}.75, DATE '1500-01-{i:02}', {i}, "
            f"named_struct('x', {i}, 'y', named_struct('z', {i}.5)), array({i}, NULL), "
            f"array(named_struct('p', {i}), NULL), map({i}, {i}, {-i}, NULL), {i % 2})"
        )

    row(1)
    sql("INSERT INTO {t} (id, part) VALUES (2, NULL)")
    for column, t in (
        ("b", "SHORT"),
        ("s", "INT"),
        ("i", "BIGINT"),
        ("f", "DOUBLE"),
        ("d", "DECIMAL(18, 4)"),
        ("day", "TIMESTAMP_NTZ"),
        ("n.x", "INT"),
        ("n.y.z", "DOUBLE"),
        ("l.element", "BIGINT"),
        ("ll.element.p", "INT"),
        ("m.key", "INT"),
        ("m.value", "BIGINT"),
        ("part", "BIGINT"),
    ):
        sql(f"ALTER TABLE {{t}} ALTER COLUMN {column} TYPE {t}")
    row(3)
    for column, t in (
        ("b", "BIGINT"),
        ("i", "DECIMAL(22, 2)"),
        ("s", "DOUBLE"),
        ("id", "DOUBLE"),
        ("d", "DECIMAL(38, 10)"),
        ("n.x", "BIGINT"),
        ("l.element", "DECIMAL(20, 0)"),
    ):
        sql(f"ALTER TABLE {{t}} ALTER COLUMN {column} TYPE {t}")
    row(4)
    counts, m = check(duck, spark, mounted, table)
    assert counts[-1] == 4
    refused(m, table, person(1), "widened", "part=1")


def test_v2_checkpoints_with_sidecars(duck, spark, sql, mounted, table):
    spark.conf.set("spark.databricks.delta.checkpoint.partSize", "3")
    try:
        sql.create(PEOPLE, checkpointPolicy="v2", checkpointInterval="4", enableDeletionVectors="true")
        for i in range(6):
            people(sql, 10 * i, 10 * i + 10, files=2)
        sql("DELETE FROM {t} WHERE id % 10 = 3")
    finally:
        spark.conf.unset("spark.databricks.delta.checkpoint.partSize")
    log = table / "_delta_log"
    (checkpoint,) = [n for n in os.listdir(log) if ".checkpoint." in n and n.startswith(f"{4:020}")]
    assert len(os.listdir(log / "_sidecars")) > 1
    counts, m = check(duck, spark, mounted, table)
    assert counts == [0, 10, 20, 30, 40, 50, 60, 54]
    m.close()
    for version in range(4):
        os.unlink(log / f"{version:020}.json")
    m = mounted(table, *FILLED)
    assert sorted(n for n in os.listdir(m.dir) if n.startswith("@v")) == ["@v4", "@v5", "@v6", "@v7"], checkpoint
    assert check_version(duck, spark, table, m / "@v7", 7) == 54
    goes_on(duck, spark, m, table, person(9000), 55)


def test_row_tracking(duck, spark, sql, mounted, table):
    """Updated files keep row ids in columns that are no part of the table."""
    sql.create(PEOPLE, enableRowTracking="true")
    people(sql, 0, 10)
    sql("UPDATE {t} SET name = 'x' WHERE id = 3", "OPTIMIZE {t}")
    people(sql, 10, 12)
    counts, m = check(duck, spark, mounted, table)
    assert counts[1:3] == [10, 10] and counts[-1] == 12
    refused(m, table, person(1), "rowTracking")


def test_clustering(duck, spark, sql, mounted, table):
    sql.create(PEOPLE, clustered="id")
    people(sql, 0, 10)
    people(sql, 10, 20)
    sql("OPTIMIZE {t}")
    counts, m = check(duck, spark, mounted, table)
    assert counts == [0, 10, 20, 20]
    goes_on(duck, spark, m, table, person(9000), 21)


def test_generated_identity_and_default_columns(duck, spark, mounted, table):
    from delta.tables import DeltaTable as Table
    from delta.tables import IdentityGenerator

    (
        Table.create(spark)
        .location(str(table))
        .addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator(start=5, step=3))
        .addColumn("at", "TIMESTAMP")
        .addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)")
        .addColumn("name", "STRING")
        .partitionedBy("day")
        .execute()
    )
    sql = Maker(spark, table)
    sql(
        "INSERT INTO {t} (at, name) VALUES (TIMESTAMP '2024-05-01 23:30:00', 'a'), (TIMESTAMP '1582-10-04 00:00:00', 'b'), (NULL, 'c')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        "ALTER TABLE {t} ALTER COLUMN name SET DEFAULT 'unknown'",
        "INSERT INTO {t} (at) VALUES (TIMESTAMP '2024-05-02 00:00:00')",
        "ALTER TABLE {t} ADD COLUMNS (later DECIMAL(5, 1))",
    )
    counts, m = check(duck, spark, mounted, table)
    assert counts == [0, 3, 3, 3, 4, 4]
    refused(m, table, person(1), "column", "day=2024-05-01")


def test_checks_and_change_data(duck, spark, sql, mounted, table):
    """Change data files are no files of the table, _change_type is no column."""
    sql.create(PEOPLE + " NOT NULL", enableChangeDataFeed="true", enableInCommitTimestamps="true")
    people(sql, 0, 10)
    sql(
        "UPDATE {t} SET name = 'x' WHERE id < 3",
        "DELETE FROM {t} WHERE id = 9",
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)",
    )
    counts, m = check(duck, spark, mounted, table)
    assert counts == [0, 10, 10, 9, 9]
    refused(m, table, person(1), "CHECK constraint positive")


VALUES = [
    "1", "-128", "70000", "1.5", "12345678901234.567", "true", "false", "null", '"text"', '"2024-05-01"',
    "[]", '[1, "two", null, [3]]', "{}", '{"a": 1, "b": {"c": [1.25, "x"]}, "ä": null}', '"' + "long " * 30 + '"',
]  # fmt: skip


def test_variant(duck, spark, sql, mounted, table):
    sql.create("id INT, v VARIANT, s STRUCT<w: VARIANT, n: INT>", enableDeletionVectors="true")
    rows = []
    for i, value in enumerate(VALUES):
        json_text = "parse_json('" + value.replace("'", "\\'") + "')"
        rows.append(f"SELECT {i} AS id, {json_text} AS v, named_struct('w', {json_text}, 'n', {i}) AS s")
    sql(
        "INSERT INTO {t} " + " UNION ALL ".join(rows) + " UNION ALL SELECT 99, NULL, NULL",
        "DELETE FROM {t} WHERE id = 1",
        "ALTER TABLE {t} ADD COLUMNS (more VARIANT)",
    )
    m = mounted(table, *FILLED)
    for version in range(1, versions(table)[-1] + 1):
        frame = spark.read.format("delta").option("versionAsOf", version).load(str(table))
        wanted = {r[0]: (r[1], r[2]) for r in frame.selectExpr("id", "to_json(v)", "to_json(s.w)").collect()}
        found = duck.sql(
            f"SELECT id, CAST(v AS JSON)::VARCHAR, CAST(s.w AS JSON)::VARCHAR FROM read_parquet('{m / f'@v{version}'}/*.parquet')"
        ).fetchall()
        assert {i: (parsed(v), parsed(w)) for i, v, w in found} == {i: (parsed(v), parsed(w)) for i, (v, w) in wanted.items()}
        assert len(found) == len(wanted)
        again = spark.read.format("delta").load(str(m / f"@v{version}"))
        assert {r[0]: (r[1], r[2]) for r in again.selectExpr("id", "to_json(v)", "to_json(s.w)").collect()} == wanted
    refused(m, table, person(1), "variant")


def parsed(value):
    return None if value is None else json.loads(value)


def test_shallow_clone(duck, spark, sql, mounted, table, tmp_path):
    """A clone shows the files of its source only where the mount allows them."""
    source = tmp_path / "the source"
    made = Maker(spark, source)
    made.create(PEOPLE + ", day STRING", partitioned="day", enableDeletionVectors="true", columnMapping_mode="name")
    made(
        "INSERT INTO {t} SELECT id, concat('n', id), NULL, concat('day ', id % 2) FROM range(20)",
        "ALTER TABLE {t} RENAME COLUMN name TO title",
        "DELETE FROM {t} WHERE id % 5 = 0",
    )
    sql(
        f"CREATE TABLE {{t}} SHALLOW CLONE delta.`{source}`",
        "DELETE FROM {t} WHERE id % 5 = 1",
        "INSERT INTO {t} VALUES (100, 'mine', NULL, 'day 3')",
    )
    counts, m = check(duck, spark, mounted, table, "--allow-path", str(source))
    assert counts == [16, 12, 13]
    m.close()
    m = mounted(table, *FILLED)
    (own,) = os.listdir(m / "latest" / "day=day 3")
    assert pq.read_table(m / "latest" / "day=day 3" / own)["title"].to_pylist() == ["mine"]
    (others, *_) = os.listdir(m / "latest" / "day=day 1")
    with pytest.raises(PermissionError):
        (m / "latest" / "day=day 1" / others).read_bytes()
    assert "--allow-path" in (m / ".delta" / "errors.jsonl").read_text()


def test_delta_rs_writes_of_every_kind(duck, spark, mounted, table):
    from deltalake import write_deltalake

    def rows(first, n, **more):
        return pa.table({"id": range(first, first + n), "name": [f"n{i}" for i in range(first, first + n)]} | more)

    write_deltalake(str(table), rows(0, 10), partition_by=["name"], configuration={"delta.enableChangeDataFeed": "true"})
    write_deltalake(str(table), rows(10, 5, extra=[1.5] * 5), mode="append", schema_mode="merge")
    DeltaTable(str(table)).delete("id < 3")
    DeltaTable(str(table)).update(updates={"extra": "2.5"}, predicate="id > 7")
    (
        DeltaTable(str(table))
        .merge(rows(8, 8, extra=[9.0] * 8), "s.id = t.id", source_alias="s", target_alias="t")
        .when_matched_update({"extra": "s.extra"})
        .when_not_matched_insert_all()
        .execute()
    )
    DeltaTable(str(table)).optimize.compact()
    write_deltalake(str(table), rows(0, 1), mode="overwrite", schema_mode="overwrite")
    DeltaTable(str(table)).restore(4)
    DeltaTable(str(table)).create_checkpoint()
    counts, _ = check(duck, spark, mounted, table)
    assert counts[:5] == [10, 15, 12, 12, 13] and counts[-1] == 13
