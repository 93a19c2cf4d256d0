//! The SQLite database: its schema and statements.
//!
//! Everything is in the entries; there is no table of balances that could contradict them. The
//! newest entry of an account has its balance, the newest entry of a sandbox its state. Both are
//! found by an index, so the cost does not grow with the number of entries.

use crate::amount::Balance;
use crate::anchor::Head;
use crate::entry::{Content, Entry, link};
use crate::error::LedgerError;
use crate::names::AccountId;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};
use std::path::Path;
use std::time::Duration;
use wp_codebox_contracts::Sha256Hex;

/// `application_id` of the database: "WPCL".
const APPLICATION: i32 = 0x5750_434c;
/// `user_version` of the database.
const VERSION: i32 = 1;
/// How long SQLite waits for its own locks. Other [`crate::Ledger`] values wait for the lock file
/// first.
const BUSY: Duration = Duration::from_secs(5);

/// Everything in the schema. The text is compared with what the file has, because a file with other
/// triggers or indexes is not to be trusted.
const SCHEMA: &[(&str, &str)] = &[
    (
        "entries",
        "CREATE TABLE entries (seq INTEGER PRIMARY KEY, account TEXT NOT NULL, subject TEXT NOT NULL, kind TEXT NOT NULL, content TEXT NOT NULL, hash TEXT NOT NULL) STRICT",
    ),
    (
        "entries_account",
        "CREATE INDEX entries_account ON entries (account, seq)",
    ),
    (
        "entries_keep",
        "CREATE TRIGGER entries_keep BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END",
    ),
    (
        "entries_once",
        "CREATE UNIQUE INDEX entries_once ON entries (subject) WHERE kind IN ('grant', 'settle')",
    ),
    (
        "entries_same",
        "CREATE TRIGGER entries_same BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END",
    ),
    (
        "entries_subject",
        "CREATE INDEX entries_subject ON entries (subject, seq)",
    ),
    ("ledger", "CREATE TABLE ledger (id TEXT NOT NULL) STRICT"),
];

/// A row of `entries`, not yet verified.
#[derive(Debug)]
pub(crate) struct StoredEntry {
    pub(crate) seq: i64,
    pub(crate) account: String,
    pub(crate) subject: String,
    pub(crate) kind: String,
    pub(crate) content: String,
    pub(crate) hash: String,
}

const COLUMNS: &str = "seq, account, subject, kind, content, hash";

impl StoredEntry {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            account: row.get(1)?,
            subject: row.get(2)?,
            kind: row.get(3)?,
            content: row.get(4)?,
            hash: row.get(5)?,
        })
    }

    /// Parses the entry and checks its hash and columns; the error says what is wrong.
    pub(crate) fn verified(&self) -> Result<Entry, String> {
        let content: Content = serde_json::from_str(&self.content)
            .map_err(|e| format!("its content is not an entry ({e})"))?;
        // The JSON parser also accepts other texts with the same meaning, and unknown members.
        if content.text().ok().as_deref() != Some(&self.content) {
            return Err("its content is not in the form that the ledger writes".to_owned());
        }
        let hash = link(&content.previous, &self.content);
        if hash.as_str() != self.hash {
            return Err("its hash does not fit its content".to_owned());
        }
        if i64::try_from(content.seq) != Ok(self.seq)
            || content.account.as_str() != self.account
            || content.event.subject() != self.subject
            || content.event.kind() != self.kind
        {
            return Err("its columns do not fit its content".to_owned());
        }
        Ok(Entry { content, hash })
    }

    fn into_entry(self) -> Result<Entry, LedgerError> {
        self.verified().map_err(|why| LedgerError::Damaged {
            seq: u64::try_from(self.seq).unwrap_or_default(),
            why,
        })
    }
}

/// What a database file contains.
#[derive(Debug)]
pub(crate) enum Found {
    /// Nothing: it was just created, or its creator died.
    Nothing,
    /// A ledger with this id.
    Ledger(Sha256Hex),
}

