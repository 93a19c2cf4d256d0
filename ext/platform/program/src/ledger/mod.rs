//! `wp-codebox ledger`: grants credits, shows balances, entries and prices, verifies and exports.
//!
//! The crate `wp-codebox-ledger` has the rules; this module has arguments and presentation.

mod args;
mod shown;

pub(crate) use args::LedgerCommand;

use args::{
    BalanceArgs, EntriesArgs, ExportArgs, FormatArg, GrantArgs, PlaceArgs, PricesArgs, VerifyArgs,
};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use wp_codebox_cli::output::{Output, data_output, json_output};
use wp_codebox_cli::{duration, output};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Sha256Hex, schema_id};
use wp_codebox_ledger::{
    AccountId, Amount, Gpu, Grant, GrantReference, Head, Ledger, LedgerError, LedgerFiles,
    NameError, Note, Prices, Recorded, UnixMillis,
};
use wp_codebox_runtime::StateDir;
use wp_codebox_settings::{Settings, prepare_state};

/// Name of the price table in the state directory.
pub(crate) const PRICES: &str = "meter-prices.json";
/// Maximum number of bytes read from a price table: one more than the parser accepts, so that it
/// refuses a larger table instead of parsing a part of it.
const MAX_PRICES: u64 = 1024 * 1024 + 1;

/// A document, its lines for people, and the exit status.
struct Answer {
    document: Value,
    lines: Vec<String>,
    status: ExitCode,
}

impl Answer {
    fn success(document: Value, lines: Vec<String>) -> Self {
        Self {
            document,
            lines,
            status: ExitCode::SUCCESS,
        }
    }
}

pub(crate) fn main(output: &Output, command: &LedgerCommand) -> ExitCode {
    let (name, done) = match command {
        LedgerCommand::Grant(args) => ("ledger grant", grant(args)),
        LedgerCommand::Balance(args) => ("ledger balance", balance(args)),
        LedgerCommand::Entries(args) => ("ledger entries", entries(args)),
        LedgerCommand::Verify(args) => ("ledger verify", verify(args)),
        LedgerCommand::Prices(args) => ("ledger prices", prices(args)),
        LedgerCommand::Export(args) => {
            return match export(args) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => output.failure("ledger export", &error),
            };
        }
    };
    match done {
        Ok(answer) => {
            output.answer(&answer.document, &answer.lines);
            answer.status
        }
        Err(error) => output.failure(name, &error),
    }
}

fn grant(args: &GrantArgs) -> Result<Answer, ErrorBody> {
    let named = |flag: &'static str| {
        move |error: NameError| ErrorBody::new(ErrorCode::InputInvalid, format!("{flag}: {error}"))
    };
    let grant = Grant {
        account: AccountId::new(args.account.as_str()).map_err(named("ACCOUNT"))?,
        amount: Amount::new(args.amount)?,
        reference: GrantReference::new(args.reference.as_str()).map_err(named("--reference"))?,
        actor: Note::new(args.actor.as_str()).map_err(named("--actor"))?,
        reason: Note::new(args.reason.as_str()).map_err(named("--reason"))?,
    };
    prepare_state(&Settings::resolve(&args.place.paths)?)?;
    let ledger = Ledger::open(&files(&args.place)?)?;
    let recorded = ledger.grant(&grant, now())?;
    let (word, entry) = match &recorded {
        Recorded::Now(entry) => ("now", entry),
        Recorded::Before(entry) => ("before", entry),
    };
    let document = json!({
        "schema": schema_id::LEDGER_GRANT, "success": true, "recorded": word, "entry": entry,
    });
    Ok(Answer::success(document, shown::grant(&recorded)))
}

fn balance(args: &BalanceArgs) -> Result<Answer, ErrorBody> {
    let ledger = existing(&args.place)?;
    let limit = usize::from(args.limit);
    let rows = match &args.account {
        Some(name) => {
            let account = AccountId::new(name.as_str())?;
            let balance = ledger.balance(&account)?;
            vec![(account, balance)]
        }
        None => ledger.accounts(args.after.as_deref().unwrap_or_default(), limit)?,
    };
    let is_full = args.account.is_none() && rows.len() == limit;
    let next = rows.last().filter(|_| is_full).map(|(account, _)| account);
    let accounts: Vec<Value> = rows
        .iter()
        .map(|(account, balance)| {
            json!({
                "account": account, "granted": balance.granted, "reserved": balance.reserved,
                "settled": balance.settled, "available": balance.available,
            })
        })
        .collect();
    let document = json!({
        "schema": schema_id::LEDGER_BALANCE, "success": true, "accounts": accounts, "next": next,
    });
    Ok(Answer::success(document, shown::balances(&rows)))
}

fn entries(args: &EntriesArgs) -> Result<Answer, ErrorBody> {
    let ledger = existing(&args.place)?;
    let rows = ledger.entries(args.after, usize::from(args.limit))?;
    let length = ledger.head()?.length;
    let last = rows.last().map(|entry| entry.content.seq);
    let next = last.filter(|last| *last < length);
    let document = json!({
        "schema": schema_id::LEDGER_ENTRY_LIST, "success": true, "length": length,
        "entries": rows, "next": next,
    });
    Ok(Answer::success(document, shown::entries(&rows)))
}

