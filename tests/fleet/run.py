"""Runs the statements of `whyslow sql` and prints the rows of each query, as JSON: run.py ENGINE FILE.

Statements end with `;` and a line end: no literal has a line end. Numbers that are exact are printed as texts.
"""

import decimal
import json
import sys


def duckdb_rows(statements):
    import duckdb

    connection = duckdb.connect()
    for statement in statements:
        cursor = connection.execute(statement)
        if is_query(statement):
            names = [column[0] for column in cursor.description]
            yield [dict(zip(names, row)) for row in cursor.fetchall()]


def clickhouse_rows(statements):
    from chdb import session

    connection = session.Session()
    connection.query("SET output_format_json_quote_decimals = 1, output_format_json_quote_64bit_integers = 0")
    for statement in statements:
        if not is_query(statement):
            connection.query(statement)
            continue
        answer = str(connection.query(statement, "JSONEachRow"))
        yield [json.loads(line) for line in answer.splitlines() if line]


def spark_rows(statements):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    for statement in statements:
        frame = spark.sql(statement)
        if is_query(statement):
            yield [row.asDict() for row in frame.collect()]


def is_query(statement):
    lines = [line for line in statement.splitlines() if not line.startswith("--") and line.strip()]
    return lines[0].startswith(("WITH", "SELECT"))


def exact(value):
    return str(value) if isinstance(value, decimal.Decimal) or not isinstance(value, (int, float)) else value


def main():
    engine, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        statements = [statement for statement in file.read().split(";\n") if statement.strip()]
    rows = {"duckdb": duckdb_rows, "clickhouse": clickhouse_rows, "spark": spark_rows}[engine]
    print(json.dumps(list(rows(statements)), default=exact))


main()