/// Opens the database, which must exist, without a change of the file.
pub(crate) fn open(path: &Path) -> Result<Connection, LedgerError> {
    let failed = LedgerError::database("opened");
    // The mutex of the ledger replaces SQLite's.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags).map_err(&failed)?;
    let configure = || -> rusqlite::Result<()> {
        connection.busy_timeout(BUSY)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        Ok(())
    };
    configure().map_err(failed)?;
    Ok(connection)
}

/// Sets how the database is written. Call it after [`identify`], because it changes the file.
pub(crate) fn make_durable(connection: &Connection) -> Result<(), LedgerError> {
    connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        // In WAL mode FULL synchronises the log at each commit; NORMAL would lose the last commits
        // at a power failure.
        .and_then(|()| connection.pragma_update(None, "synchronous", "FULL"))
        .map_err(LedgerError::database("opened"))
}

/// Reads which ledger the database is.
pub(crate) fn identify(connection: &Connection, path: &Path) -> Result<Found, LedgerError> {
    let failed = LedgerError::database("read");
    let other = |why| LedgerError::NotLedger {
        path: path.display().to_string(),
        why,
    };
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let application = number("application_id").map_err(&failed)?;
    let version = number("user_version").map_err(&failed)?;
    let rows = connection
        .prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
        .and_then(|mut statement| {
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<Vec<(String, String)>>>()
        })
        .map_err(&failed)?;
    if application == 0 && version == 0 && rows.is_empty() {
        return Ok(Found::Nothing);
    }
    if application != APPLICATION {
        return Err(other("it is the database of another program"));
    }
    if version > VERSION {
        return Err(LedgerError::Newer {
            path: path.display().to_string(),
            found: version,
            known: VERSION,
        });
    }
    if version < VERSION {
        return Err(other("its version is not one that a ledger has had"));
    }
    let is_ours = rows
        .iter()
        .map(|(name, sql)| (name.as_str(), sql.as_str()))
        .eq(SCHEMA.iter().copied());
    if !is_ours {
        return Err(other("its tables are not those of a ledger"));
    }
    let id: String = connection
        .query_row("SELECT id FROM ledger", [], |row| row.get(0))
        .map_err(failed)?;
    Sha256Hex::new(id)
        .map(Found::Ledger)
        .map_err(|_| other("its id is malformed"))
}

/// Creates the tables of an empty ledger.
pub(crate) fn create(connection: &mut Connection, id: &Sha256Hex) -> Result<(), LedgerError> {
    let failed = LedgerError::database("created");
    let transaction = connection.transaction().map_err(&failed)?;
    let fill = || -> rusqlite::Result<()> {
        for (_, sql) in SCHEMA {
            transaction.execute(sql, [])?;
        }
        transaction.execute("INSERT INTO ledger (id) VALUES (?1)", [id.as_str()])?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)
    };
    fill().map_err(&failed)?;
    transaction.commit().map_err(failed)
}

/// Returns number and hash of the last entry. The chain of an empty ledger begins with its id.
pub(crate) fn head(connection: &Connection, id: &Sha256Hex) -> Result<Head, LedgerError> {
    let last = select(connection, "ORDER BY seq DESC LIMIT 1", [])?;
    Ok(match last {
        None => Head {
            length: 0,
            hash: id.clone(),
        },
        Some(entry) => Head {
            length: entry.content.seq,
            hash: entry.hash,
        },
    })
}

/// Returns the hash of the entry with a number; of number 0 the id of the ledger.
pub(crate) fn hash_at(
    connection: &Connection,
    id: &Sha256Hex,
    seq: u64,
) -> Result<Option<Sha256Hex>, LedgerError> {
    if seq == 0 {
        return Ok(Some(id.clone()));
    }
    let Ok(seq) = i64::try_from(seq) else {
        return Ok(None);
    };
    Ok(select(connection, "WHERE seq = ?1", [seq])?.map(|entry| entry.hash))
}

