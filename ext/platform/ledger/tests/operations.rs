//! The operations of a ledger, one after the other, and random ones against sums of the entries.
#![allow(clippy::unwrap_used)]

mod bench;

use bench::*;
use wp_codebox_contracts::{CodedError, ErrorCode};
use wp_codebox_ledger::{Actuals, Amount, Event, Ledger, Recorded, UnixMillis, Usage};

fn is_new(recorded: &Recorded) -> bool {
    matches!(recorded, Recorded::Now(_))
}

#[test]
fn reservation_is_settled_for_the_use_and_the_rest_is_available_again() {
    let (bench, ledger) = Bench::funded();
    let (shop, one) = (account("shop"), sandbox("run_1"));
    assert!(is_new(
        &ledger.reserve(&shop, &one, &quote(60), NOW).unwrap()
    ));
    assert_eq!(balance(&ledger, "shop"), [1000, 160, 0, 840]);
    let usage = Usage::alive(20_001);
    let settled = ledger
        .settle(&one, Actuals::Used(&usage), later(20_001))
        .unwrap();
    assert_eq!(settled.entry().content.event.amount(), amount(121));
    assert_eq!(balance(&ledger, "shop"), [1000, 0, 121, 879]);
    check(&ledger, &["shop"]);
    // Everything is on the disk: another process sees it.
    drop(ledger);
    assert_eq!(balance(&bench.open(), "shop"), [1000, 0, 121, 879]);
    assert_eq!(balance(&bench.open(), "nobody"), [0, 0, 0, 0]);
}

#[test]
fn reservation_beyond_the_available_credits_is_refused_and_one_of_all_of_them_is_accepted() {
    let (_bench, ledger) = Bench::funded();
    let (shop, one) = (account("shop"), sandbox("run_1"));
    let refused = ledger.reserve(&shop, &one, &quote(901), NOW).unwrap_err();
    let body = refused.body();
    assert_eq!(body.code, ErrorCode::CreditsShort);
    let data = body.data.unwrap();
    assert_eq!(
        (&data["available"], &data["needed"]),
        (&1000.into(), &1001.into())
    );
    assert_eq!(all(&ledger).len(), 1, "a refusal leaves no entry");
    let _ = ledger.reserve(&shop, &one, &quote(900), NOW).unwrap();
    assert_eq!(balance(&ledger, "shop"), [1000, 1000, 0, 0]);
    let other = ledger.reserve(&shop, &sandbox("run_2"), &quote(0), NOW);
    assert_eq!(other.unwrap_err().code(), ErrorCode::CreditsShort);
    // A free sandbox needs no credits, so an account without any can reserve it.
    let free = quote_of("ext.free", 3600);
    assert!(is_new(
        &ledger
            .reserve(&account("poor"), &sandbox("run_3"), &free, NOW)
            .unwrap()
    ));
    check(&ledger, &["shop", "poor"]);
}

#[test]
fn repeated_operation_returns_its_first_entry_and_adds_none() {
    let (_bench, ledger) = Bench::funded();
    let (shop, one) = (account("shop"), sandbox("run_1"));
    let again = |recorded: Recorded, seq: u64| {
        assert!(!is_new(&recorded));
        assert_eq!(recorded.entry().content.seq, seq);
    };
    again(
        ledger
            .grant(&grant_of("shop", "g1", 1000), later(1))
            .unwrap(),
        1,
    );
    let _ = ledger.reserve(&shop, &one, &quote(60), NOW).unwrap();
    again(
        ledger.reserve(&shop, &one, &quote(60), later(1)).unwrap(),
        2,
    );
    let _ = ledger.extend(&one, 90_000, later(2)).unwrap();
    again(ledger.extend(&one, 90_000, later(3)).unwrap(), 3);
    again(ledger.extend(&one, 10_000, later(3)).unwrap(), 3);
    let usage = Usage::alive(1000);
    let _ = ledger
        .settle(&one, Actuals::Used(&usage), later(4))
        .unwrap();
    let other = Usage::alive(80_000);
    again(
        ledger
            .settle(&one, Actuals::Used(&other), later(5))
            .unwrap(),
        4,
    );
    again(
        ledger.settle(&one, Actuals::WallClock, later(6)).unwrap(),
        4,
    );
    assert_eq!(balance(&ledger, "shop"), [1000, 0, 101, 899]);
    let two = sandbox("run_2");
    let _ = ledger.reserve(&shop, &two, &quote(60), NOW).unwrap();
    let _ = ledger.release(&two, &note("no space"), NOW).unwrap();
    again(ledger.release(&two, &note("no space"), NOW).unwrap(), 6);
    check(&ledger, &["shop"]);
}

