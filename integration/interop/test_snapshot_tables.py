"""Snapshots as Delta tables: what engines find in those of a table of many features,
and what none of them may do there."""

import pyarrow as pa
import pytest

import digest
import engines
from mount import versions


def by_duckdb(duck, spark, path):
    return duck.sql(f"SELECT * FROM delta_scan({digest.text(str(path))})").to_arrow_table()


def by_delta_rs(duck, spark, path):
    from deltalake import DeltaTable

    return DeltaTable(str(path)).to_pyarrow_table()


def by_delta_rs_sql(duck, spark, path):
    from deltalake import DeltaTable, QueryBuilder

    return pa.table(QueryBuilder().register("t", DeltaTable(str(path))).execute("SELECT * FROM t").read_all())


def by_polars(duck, spark, path):
    import polars

    return polars.read_delta(str(path)).to_arrow()


def by_spark(duck, spark, path):
    return spark.read.format("delta").load(str(path)).toArrow()


ENGINES = {
    "DuckDB": by_duckdb,
    "delta-rs": by_delta_rs,
    "delta-rs SQL": by_delta_rs_sql,
    "Polars": by_polars,
}


@pytest.fixture
def evolved(spark, table):
    """A table by Spark: columns mapped, renamed and dropped, deletion vectors that
    hide the extremes, a partition whose value needs escaping."""
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, a STRING, gone INT, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES "
        "('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, concat('n', id), 1, 'a b/c=d%e' FROM range(100)"
    )
    spark.sql(f"DELETE FROM {name} WHERE id IN (0, 50, 99)")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN a TO b")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN gone")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN a INT")
    spark.sql(f"INSERT INTO {name} (id, b, p, a) VALUES (1000, NULL, NULL, 7)")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN a TYPE BIGINT")
    return table


def test_engines_open_every_snapshot_of_a_table_of_many_features(duck, spark, mounted, evolved):
    m = mounted(evolved, "--read-only")
    for version in versions(evolved):
        wanted = engines.with_spark(spark, evolved, version)
        for name, read in (ENGINES | {"Spark": by_spark}).items():
            found = engines.ordered(read(duck, spark, m / f"@v{version}").to_pylist())
            assert found == wanted, (name, version)


def test_no_engine_answers_from_statistics_of_deleted_rows(duck, spark, mounted, evolved):
    """The smallest and the greatest id are deleted."""
    from deltalake import DeltaTable, QueryBuilder

    m = mounted(evolved, "--read-only")
    snapshot = m / "@v3"
    query = "SELECT count(*), min(id), max(id) FROM "
    assert duck.sql(f"{query} delta_scan('{snapshot}')").fetchall() == [(97, 1, 98)]
    assert [tuple(r) for r in spark.sql(f"{query} delta.`{snapshot}`").collect()] == [(97, 1, 98)]
    found = QueryBuilder().register("t", DeltaTable(str(snapshot))).execute(f"{query} t").read_all()
    assert list(pa.table(found).to_pylist()[0].values()) == [97, 1, 98]


def test_a_raw_snapshot_is_the_table_itself(duck, mounted, evolved):
    m = mounted(evolved, "--read-only", "--view", "raw")
    for version in versions(evolved):
        assert engines.with_duckdb(duck, m / f"@v{version}", version) == engines.with_duckdb(duck, evolved, version)


def test_engines_cannot_write_to_a_snapshot(mounted, table):
    from deltalake import DeltaTable, write_deltalake

    write_deltalake(str(table), pa.table({"id": [1, 2]}))
    m = mounted(table)
    for attempt in (
        lambda: write_deltalake(str(m / "@v0"), pa.table({"id": [3]}), mode="append"),
        lambda: DeltaTable(str(m / "@v0")).delete(),
        lambda: DeltaTable(str(m / "@v0")).create_checkpoint(),
    ):
        with pytest.raises(Exception, match="(?i)read-only|os error 30"):
            attempt()
    assert versions(table) == [0]
    assert engines.with_delta_rs(m / "@v0", 0) == [{"id": 1}, {"id": 2}]
