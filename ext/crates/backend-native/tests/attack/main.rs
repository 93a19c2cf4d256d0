//! The attack suite: every vector of `tests/sandbox/attack/vectors.json`, inside and outside.
//!
//! One line per vector, level and user: what was seen inside, what the control saw, and
//! whether that is what the table says. A denial counts only beside a control in which
//! the same attempt works; where no control can work on this kernel, the table gives the
//! reason and the control proves it. Nothing is skipped.
//!
//! CODEBOX_ATTACK_LEVELS  levels to run, e.g. `full,reduced`; default both
//! Arguments select vectors whose name contains one of them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed assumption is a failed test"
)]

mod arena;
mod bed;
mod git;
mod outside;
mod places;
mod races;
mod scenarios;
mod survivors;
mod table;
#[allow(dead_code, reason = "shared with the sandbox tests")]
#[path = "../sandbox/world.rs"]
mod world;

use arena::Arena;
use outside::Outside;
use places::{Host, fill};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;
use table::{Place, ProbeKind, Vector, matches};
use wp_codebox_contracts::IsolationLevel;

/// What a variable of the runner's environment is called that no guest may see.
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

/// A variable and a descriptor that a careless runner would pass on.
fn leak() {
    // SAFETY: no other thread exists yet; the descriptor stays open on purpose.
    unsafe {
        std::env::set_var(VARIABLE, places::MARKER);
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
    world::world();
    let host = Host::make(&mut outside);
    let path = world::repository().join("tests/sandbox/attack/vectors.json");
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
            .map(|place| world::tree(place))
            .collect();
        let mut arena = Arena::new(level, &host);
        for vector in &table {
            let result = catch_unwind(AssertUnwindSafe(|| one(vector, &mut arena, &mut outside)));
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
        drop(arena);
        let after: Vec<_> = host
            .guarded
            .iter()
            .map(|place| world::tree(place))
            .collect();
        let whole = filters.is_empty() && before != after || !host.queues_are_whole();
        let changed = whole && !only_controls(&before, &after);
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

/// Whether the controls alone explain a difference: they change files named for it.
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

/// One vector at one level; none when the table says it is not tried there.
fn one(vector: &Vector, arena: &mut Arena<'_>, outside: &mut Outside) -> Option<Line> {
    if vector.control.place == Place::Neighbour
        || vector.run.iter().any(|a| a.contains("{NEIGHBOUR"))
    {
        arena.neighbour();
    }
    let report = arena.guest().guest.report().clone();
    let expected = vector.expected(&report)?.to_owned();
    let began = Instant::now();
    let (inside, control) = if vector.probe == ProbeKind::Scenario {
        scenarios::run(&vector.run[0], arena, outside)
    } else {
        let inside = arena.attempt(vector.probe, &vector.run, vector.guest);
        (inside, control(vector, arena, outside))
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

fn control(vector: &Vector, arena: &mut Arena<'_>, outside: &mut Outside) -> String {
    let run = vector.control.run.as_ref().unwrap_or(&vector.run);
    match vector.control.place {
        Place::Neighbour => arena.attempt_by_neighbour(vector.probe, run),
        Place::Scenario => "no scenario".to_owned(),
        place @ (Place::User | Place::Namespace | Place::Root) => {
            let names = arena.outside_names();
            let filled: Vec<String> = run.iter().map(|part| fill(part, &names)).collect();
            outside.observe(&vector.id, place, vector.probe, &filled)
        }
    }
}
