//! Attack suite: runs every vector of `tests/sandbox/attack/vectors.json` inside of guests and, as
//! control, outside.
//!
//! Prints one line per vector, level and user: the observation inside, the observation of the
//! control, and whether both match the table. A denial inside a guest counts only if the same
//! attempt succeeds outside, in the control. Some kernels refuse an attempt outside of guests too.
//! For such attempts the table gives the reason and the error that the control must then observe.
//! No vector is skipped.
//!
//! CODEBOX_ATTACK_LEVELS  levels to run, for example `full,reduced`; default both
//! Arguments select the vectors whose name contains one of them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed assumption is a failed test"
)]

#[allow(dead_code, reason = "shared with the sandbox tests")]
#[path = "../sandbox/fixture.rs"]
mod fixture;
mod git;
mod guest;
mod guests;
mod host_targets;
mod outside;
mod races;
mod scenarios;
mod survivors;
mod table;

use guests::AttackGuests;
use host_targets::{Host, fill};
use outside::Outside;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;
use table::{ControlLocation, ProbeKind, Vector, matches};
use wp_codebox_contracts::IsolationLevel;

/// Environment variable that is set for the supervisor and that no guest may see.
const VARIABLE: &str = "ATTACK_ENVIRONMENT";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(outside::HELPER) => outside::serve_root(),
        Some(scenarios::METADATA) => scenarios::serve_metadata(level(&arguments[1])),
        Some(survivors::RUNNER) => survivors::be_runner(level(&arguments[1])),
        Some("--list") => {}
        _ => return suite(&arguments),
    }
    ExitCode::SUCCESS
}

/// Sets a variable and opens a descriptor that a faulty supervisor would pass on to guests.
fn leak() {
    // SAFETY: no other thread exists yet; the descriptor intentionally stays open.
    unsafe {
        std::env::set_var(VARIABLE, host_targets::MARKER);
        assert!(libc::open(c"/etc/passwd".as_ptr(), libc::O_RDONLY) >= 0);
    }
}

fn levels() -> Vec<IsolationLevel> {
    let wanted =
        std::env::var("CODEBOX_ATTACK_LEVELS").unwrap_or_else(|_| "full,reduced".to_owned());
    wanted.split(',').map(level).collect()
}

fn level(name: &str) -> IsolationLevel {
    match name {
        "full" => IsolationLevel::Full,
        "reduced" => IsolationLevel::Reduced,
        other => panic!("no level {other}"),
    }
}

fn suite(arguments: &[String]) -> ExitCode {
    let began = Instant::now();
    leak();
    git::hold_runner();
    let mut outside = Outside::start();
    fixture::fixture();
    let host = Host::make(&mut outside);
    let path = fixture::repository().join("tests/sandbox/attack/vectors.json");
    let filters: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let table: Vec<Vector> = table::read(&path)
        .into_iter()
        .filter(|one| filters.is_empty() || filters.iter().any(|f| one.id.contains(f.as_str())))
        .collect();
    let (mut passed, mut failed) = (0, 0);
    let user = rustix::process::geteuid().as_raw();
    println!("\nrunning {} attacks as user {user}", table.len());
    for level in levels() {
        let before: Vec<_> = host
            .guarded
            .iter()
            .map(|place| fixture::tree(place))
            .collect();
        let mut guests = AttackGuests::new(level, &host);
        for vector in &table {
            let result = catch_unwind(AssertUnwindSafe(|| one(vector, &mut guests, &mut outside)));
            let Ok(Some(line)) = result else {
                if result.is_err() {
                    println!(
                        "FAIL {level:?} {user} {}: the suite broke, see above",
                        vector.id
                    );
                    failed += 1;
                }
                continue;
            };
            println!("{} {level:?} {user} {}", line.word(), line.text);
            if line.good { passed += 1 } else { failed += 1 }
        }
        drop(guests);
        let after: Vec<_> = host
            .guarded
            .iter()
            .map(|place| fixture::tree(place))
            .collect();
        let files = filters.is_empty() && before != after && !only_controls(&before, &after);
        let changed = files || !host.queues_are_whole();
        println!(
            "{} {level:?} {user} nothing of the host changed",
            if changed { "FAIL" } else { "ok  " }
        );
        if changed { failed += 1 } else { passed += 1 }
    }
    outside.finish(&host.names["OUT"]);
    drop(host);
    println!(
        "\ntest result: {}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out; finished in {:.2}s\n",
        if failed == 0 { "ok" } else { "FAILED" },
        began.elapsed().as_secs_f32()
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

type Trees = [std::collections::BTreeMap<String, String>];

/// Returns whether all differences between two listings of host directories come from controls:
/// controls change only files with `control` in their name.
fn only_controls(before: &Trees, after: &Trees) -> bool {
    before.iter().zip(after).all(|(before, after)| {
        let keys = before.keys().chain(after.keys());
        keys.filter(|name| before.get(*name) != after.get(*name))
            .all(|name| name.contains("control"))
    })
}

struct Line {
    good: bool,
    open: bool,
    text: String,
}

impl Line {
    fn word(&self) -> &'static str {
        match (self.good, self.open) {
            (false, _) => "FAIL",
            (true, true) => "open",
            (true, false) => "ok  ",
        }
    }
}

/// Runs one vector at one level; returns `None` if the table excludes the vector at that level.
fn one(vector: &Vector, guests: &mut AttackGuests<'_>, outside: &mut Outside) -> Option<Line> {
    if vector.control.place == ControlLocation::Neighbour
        || vector.run.iter().any(|a| a.contains("{NEIGHBOUR"))
    {
        guests.neighbour();
    }
    let report = guests.guest().guest.report().clone();
    let expected = vector.expected(&report)?.to_owned();
    let began = Instant::now();
    let (inside, control) = if vector.probe == ProbeKind::Scenario {
        scenarios::run(&vector.run[0], guests, outside)
    } else {
        let inside = guests.attempt(vector.probe, &vector.run, vector.guest);
        (inside, control(vector, guests, outside))
    };
    let works = matches(&vector.control.sees, &control);
    let unable = vector
        .control
        .unable
        .as_ref()
        .filter(|unable| !works && matches(&unable.sees, &control));
    let good = matches(&expected, &inside) && (works || unable.is_some());
    let place = vector.control.place.name();
    let mut text = format!("{:<26} inside: {inside:<22} {place}: {control}", vector.id);
    if let Some(unable) = unable {
        text.push_str(&format!(" ({})", unable.because));
    }
    if !good {
        text.push_str(&format!(
            "; expected inside {expected}, {place} {}",
            vector.control.sees
        ));
    }
    if began.elapsed().as_secs() >= 5 {
        text.push_str(&format!(" [{:.1} s]", began.elapsed().as_secs_f32()));
    }
    let open = vector.is_open(&expected);
    Some(Line { good, open, text })
}

fn control(vector: &Vector, guests: &mut AttackGuests<'_>, outside: &mut Outside) -> String {
    let run = vector.control.run.as_ref().unwrap_or(&vector.run);
    match vector.control.place {
        ControlLocation::Neighbour => guests.attempt_by_neighbour(vector.probe, run),
        ControlLocation::Scenario => "no scenario".to_owned(),
        place @ (ControlLocation::User | ControlLocation::Namespace | ControlLocation::Root) => {
            let names = guests.outside_names();
            let filled: Vec<String> = run.iter().map(|part| fill(part, &names)).collect();
            outside.observe(&vector.id, place, vector.probe, &filled)
        }
    }
}
