"""What reads Parquet files in the tests of rows: each reader takes a DuckDB
connection and paths, and returns what to select from. The column "#file" holds
the path of a row's file. No reader looks at the names of directories, and none
makes up for files that lack a column.

The engines at the end read a Delta table by its path instead.
"""

import deltalake
import polars
import pyarrow
import pyarrow.dataset
import pyarrow.parquet

from digest import text


def duckdb(connection, paths):
    listed = ", ".join(text(p) for p in paths)
    return f"read_parquet([{listed}], hive_partitioning=false, filename='#file')"


def pyarrow_(connection, paths):
    files = pyarrow.dataset.dataset(paths, format="parquet")
    for path in paths:
        assert pyarrow.parquet.read_schema(path).names == files.schema.names, path
    # By expressions, since a dot in a name would mean a member of a struct.
    columns = {name: pyarrow.dataset.field(name) for name in files.schema.names}
    parts = []
    for fragment in files.get_fragments():
        part = fragment.to_table(schema=files.schema, columns=columns)
        parts.append(part.append_column("#file", pyarrow.array([fragment.path] * part.num_rows, pyarrow.string())))
    connection.register("read_by_pyarrow", pyarrow.concat_tables(parts))
    return "read_by_pyarrow"


def polars_(connection, paths):
    frame = polars.read_parquet(paths, glob=False, hive_partitioning=False, include_file_paths="#file")
    connection.register("read_by_polars", frame.to_arrow())
    return "read_by_polars"


ALL = {"DuckDB": duckdb, "pyarrow": pyarrow_, "Polars": polars_}


def delta_rs(connection, table):
    found = deltalake.DeltaTable(str(table))
    partitions = found.metadata().partition_columns
    if any(f.name in partitions and "decimal" in str(f.type) for f in found.schema().fields):
        return delta_rs_sql(connection, table)  # it parses no negative decimals here
    connection.register("read_by_delta_rs", found.to_pyarrow_table())
    return "read_by_delta_rs"


def delta_rs_sql(connection, table):
    """By the SQL engine in delta-rs."""
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(table))).execute("SELECT * FROM t")
    connection.register("read_by_delta_rs_sql", pyarrow.table(query))
    return "read_by_delta_rs_sql"


def delta_scan(connection, table):
    return f"delta_scan({text(str(table))})"


def spark(session, version=None):
    def read(connection, table):
        reader = session.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        connection.register("read_by_spark", reader.load(str(table)).toArrow())
        return "read_by_spark"

    return read