#[test]
fn operation_that_contradicts_an_earlier_entry_is_a_conflict_and_adds_no_entry() {
    let (_bench, ledger) = Bench::funded();
    let shop = account("shop");
    let _ = ledger.grant(&grant_of("blog", "g2", 500), NOW).unwrap();
    let [none, open, released, settled] = ["none", "open", "released", "settled"].map(sandbox);
    for key in [&open, &released, &settled] {
        let _ = ledger.reserve(&shop, key, &quote(60), NOW).unwrap();
    }
    let reason = note("it did not start");
    let usage = Usage::alive(1000);
    let used = Actuals::Used(&usage);
    let _ = ledger.release(&released, &reason, NOW).unwrap();
    let _ = ledger.settle(&settled, used, NOW).unwrap();
    let before = all(&ledger);
    let refused = [
        ledger.grant(&grant_of("shop", "g1", 999), NOW),
        ledger.grant(&grant_of("blog", "g1", 1000), NOW),
        ledger.settle(&none, used, NOW),
        ledger.release(&none, &reason, NOW),
        ledger.extend(&none, 1, NOW),
        ledger.reserve(&shop, &open, &quote(61), NOW),
        ledger.reserve(&account("blog"), &open, &quote(60), NOW),
        ledger.settle(&released, used, NOW),
        ledger.extend(&released, 90_000, NOW),
        ledger.reserve(&shop, &settled, &quote(60), NOW),
        ledger.release(&settled, &reason, NOW),
        ledger.extend(&settled, 90_000, NOW),
    ];
    for (nth, result) in refused.into_iter().enumerate() {
        assert_eq!(
            result.unwrap_err().code(),
            ErrorCode::LedgerConflict,
            "{nth}"
        );
    }
    assert_eq!(all(&ledger), before);
    // A sandbox that did not start may start later, on another extension.
    let free = quote_of("ext.free", 60);
    assert!(is_new(
        &ledger.reserve(&shop, &released, &free, NOW).unwrap()
    ));
    assert!(is_new(&ledger.settle(&released, used, NOW).unwrap()));
    check(&ledger, &["shop", "blog"]);
}

#[test]
fn longer_lifetime_reserves_the_difference_and_is_refused_when_credits_are_short() {
    let (_bench, ledger) = Bench::funded();
    let one = sandbox("run_1");
    let _ = ledger
        .reserve(&account("shop"), &one, &quote(60), NOW)
        .unwrap();
    let longer = ledger.extend(&one, 600_000, later(1000)).unwrap();
    assert_eq!(longer.entry().content.event.amount(), amount(540));
    assert_eq!(balance(&ledger, "shop"), [1000, 700, 0, 300]);
    let short = ledger.extend(&one, 901_000, later(2000)).unwrap_err();
    assert_eq!(short.code(), ErrorCode::CreditsShort);
    let open = ledger.open_reservations().unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!((open[0].amount, open[0].started), (amount(700), NOW));
    let _ = ledger
        .settle(&one, Actuals::WallClock, later(300_000))
        .unwrap();
    assert_eq!(balance(&ledger, "shop"), [1000, 0, 400, 600]);
    assert!(ledger.open_reservations().unwrap().is_empty());
    check(&ledger, &["shop"]);
}

