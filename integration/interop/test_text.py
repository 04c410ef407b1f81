"""The rows of a version as text, read by the programs that people read text with."""

import base64
import csv
import datetime
import decimal
import json

import deltalake
import pandas
import polars
import pyarrow
import pytest

import oracle

TEXTS = ["plain", "", None, 'say "hi"', "a,b", "two\nlines", "cr\r\nlf", " padded ", "\t", "NULL", "'", "\\N", "é😀", "ends with \\", '"']


@pytest.fixture
def texts(table, mounted):
    """Rows of texts that are hard to quote and numbers that are hard to keep, and their mount."""
    n = range(len(TEXTS))
    rows = pyarrow.table(
        {
            "id": pyarrow.array([2**63 - 1 - i for i in n], pyarrow.int64()),
            "text": pyarrow.array(TEXTS, pyarrow.string()),
            "amount": pyarrow.array(
                [decimal.Decimal(f"-123456789012345678901234567890123456{i % 10}.5") for i in n], pyarrow.decimal128(38, 1)
            ),
            "at": pyarrow.array(
                [datetime.datetime(1500 + 40 * i, 1, 1, 12, 30, 59, i, datetime.timezone.utc) for i in n],
                pyarrow.timestamp("us", "UTC"),
            ),
            "data": pyarrow.array([bytes([i, 255, 0]) for i in n], pyarrow.binary()),
            "list": pyarrow.array([[1, None, i] for i in n], pyarrow.list_(pyarrow.int32())),
        }
    )
    deltalake.write_deltalake(str(table), rows)
    return rows.to_pylist(), mounted(table)


def typed(row):
    """A row of JSON, or of CSV with its nulls, as the values it stands for."""
    return {
        "id": int(row["id"]),
        "text": row["text"],
        "amount": decimal.Decimal(row["amount"]),
        "at": datetime.datetime.fromisoformat(row["at"]),
        "data": base64.b64decode(row["data"]),
        "list": json.loads(row["list"]) if isinstance(row["list"], str) else row["list"],
    }


def test_csv_reads_back_in_python_and_duckdb_and_pandas_and_polars(texts, duck):
    rows, m = texts
    path = m / "@v0.csv"
    with open(path, newline="") as f:
        read = list(csv.DictReader(f))
    # The csv module makes no difference between null and the empty text.
    assert [typed(r) for r in read] == [r | {"text": r["text"] or ""} for r in rows]
    copy = str(m.source) + ".csv"
    with open(path, "rb") as f, open(copy, "wb") as out:
        out.write(f.read())
    columns = "{'id': 'VARCHAR', 'text': 'VARCHAR', 'amount': 'VARCHAR', 'at': 'VARCHAR', 'data': 'VARCHAR', 'list': 'VARCHAR'}"
    read = duck.sql(f"SELECT * FROM read_csv('{copy}', columns={columns}, header=true, quote='\"', escape='\"', allow_quoted_nulls=false)")
    assert [typed(r) for r in read.to_arrow_table().to_pylist()] == rows
    frame = pandas.read_csv(path, dtype=str, keep_default_na=False, lineterminator="\n")
    assert [typed(r) for r in frame.to_dict("records")] == [r | {"text": r["text"] or ""} for r in rows]
    frame = polars.read_csv(copy, infer_schema=False)
    assert [typed(r) for r in frame.to_dicts()] == rows


def test_json_lines_are_exact_in_python_and_duckdb(texts, duck):
    rows, m = texts
    with open(m / "current.jsonl") as f:
        read = [json.loads(line, parse_float=decimal.Decimal) for line in f]
    assert [typed(r) for r in read] == rows
    assert [list(r) for r in read] == [list(rows[0])] * len(rows)
    copy = str(m.source) + ".jsonl"
    with open(m / "@v0.jsonl", "rb") as f, open(copy, "wb") as out:
        out.write(f.read())
    read = duck.sql(f"SELECT id, text, list FROM read_json('{copy}', columns={{'id': 'BIGINT', 'text': 'VARCHAR', 'list': 'INTEGER[]'}})")
    assert read.to_arrow_table().to_pylist() == [{k: r[k] for k in ("id", "text", "list")} for r in rows]


# Of variants that are annotated as such DuckDB tells nothing.
TABLES = [r for r in oracle.of_class("ok") if not r["table"].startswith("variant-stats")]


@pytest.mark.parametrize("row", TABLES, ids=oracle.ids)
def test_text_of_table_has_its_rows_and_columns(row, lake_mount):
    root = lake_mount / oracle.ids(row)
    schema = json.loads((root / "latest" / ".delta" / "schema.json").read_text())
    names = [f["name"] for f in schema["fields"]]
    with open(root / "current.jsonl") as f:
        read = [json.loads(line, parse_float=decimal.Decimal) for line in f]
    assert len(read) == int(row["live_rows"])
    assert all(list(r) == names for r in read)
    with open(root / "current.csv", newline="") as f:
        lines = csv.reader(f)
        assert next(lines) == names
        # A null alone in its line looks like an empty line.
        assert sum(1 for line in lines if line or len(names) == 1) == len(read)
