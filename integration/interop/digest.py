"""The row digest of a set of Parquet files under a Delta schema, by DuckDB.

It is the digest of the oracles beside the third-party tables: independent of
order, over the logical columns in schema order, each cast to its Delta type.
A column that a file lacks reads as null.
"""

import re

PRIMITIVES = {
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "void": "VARCHAR",
}


def quote(name):
    return '"' + name.replace('"', '""') + '"'


def text(value):
    return "'" + value.replace("'", "''") + "'"


def sql_type(t):
    """The DuckDB type of a Delta type, as the schema string has it."""
    if isinstance(t, str):
        if t.startswith(("char(", "varchar(")):
            return "VARCHAR"
        return PRIMITIVES.get(t) or t.upper()
    match t["type"]:
        case "array":
            return sql_type(t["elementType"]) + "[]"
        case "map":
            return f"MAP({sql_type(t['keyType'])}, {sql_type(t['valueType'])})"
        case "struct":
            fields = ", ".join(f"{quote(f['name'])} {sql_type(f['type'])}" for f in t["fields"])
            return f"STRUCT({fields})"
    raise ValueError(f"no such Delta type: {t}")


def column(field, found, partition):
    """The SQL expression of a column: from the partition values, the files, or null."""
    name, t = field["name"], sql_type(field["type"])
    if name in partition:
        value = f"p.{quote(name)}"
        if t == "BLOB":
            expression = f"encode({value})"
        else:
            expression = f"CAST({value} AS {t})"
    elif name.lower() not in found:
        expression = f"CAST(NULL AS {t})"
    else:
        expression = cast(f"f.{quote(found[name.lower()][0])}", found[name.lower()][1], field["type"])
    return f"{expression} AS {quote(name)}"


def cast(expression, has, want):
    """Casts by type; a struct field by field, since files may lack fields."""
    if isinstance(want, dict) and want["type"] == "struct" and has.id == "struct":
        children = {n.lower(): (n, c) for n, c in has.children}
        packed = []
        for f in want["fields"]:
            got = children.get(f["name"].lower())
            inner = (
                cast(f"{expression}.{quote(got[0])}", got[1], f["type"])
                if got
                else f"CAST(NULL AS {sql_type(f['type'])})"
            )
            packed.append(f"{quote(f['name'])} := {inner}")
        return f"CASE WHEN {expression} IS NULL THEN NULL ELSE struct_pack({', '.join(packed)}) END"
    return f"CAST({expression} AS {sql_type(want)})"


def digest(duck, files, schema, partition_columns):
    """Returns (rows, digest) of files: a list of (path, partition values by column).

    A partition value is text in Delta's serialisation; '' and None are null.
    """
    if not files:
        return 0, "0"
    paths = ", ".join(text(path) for path, _ in files)
    scan = f"read_parquet([{paths}], union_by_name=true, hive_partitioning=false, filename='#file')"
    relation = duck.sql(f"SELECT * FROM {scan} LIMIT 0")
    found = {n.lower(): (n, t) for n, t in zip(relation.columns, relation.types)}
    names = {f["name"].lower(): f["name"] for f in schema["fields"]}
    partition = [names[c.lower()] for c in partition_columns]
    source = f"{scan} f"
    if partition:
        values = ", ".join(
            "(" + ", ".join([text(path)] + [text(values[c]) if values[c] else "NULL::VARCHAR" for c in partition_columns]) + ")"
            for path, values in files
        )
        columns = ", ".join(['"#path"'] + [quote(c) for c in partition])
        source += f' JOIN (VALUES {values}) p({columns}) ON f."#file" = p."#path"'
    select = ", ".join(column(f, found, partition) for f in schema["fields"])
    # All of the result is fetched: a pending one keeps a file of the mount open.
    ((rows, total),) = duck.sql(
        "SELECT count(*), coalesce(sum(md5_number_lower(to_json(q)::VARCHAR)::HUGEINT), 0)::VARCHAR "
        f"FROM (SELECT {select} FROM {source}) q"
    ).fetchall()
    return rows, total


HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def unescape(name):
    """Undoes hive's escaping of a directory name part."""
    return re.sub(r"(?:%[0-9A-Fa-f]{2})+", lambda m: bytes.fromhex(m[0].replace("%", "")).decode("utf-8", "replace"), name)


def partition_value(part):
    """Splits a directory name "column=value" as hive wrote it."""
    name, _, value = part.partition("=")
    return unescape(name), None if value == HIVE_NULL else unescape(value)