#[test]
fn settlement_by_wall_clock_is_capped_at_the_reservation_and_marked_as_estimated() {
    let (_bench, ledger) = Bench::funded();
    let shop = account("shop");
    let facts = |name: &str, now| {
        let key = sandbox(name);
        let _ = ledger.reserve(&shop, &key, &quote(60), NOW).unwrap();
        let settled = ledger.settle(&key, Actuals::WallClock, now).unwrap();
        match &settled.entry().content.event {
            Event::Settle {
                amount,
                capped,
                usage,
                ..
            } => {
                assert!(usage.estimated);
                (amount.get(), *capped, usage.seconds_alive)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(facts("soon", later(29_500)), (130, false, 30));
    assert_eq!(facts("late", later(7 * 86_400_000)), (160, true, 604_800));
    assert_eq!(facts("clock-set-back", UnixMillis(0)), (100, false, 0));
    // A measured use is not marked as estimated.
    let key = sandbox("measured");
    let _ = ledger.reserve(&shop, &key, &quote(60), NOW).unwrap();
    let usage = Usage::alive(1000);
    let settled = ledger.settle(&key, Actuals::Used(&usage), NOW).unwrap();
    assert!(
        matches!(&settled.entry().content.event, Event::Settle { usage, .. } if !usage.estimated)
    );
    check(&ledger, &["shop"]);
}

#[test]
fn grant_of_zero_or_beyond_the_largest_balance_is_refused_and_use_costs_at_most_the_reservation() {
    let bench = Bench::new();
    let ledger = bench.open();
    let max = Amount::MAX.get();
    let zero = ledger.grant(&grant_of("shop", "g0", 0), NOW);
    assert_eq!(zero.unwrap_err().code(), ErrorCode::InputInvalid);
    let _ = ledger.grant(&grant_of("shop", "g1", max - 1), NOW).unwrap();
    let over = ledger.grant(&grant_of("shop", "g2", 2), NOW);
    assert_eq!(over.unwrap_err().code(), ErrorCode::InputInvalid);
    let _ = ledger.grant(&grant_of("shop", "g3", 1), NOW).unwrap();
    assert_eq!(balance(&ledger, "shop"), [max, 0, 0, max]);
    let one = sandbox("run_1");
    let _ = ledger
        .reserve(&account("shop"), &one, &quote(60), NOW)
        .unwrap();
    let endless = Usage {
        seconds_alive: u64::MAX,
        creations: u64::MAX,
        memory_byte_seconds: Some(u64::MAX),
        ..Usage::alive(0)
    };
    let settled = ledger.settle(&one, Actuals::Used(&endless), NOW).unwrap();
    assert_eq!(settled.entry().content.event.amount(), amount(160));
    let late = ledger.grant(&grant_of("shop", "g4", 1), UnixMillis(u64::MAX));
    assert_eq!(late.unwrap_err().code(), ErrorCode::InputInvalid);
    let far = ledger.extend(&sandbox("none"), u64::MAX, NOW);
    assert_eq!(far.unwrap_err().code(), ErrorCode::LedgerConflict);
    check(&ledger, &["shop"]);
}

#[test]
fn pages_of_entries_and_accounts_continue_where_the_page_before_ended() {
    let bench = Bench::new();
    let ledger = bench.open();
    for nth in 0..25 {
        let name = format!("a{:02}", nth % 7);
        let _ = ledger
            .grant(&grant_of(&name, &format!("g{nth}"), 10), later(nth))
            .unwrap();
    }
    let mut seen = Vec::new();
    loop {
        let page = ledger.entries(seen.len() as u64, 4).unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 4);
        seen.extend(page);
    }
    assert_eq!(seen, all(&ledger));
    let mut names: Vec<String> = Vec::new();
    loop {
        let after = names.last().cloned().unwrap_or_default();
        let page = ledger.accounts(&after, 3).unwrap();
        if page.is_empty() {
            break;
        }
        for (name, balance) in page {
            let expected = if name.as_str() < "a04" { 40 } else { 30 };
            assert_eq!(balance.granted, amount(expected), "{name}");
            names.push(name.to_string());
        }
    }
    assert_eq!(names, ["a00", "a01", "a02", "a03", "a04", "a05", "a06"]);
}

#[test]
fn untimed_use_keeps_its_measures_and_is_charged_by_wall_clock_and_marked_as_estimated() {
    let (_bench, ledger) = Bench::funded();
    let one = sandbox("run_1");
    let _ = ledger
        .reserve(&account("shop"), &one, &quote(60), NOW)
        .unwrap();
    let stored = Usage {
        written_bytes: Some(4096),
        egress_bytes: Some(7),
        ..Usage::alive(0)
    };
    let settled = ledger
        .settle(&one, Actuals::UntimedUse(&stored), later(9500))
        .unwrap();
    let Event::Settle { amount, usage, .. } = &settled.entry().content.event else {
        panic!("{settled:?}");
    };
    assert_eq!(amount.get(), 110);
    assert!(usage.estimated);
    assert_eq!(usage.seconds_alive, 10);
    assert_eq!(
        (usage.written_bytes, usage.egress_bytes),
        (Some(4096), Some(7))
    );
    check(&ledger, &["shop"]);
}

#[test]
fn exports_have_every_entry_and_the_hashes_of_the_json_lines_form_a_chain() {
    use sha2::{Digest as _, Sha256};
    let (_bench, ledger) = Bench::funded();
    let one = sandbox("run_1");
    let _ = ledger
        .reserve(&account("shop"), &one, &quote(60), NOW)
        .unwrap();
    let _ = ledger
        .settle(&one, Actuals::WallClock, later(1500))
        .unwrap();
    let mut bytes = Vec::new();
    ledger.export_json_lines(&mut bytes).unwrap();
    let lines: Vec<serde_json::Value> = std::str::from_utf8(&bytes)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    for (nth, line) in lines.iter().enumerate() {
        // The test computes the hash by the rule of the schema, without the crate.
        let mut content = line.clone();
        let hash = content
            .as_object_mut()
            .unwrap()
            .shift_remove("hash")
            .unwrap();
        let previous = line["previous"].as_str().unwrap();
        let digest = Sha256::digest(format!("{previous}\n{content}"));
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, digits.as_str(), "{nth}");
        if nth > 0 {
            assert_eq!(line["previous"], lines[nth - 1]["hash"]);
        }
    }
    assert_eq!(lines[2]["usage"]["estimated"], true);
    let mut bytes = Vec::new();
    ledger.export_csv(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let rows: Vec<Vec<&str>> = text
        .split_terminator("\r\n")
        .map(|row| row.split(',').collect())
        .collect();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
    let field = |name: &str| rows[3][rows[0].iter().position(|column| *column == name).unwrap()];
    assert_eq!(field("kind"), "settle");
    assert_eq!(field("amount"), "102");
    assert_eq!(field("estimated"), "true");
    assert_eq!(field("cpu_ms"), "");
    assert_eq!(field("available"), "898");
}

#[test]
fn random_operations_keep_the_sums_and_the_chain_valid_and_settle_each_sandbox_once() {
    let bench = Bench::new();
    let mut ledger = bench.open();
    let mut random = Random(20);
    let mut recorded = 0;
    let mut refused = std::collections::BTreeMap::new();
    for round in 0..10_000 {
        match step(&ledger, &mut random, "p", round) {
            Ok(Recorded::Now(_)) => recorded += 1,
            Ok(Recorded::Before(_)) => {}
            Err(error) => *refused.entry(error.code().as_str()).or_insert(0) += 1,
        }
        if round % 2500 == 2499 {
            check(&ledger, &ACCOUNTS);
            ledger = bench.open();
        }
    }
    assert_eq!(all(&ledger).len(), recorded);
    let kinds: std::collections::BTreeSet<_> = all(&ledger)
        .iter()
        .map(|e| e.content.event.kind())
        .collect();
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    assert_eq!(
        refused.keys().copied().collect::<Vec<_>>(),
        ["wp_codebox_credits_short", "wp_codebox_ledger_conflict"],
        "{refused:?}"
    );
}

#[test]
fn threads_that_share_a_ledger_and_threads_that_open_it_themselves_lose_no_entry() {
    let bench = Bench::new();
    let shared = bench.open();
    let work = |ledger: &Ledger, name: &str, seed: u64| {
        let mut random = Random(seed);
        (0..100)
            .filter(|round| {
                let done = step(ledger, &mut random, name, *round);
                done.is_ok_and(|recorded| is_new(&recorded))
            })
            .count()
    };
    let own = || bench.open();
    let count = std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| work(&shared, "t1", 1)),
            scope.spawn(|| work(&shared, "t2", 2)),
            scope.spawn(|| work(&own(), "t3", 3)),
            scope.spawn(|| work(&own(), "t4", 4)),
        ];
        threads
            .map(|thread| thread.join().unwrap())
            .iter()
            .sum::<usize>()
    });
    assert_eq!(all(&shared).len(), count);
    check(&shared, &ACCOUNTS);
}
