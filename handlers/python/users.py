"""
Users in a PostgreSQL database (Debian: python3-psycopg2). PGHOST, PGDATABASE and so on say where it is.
The connection is kept, unless DATABASE_CONNECTION=per-request says that each look-up makes one of its own.
"""
import contextlib
import os

import psycopg2

Unavailable = psycopg2.OperationalError
_kept = None


def _connect():
    connection = psycopg2.connect("")       # the environment says where
    connection.autocommit = True
    return connection


@contextlib.contextmanager
def _connection():
    global _kept
    if os.environ.get("DATABASE_CONNECTION") == "per-request":
        with contextlib.closing(_connect()) as connection:
            yield connection
        return
    if _kept is None or _kept.closed:
        _kept = _connect()
    yield _kept                             # its cursors may be used by several threads


def find(user_id):
    """{"id", "name", "email"}, or None. Raises Unavailable."""
    with _connection() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, name, email FROM users WHERE id = %s", (user_id,))
        row = cursor.fetchone()
    return row and dict(zip(("id", "name", "email"), row))
