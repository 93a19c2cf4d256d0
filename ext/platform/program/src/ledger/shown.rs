//! Formats balances, entries and prices as lines for people.

use wp_codebox_cli::columns::{Column, table, terminal};
use wp_codebox_ledger::{
    AccountId, Balance, Entry, Event, KeyOwner, Prices, Recorded, Verification,
};

fn column(heading: &'static str, spare: bool) -> Column {
    Column { heading, spare }
}

pub(super) fn grant(recorded: &Recorded) -> Vec<String> {
    let content = &recorded.entry().content;
    let what = match recorded {
        Recorded::Now(_) => "recorded in",
        Recorded::Before(_) => "recorded before, in",
    };
    let available = content.balance.available;
    vec![format!(
        "{what} entry {}: {} has {available} available after it",
        content.seq, content.account
    )]
}

pub(super) fn balances(rows: &[(AccountId, Balance)]) -> Vec<String> {
    let columns = [
        column("ACCOUNT", false),
        column("AVAILABLE", false),
        column("GRANTED", true),
        column("RESERVED", true),
        column("SETTLED", false),
    ];
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|(account, balance)| {
            vec![
                account.to_string(),
                balance.available.to_string(),
                balance.granted.to_string(),
                balance.reserved.to_string(),
                balance.settled.to_string(),
            ]
        })
        .collect();
    table(&columns, &cells, terminal())
}

pub(super) fn entries(rows: &[Entry]) -> Vec<String> {
    let columns = [
        column("ENTRY", false),
        column("TIME", true),
        column("KIND", false),
        column("ACCOUNT", false),
        column("AMOUNT", false),
        column("AVAILABLE", true),
        column("ABOUT", false),
    ];
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|entry| {
            let content = &entry.content;
            vec![
                content.seq.to_string(),
                content.time.clone(),
                content.event.kind().to_owned(),
                content.account.to_string(),
                content.event.amount().to_string(),
                content.balance.available.to_string(),
                about(&content.event),
            ]
        })
        .collect();
    table(&columns, &cells, terminal())
}

fn about(event: &Event) -> String {
    match event {
        Event::Grant {
            reference,
            actor,
            reason,
            ..
        } => format!("{reference}: {reason} ({actor})"),
        Event::Reserve { sandbox, .. } | Event::Extend { sandbox, .. } => sandbox.to_string(),
        Event::Release {
            sandbox, reason, ..
        } => format!("{sandbox}: {reason}"),
        Event::Settle {
            sandbox,
            usage,
            capped,
            ..
        } => {
            let mut text = format!("{sandbox}: {} s", usage.seconds_alive);
            if usage.estimated {
                text.push_str(", estimated");
            }
            if *capped {
                text.push_str(", capped by the reservation");
            }
            text
        }
    }
}

pub(super) fn verification(result: &Verification) -> Vec<String> {
    let mut lines: Vec<String> = result.problems.iter().map(|p| p.text.clone()).collect();
    let word = match result.valid {
        true => "valid",
        false => "not valid",
    };
    lines.push(format!(
        "{word}, {}:{}",
        result.head.length, result.head.hash
    ));
    if let Some(totals) = result.totals {
        lines.push(format!(
            "accounts {}, granted {}, settled {}, reserved {} for {} sandboxes, available {}",
            result.accounts,
            totals.granted,
            totals.settled,
            totals.reserved,
            result.open_reservations,
            totals.available
        ));
    }
    lines
}

pub(super) fn prices(prices: &Prices) -> Vec<String> {
    let columns = [
        column("EXTENSION", false),
        column("PER SECOND", false),
        column("PER CREATION", false),
        column("GPU PER SECOND", true),
        column("KEY", false),
    ];
    let cells: Vec<Vec<String>> = prices
        .extensions()
        .iter()
        .map(|(name, price)| {
            let key = match price.key {
                KeyOwner::Own => "own",
                KeyOwner::Platform => "platform",
            };
            vec![
                name.clone(),
                price.per_second.to_string(),
                price.per_creation.to_string(),
                price.gpu_per_second.to_string(),
                key.to_owned(),
            ]
        })
        .collect();
    let mut lines = vec![format!("unit {}", prices.unit())];
    lines.extend(table(&columns, &cells, terminal()));
    lines
}
