//! Tables of the records. `PRAGMA user_version` is the number of migrations that were applied.

use super::error::{StoreError, StoreResult};
use rusqlite::Connection;

/// Migrations in order; a published one never changes.
const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    secret_sha256 TEXT NOT NULL,
    document TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    revoked_ms INTEGER
) STRICT;
CREATE TABLE sandboxes (
    serial INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    owner TEXT NOT NULL,
    extension TEXT NOT NULL,
    host TEXT,
    updated_ms INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT;
CREATE INDEX sandboxes_owner ON sandboxes (owner, serial);
CREATE INDEX sandboxes_state ON sandboxes (state);
CREATE TABLE idempotency (
    token TEXT NOT NULL,
    key TEXT NOT NULL,
    body_sha256 TEXT NOT NULL,
    sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (token, key)
) STRICT;
CREATE INDEX idempotency_sandbox ON idempotency (sandbox);
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time_ms INTEGER NOT NULL,
    type TEXT NOT NULL,
    actor TEXT NOT NULL,
    sandbox TEXT,
    profile TEXT,
    owner TEXT,
    consumer TEXT,
    data TEXT NOT NULL
) STRICT;
CREATE INDEX events_sandbox ON events (sandbox, id);
CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    token TEXT NOT NULL,
    document TEXT NOT NULL
) STRICT;
CREATE TABLE deliveries (
    webhook TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_ms INTEGER NOT NULL,
    PRIMARY KEY (webhook, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_next ON deliveries (next_ms);
CREATE TABLE hosts (
    id TEXT PRIMARY KEY,
    document TEXT NOT NULL
) STRICT;
",
    "
CREATE TABLE runs (
    serial INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    owner TEXT NOT NULL,
    profile TEXT,
    updated_ms INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT;
CREATE INDEX runs_owner ON runs (owner);
CREATE INDEX runs_state ON runs (state);
",
    "
DROP INDEX deliveries_next;
ALTER TABLE deliveries DROP COLUMN next_ms;
ALTER TABLE webhooks ADD COLUMN actor TEXT NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN answers INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN next_ms INTEGER NOT NULL DEFAULT 0;
UPDATE webhooks SET
    actor = json_extract(document, '$.actor'),
    waiting = (SELECT count(*) FROM deliveries WHERE webhook = webhooks.id);
CREATE INDEX webhooks_due ON webhooks (next_ms) WHERE waiting > 0;
CREATE TRIGGER delivery_queued AFTER INSERT ON deliveries BEGIN
    UPDATE webhooks SET waiting = waiting + 1 WHERE id = NEW.webhook;
END;
CREATE TRIGGER delivery_removed AFTER DELETE ON deliveries BEGIN
    UPDATE webhooks SET waiting = waiting - 1 WHERE id = OLD.webhook;
END;
",
];

/// Brings the tables to the version of this program.
pub(super) fn migrate(connection: &Connection) -> StoreResult<()> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    // One exclusive transaction: two processes that open a new file at the same time create the
    // tables once.
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let applied = apply(connection, known);
    match applied {
        Ok(()) => connection.execute_batch("COMMIT")?,
        Err(_) => connection.execute_batch("ROLLBACK")?,
    }
    applied
}

fn apply(connection: &Connection, known: i64) -> StoreResult<()> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found > known {
        return Err(StoreError::Version { found, known });
    }
    for migration in MIGRATIONS
        .iter()
        .skip(usize::try_from(found).unwrap_or_default())
    {
        connection.execute_batch(migration)?;
    }
    if found < known {
        connection.pragma_update(None, "user_version", known)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queued_deliveries_of_earlier_records_wait_for_their_webhook_after_the_migration() {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("PRAGMA foreign_keys = ON")
            .unwrap();
        for migration in &MIGRATIONS[..2] {
            connection.execute_batch(migration).unwrap();
        }
        connection.pragma_update(None, "user_version", 2).unwrap();
        connection
            .execute_batch(
                r#"INSERT INTO webhooks VALUES ('a', '', '{"actor": "agt:a"}'), ('b', '', '{"actor": "agt:b"}');
                INSERT INTO deliveries VALUES ('a', 1, 3, 99), ('a', 2, 0, 5);"#,
            )
            .unwrap();
        migrate(&connection).unwrap();
        let waiting = || -> Vec<(String, i64)> {
            let mut rows = connection
                .prepare("SELECT actor, waiting FROM webhooks ORDER BY id")
                .unwrap();
            let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
            rows.unwrap().map(Result::unwrap).collect()
        };
        let found = |a, b| vec![("agt:a".to_owned(), a), ("agt:b".to_owned(), b)];
        assert_eq!(waiting(), found(2, 0));
        connection
            .execute_batch(
                "INSERT INTO deliveries VALUES ('b', 3, 0); DELETE FROM deliveries WHERE event = 1;",
            )
            .unwrap();
        assert_eq!(waiting(), found(1, 1));
        connection
            .execute_batch("DELETE FROM webhooks WHERE id = 'b'")
            .unwrap();
        assert_eq!(waiting(), [("agt:a".to_owned(), 1)]);
    }
}
