"""Prints the versions of the engines."""

from importlib.metadata import version

names = {"delta-rs": "deltalake", "DuckDB": "duckdb", "Spark": "pyspark", "delta-spark": "delta-spark"}
print(", ".join(f"{name} {version(package)}" for name, package in names.items()))
