"""The row digest under a Delta schema, by DuckDB.

It is the digest of the oracles beside the third-party tables: independent of
order, over the logical columns in schema order, each cast to its Delta type.
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
        expression = f"encode({value})" if t == "BLOB" else f"CAST({value} AS {t})"
    elif name.lower() not in found:
        expression = f"CAST(NULL AS {t})"
    else:
        has, of = found[name.lower()]
        expression = cast(f"f.{quote(has)}", of, field["type"])
    return f"{expression} AS {quote(name)}"


def cast(expression, has, want, depth=0):
    """Casts by type; a group member by member, since files may lack members and
    Polars has no maps."""
    if not isinstance(want, dict) or str(has) == sql_type(want):
        return f"CAST({expression} AS {sql_type(want)})"
    x = f"x{depth}"
    made = None
    match want["type"], has.id:
        case "struct", "struct":
            made = structure(expression, has, want, depth)
        case "array", "list":
            element = cast(x, has.children[0][1], want["elementType"], depth + 1)
            made = f"list_transform({expression}, lambda {x}: {element})"
        case "map", "list":
            entry = {n: c for n, c in has.children[0][1].children}
            key = cast(f"{x}.key", entry["key"], want["keyType"], depth + 1)
            value = cast(f"{x}.value", entry["value"], want["valueType"], depth + 1)
            entries = f"list_transform({expression}, lambda {x}: struct_pack(key := {key}, value := {value}))"
            made = f"map_from_entries({entries})"
    if made is None:
        return f"CAST({expression} AS {sql_type(want)})"
    return f"CASE WHEN {expression} IS NULL THEN NULL ELSE CAST({made} AS {sql_type(want)}) END"


def structure(expression, has, want, depth):
    children = {n.lower(): (n, c) for n, c in has.children}
    packed = []
    for f in want["fields"]:
        inner = f"CAST(NULL AS {sql_type(f['type'])})"
        if got := children.get(f["name"].lower()):
            inner = cast(f"{expression}.{quote(got[0])}", got[1], f["type"], depth)
        packed.append(f"{quote(f['name'])} := {inner}")
    return f"struct_pack({', '.join(packed)})"


def columns(duck, source):
    """The columns of what can be selected from: (name, type) pairs."""
    relation = duck.sql(f"SELECT * FROM {source} LIMIT 0")
    return [(n, t) for n, t in zip(relation.columns, relation.types) if n != "#file"]


def types(duck, schema, without=()):
    """The columns that files of a schema have: (name, type) pairs."""
    fields = [f for f in schema["fields"] if f["name"] not in without]
    if not fields:
        return []
    relation = duck.sql("SELECT " + ", ".join(f"CAST(NULL AS {sql_type(f['type'])}) AS {quote(f['name'])}" for f in fields))
    return list(zip(relation.columns, relation.types))


def digest(duck, source, schema, partition_columns=(), files=()):
    """Returns (rows, digest) of what can be selected from.

    With partition columns, files are (path, partition values by column) pairs,
    and the source has the path of a row in "#file". A partition value is text in
    Delta's serialisation; '' and None are null.
    """
    found = {n.lower(): (n, t) for n, t in columns(duck, source)}
    source = f"{source} f"
    if partition_columns:
        listed = ", ".join(
            "(" + ", ".join([text(path)] + [text(values[c]) if values[c] else "NULL::VARCHAR" for c in partition_columns]) + ")"
            for path, values in files
        )
        heads = ", ".join(['"#path"'] + [quote(c) for c in partition_columns])
        source += f' JOIN (VALUES {listed}) p({heads}) ON f."#file" = p."#path"'
    select = ", ".join(column(f, found, partition_columns) for f in schema["fields"])
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
