"""Delta engines open a snapshot of a mount by its path, through the hidden
_delta_log, as the Delta table that it is, whatever features the table has."""

import json
import os
import re

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

import digest
import oracle
import readers
import test_tables
from oracle import expected, ids

TABLES = oracle.of_class("ok", "template")


ENGINES = {"delta-rs": readers.delta_rs, "delta-rs SQL": readers.delta_rs_sql, "delta_scan": readers.delta_scan}

# A feature that a version needs however it is shown, and that engines lack.
LACKED = {"delta-rs": "variantShredding-preview", "delta-rs SQL": "variantShredding-preview"}


def check_snapshot(duck, snapshot, version, read):
    schema = test_tables.schema_of(snapshot)
    source = read(duck, snapshot)
    content = version.get("content") or {}
    if "digest" in content:
        assert [n for n, _ in digest.columns(duck, source)] == [f["name"] for f in schema["fields"]]
        assert digest.digest(duck, source, schema) == (content["rows"], content["digest"])
        return
    assert test_tables.UNDIGESTED.search(json.dumps(schema)), "the oracle has no digest"
    assert duck.sql(f"SELECT count(*) FROM {source}").fetchall() == [(version["numRows"],)]


@pytest.fixture(scope="session")
def as_delta_report(report):
    lines = report["third-party tables through the hidden _delta_log"] = []
    return lines


def check_versions(duck, row, root, engines, full, report):
    told = [v for v in expected(row)["versions"] if v["reconstructable"] and "numRows" in v and not oracle.missing(v)]
    chosen = test_tables.sample(row, [v["version"] for v in told], full, n=1)
    for name, read in engines.items():
        for version in told:
            if version["version"] not in chosen:
                continue
            snapshot = root / f"@v{version['version']}"
            try:
                if LACKED.get(name) in version["protocol"].get("readerFeatures", []):
                    with pytest.raises(DeltaError, match="(?i)variant-?shredding"):
                        read(duck, snapshot)
                    continue
                check_snapshot(duck, snapshot, version, read)
            except Exception as e:
                e.add_note(f"{name}: {snapshot}")
                raise
        report.append(f"{ids(row):78} {name:13} versions {sorted(chosen)}")


@pytest.mark.parametrize("row", TABLES, ids=ids)
def test_snapshot_opens_as_a_delta_table(duck, lake_mount, as_delta_report, row, full):
    check_versions(duck, row, lake_mount / ids(row), ENGINES, full, as_delta_report)


def test_snapshots_open_as_delta_tables_in_spark(duck, spark, lake_mount, as_delta_report, full):
    """All tables in the long form, else every eighth."""
    for row in TABLES if full else TABLES[::8]:
        check_versions(duck, row, lake_mount / ids(row), {"Spark": readers.spark(spark)}, full, as_delta_report)


def test_hidden_log_is_of_its_version_and_not_listed(lake_mount):
    """The log of a snapshot ends at its version, and no listing shows it."""
    root = lake_mount / "delta-rs/simple_table"
    for version in expected(oracle.named("delta-rs/simple_table"))["reconstructableVersions"]:
        snapshot = root / f"@v{version}"
        assert not [n for n in os.listdir(snapshot) if not n.endswith(".parquet")]
        assert os.path.isdir(snapshot / "_delta_log")
        names = os.listdir(snapshot / "_delta_log")
        numbers = [int(n[:20]) for n in names if re.match(r"\d{20}\.", n)]
        assert max(numbers) == version
        assert DeltaTable(str(snapshot)).version() == version
