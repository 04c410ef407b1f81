"""DuckDB with its delta extension, from the pinned packages."""

import pathlib

import duckdb
import duckdb_extension_delta


def connect():
    root = pathlib.Path(duckdb_extension_delta.__file__).parent
    (extension,) = root.glob(f"extensions/v{duckdb.__version__}/delta.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension}'")
    # The cache keeps files open, and a mount in use does not end.
    connection.execute("SET enable_external_file_cache = false")
    return connection