/// Returns the newest entry of an account.
pub(crate) fn of_account(
    connection: &Connection,
    account: &AccountId,
) -> Result<Option<Entry>, LedgerError> {
    let rest = "WHERE account = ?1 ORDER BY seq DESC LIMIT 1";
    select(connection, rest, [account.as_str()])
}

/// Returns the balance of an account; an unknown account has nothing.
pub(crate) fn balance(
    connection: &Connection,
    account: &AccountId,
) -> Result<Balance, LedgerError> {
    Ok(of_account(connection, account)?.map_or_else(Balance::default, |e| e.content.balance))
}

/// Returns the newest entry about a grant or sandbox.
pub(crate) fn of_subject(
    connection: &Connection,
    subject: &str,
) -> Result<Option<Entry>, LedgerError> {
    let rest = "WHERE subject = ?1 ORDER BY seq DESC LIMIT 1";
    select(connection, rest, [subject])
}

fn select<P: rusqlite::Params>(
    connection: &Connection,
    rest: &str,
    params: P,
) -> Result<Option<Entry>, LedgerError> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM entries {rest}"))
        .and_then(|mut statement| statement.query_row(params, StoredEntry::read).optional())
        .map_err(LedgerError::database("read"))?
        .map(StoredEntry::into_entry)
        .transpose()
}

/// Returns the rows after a number, oldest first.
pub(crate) fn rows(
    connection: &Connection,
    after: u64,
    limit: usize,
) -> Result<Vec<StoredEntry>, LedgerError> {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let rest = "WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    let limits = [number(after), number(limit as u64)];
    all(connection, rest, limits)
}

/// Returns the newest row of each sandbox whose reservation is open, oldest first.
pub(crate) fn open_reservations(connection: &Connection) -> Result<Vec<Entry>, LedgerError> {
    let rest = "AS newest WHERE kind IN ('reserve', 'extend') AND NOT EXISTS (SELECT 1 FROM entries AS later WHERE later.subject = newest.subject AND later.seq > newest.seq) ORDER BY seq";
    let rows = all(connection, rest, [])?;
    rows.into_iter().map(StoredEntry::into_entry).collect()
}

/// Returns the newest entry of each account, by account.
pub(crate) fn accounts(
    connection: &Connection,
    after: &str,
    limit: usize,
) -> Result<Vec<Entry>, LedgerError> {
    let rest = "WHERE seq IN (SELECT max(seq) FROM entries WHERE account > ?1 GROUP BY account ORDER BY account LIMIT ?2) ORDER BY account";
    let rows = all(
        connection,
        rest,
        params![after, i64::try_from(limit).unwrap_or(i64::MAX)],
    )?;
    rows.into_iter().map(StoredEntry::into_entry).collect()
}

fn all<P: rusqlite::Params>(
    connection: &Connection,
    rest: &str,
    params: P,
) -> Result<Vec<StoredEntry>, LedgerError> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM entries {rest}"))
        .and_then(|mut statement| statement.query_map(params, StoredEntry::read)?.collect())
        .map_err(LedgerError::database("read"))
}

/// Verifies the rows of a page.
pub(crate) fn verified(rows: Vec<StoredEntry>) -> Result<Vec<Entry>, LedgerError> {
    rows.into_iter().map(StoredEntry::into_entry).collect()
}

/// Inserts an entry with the text that its hash covers.
pub(crate) fn append(
    connection: &Connection,
    entry: &Entry,
    text: &str,
) -> Result<(), LedgerError> {
    let content = &entry.content;
    let seq = i64::try_from(content.seq).map_err(|_| LedgerError::Damaged {
        seq: content.seq,
        why: "there is no next number".to_owned(),
    })?;
    connection
        .prepare_cached(
            "INSERT INTO entries (seq, account, subject, kind, content, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )
        .and_then(|mut statement| {
            statement.execute(params![
                seq,
                content.account.as_str(),
                content.event.subject(),
                content.event.kind(),
                text,
                entry.hash.as_str(),
            ])
        })
        .map(|_| ())
        .map_err(LedgerError::database("written"))
}