fn verify(args: &VerifyArgs) -> Result<Answer, ErrorBody> {
    let known = args
        .known
        .iter()
        .map(|text| head(text))
        .collect::<Result<Vec<Head>, ErrorBody>>()?;
    let ledger = existing(&args.place)?;
    let verification = ledger.verify(&known)?;
    let mut document = json!({
        "schema": schema_id::LEDGER_VERIFICATION, "success": verification.valid,
    });
    if let (Value::Object(all), Value::Object(members)) = (&mut document, json!(verification)) {
        all.extend(members);
    }
    Ok(Answer {
        document,
        lines: shown::verification(&verification),
        status: match verification.valid {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(ErrorCode::LedgerDamaged.exit_status()),
        },
    })
}

/// Parses `NUMBER:HASH`, as `ledger verify` prints it.
fn head(text: &str) -> Result<Head, ErrorBody> {
    let parsed = || {
        let (length, hash) = text.trim().split_once(':')?;
        Some(Head {
            length: length.parse().ok()?,
            hash: Sha256Hex::new(hash).ok()?,
        })
    };
    parsed().ok_or_else(|| {
        let message = format!("--known {text:?} must be NUMBER:HASH, as `ledger verify` prints it");
        ErrorBody::new(ErrorCode::InputInvalid, message)
    })
}

fn export(args: &ExportArgs) -> Result<(), ErrorBody> {
    let ledger = existing(&args.place)?;
    let mut out = BufWriter::new(match args.format {
        FormatArg::JsonLines => json_output(),
        FormatArg::Csv => data_output(),
    });
    let written = match args.format {
        FormatArg::JsonLines => ledger.export_json_lines(&mut out),
        FormatArg::Csv => ledger.export_csv(&mut out),
    };
    let flushed =
        written.and_then(|()| out.flush().map_err(|source| LedgerError::Export { source }));
    // Dropping the BufWriter would try again to write the rest after a failure; `into_parts`
    // prevents that.
    let (_, _) = out.into_parts();
    match flushed {
        // `lost` records the failed write, from which the exit status follows at the end.
        Err(LedgerError::Export { source }) => {
            output::Output::lost(&source);
            Ok(())
        }
        other => other.map_err(ErrorBody::from),
    }
}

fn prices(args: &PricesArgs) -> Result<Answer, ErrorBody> {
    let path = match &args.prices {
        Some(path) => path.clone(),
        None => Settings::resolve(&args.paths)?.state_dir.join(PRICES),
    };
    let prices = read_prices(&path)?;
    let (Some(extension), Some(duration)) = (&args.extension, &args.duration) else {
        return Ok(Answer::success(json!(prices), shown::prices(&prices)));
    };
    let milliseconds = duration::positive(ErrorCode::InputInvalid, "--duration", duration)?;
    let quote = prices.quote(extension, milliseconds, Gpu::from(args.gpu))?;
    let line = format!("{} {}", quote.amount(), quote.unit());
    Ok(Answer::success(json!(quote), vec![line]))
}

/// Reads a price table.
///
/// # Errors
/// `wp_codebox_prices_invalid` if the file cannot be read or is not a price table.
pub(crate) fn read_prices(path: &Path) -> Result<Prices, ErrorBody> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_PRICES).read_to_end(&mut bytes))
        .map_err(|error| {
            let message = format!(
                "the price table {} cannot be read: {error}; name one with --prices",
                path.display()
            );
            ErrorBody::new(ErrorCode::PricesInvalid, message)
        })?;
    Prices::parse(&bytes).map_err(ErrorBody::from)
}

fn existing(place: &PlaceArgs) -> Result<Ledger, ErrorBody> {
    Ledger::open_existing(&files(place)?).map_err(ErrorBody::from)
}

/// Returns the files of the ledger. Opens the state directory first and switches from root to its
/// owner, so that the ledger belongs to the user of the service.
fn files(place: &PlaceArgs) -> Result<LedgerFiles, ErrorBody> {
    let settings = Settings::resolve(&place.paths)?;
    let state = StateDir::open(&settings.state_dir)?;
    state.become_owner()?;
    let usual = LedgerFiles::in_state(&settings.state_dir);
    Ok(LedgerFiles {
        database: place.database.clone().unwrap_or(usual.database),
        anchor: place.anchor.clone().unwrap_or(usual.anchor),
    })
}

fn now() -> UnixMillis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    // A time that does not fit into u64 is after the year 9999; the ledger refuses such times.
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_head_is_parsed_from_length_and_hash_and_other_text_is_refused() {
        let hash = "ab".repeat(32);
        let parsed = head(&format!("7:{hash}\n")).unwrap();
        assert_eq!((parsed.length, parsed.hash.as_str()), (7, hash.as_str()));
        for wrong in ["", "7", "7:", &format!("-7:{hash}"), &format!("7:{hash}0")] {
            assert_eq!(head(wrong).unwrap_err().code, ErrorCode::InputInvalid);
        }
    }
}
