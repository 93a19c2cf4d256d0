//! Limits of a call: fuel, memory, time, output, exit status.

use crate::fixture::{Tool, command};

const FOREVER: &str = "(loop $again (br $again))";

#[test]
fn endless_loop_ends_by_its_fuel_or_at_its_deadline_whichever_comes_first() {
    let short = Tool::wat(&command(FOREVER)).limit("fuel", 100_000);
    short.run(&[]).refused("wasi_fuel_exhausted");
    let long = Tool::wat(&command(FOREVER))
        .limit("fuel", 1_000_000_000_000)
        .limit("wall_ms", 200);
    long.run(&[]).refused("wasi_deadline");
}

/// The number of units that a call needs is the same in each run: one unit less fails each time.
#[test]
fn fuel_of_the_same_call_is_the_same_in_each_run() {
    let counted = "(local $i i32) (loop $again
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $i) (i32.const 1000))))";
    let status = |fuel: u64| {
        Tool::wat(&command(counted))
            .limit("fuel", fuel)
            .run(&[])
            .status
    };
    let (mut fails, mut passes) = (1, 100_000);
    while passes - fails > 1 {
        let fuel = (fails + passes) / 2;
        match status(fuel) {
            0 => passes = fuel,
            _ => fails = fuel,
        }
    }
    assert!((5_000..20_000).contains(&passes), "{passes}");
    for _ in 0..3 {
        assert_eq!((status(passes), status(fails)), (0, 125), "{passes}");
    }
}

/// Writes a subscription for `poll_oneoff` to address 64: a timer of one hour.
#[test]
fn module_that_sleeps_in_the_host_ends_at_its_deadline() {
    let sleep = "
        (i64.store (i32.const 64) (i64.const 0))
        (i64.store (i32.const 72) (i64.const 0))
        (i32.store (i32.const 80) (i32.const 1))
        (i64.store (i32.const 88) (i64.const 3600000000000))
        (i64.store (i32.const 96) (i64.const 0))
        (i64.store (i32.const 104) (i64.const 0))
        (drop (call $poll (i32.const 64) (i32.const 256) (i32.const 1) (i32.const 0)))";
    Tool::wat(&command(sleep))
        .limit("wall_ms", 200)
        .run(&[])
        .refused("wasi_deadline");
    // Positive control: the same call with a sleep of one millisecond ends by itself.
    let brief = sleep.replace("3600000000000", "1000000");
    Tool::wat(&command(&brief)).run(&[]).ended(0);
}

#[test]
fn memory_and_tables_beyond_the_limit_end_the_call() {
    let grow = "(drop (memory.grow (i32.const 100)))";
    let table = "(drop (table.grow $table (ref.null func) (i32.const 100000)))";
    for start in [grow, table] {
        let bytes = 1 << 20;
        Tool::wat(&command(start))
            .limit("memory_bytes", bytes)
            .run(&[])
            .refused("wasi_memory_exceeded");
        // Positive control: the same module with more memory.
        Tool::wat(&command(start)).run(&[]).ended(0);
    }
    let initial = command("").replace("\"memory\") 1)", "\"memory\") 1000)");
    Tool::wat(&initial).run(&[]).refused("wasi_memory_exceeded");
    Tool::wat(&initial)
        .limit("memory_bytes", 100 << 20)
        .run(&[])
        .ended(0);
}

#[test]
fn output_beyond_the_limit_ends_the_call_after_exactly_the_limit() {
    let endless = "(loop $again (call $write (i32.const FD) (i32.const 1000)) (br $again))";
    for (fd, name) in [("1", "stdout"), ("2", "stderr")] {
        let tool = Tool::wat(&command(&endless.replace("FD", fd))).limit("output_bytes", 10_500);
        let ended = tool.run(&[]);
        ended.refused("wasi_output_too_large");
        match name {
            "stdout" => assert_eq!(ended.stdout.len(), 10_500),
            // The error of the runner follows on a line of its own.
            _ => assert_eq!(ended.stderr.find("\n{\"code\"").unwrap(), 10_500),
        }
    }
    // Positive control: as many bytes as are allowed.
    let exact = Tool::wat(&command("(call $write (i32.const 1) (i32.const 1000))"));
    assert_eq!(
        exact.limit("output_bytes", 1000).run(&[]).ended(0).len(),
        1000
    );
}

#[test]
fn traps_are_reported_with_their_name() {
    for (start, name) in [
        ("unreachable", "unreachable"),
        ("(call $recurse)", "stack"),
        ("(drop (i32.load (i32.const -8)))", "out of bounds"),
        ("(drop (i32.div_s (i32.const 1) (i32.const 0)))", "zero"),
    ] {
        let ended = Tool::wat(&command(start)).run(&[]);
        ended.refused("wasi_trap");
        assert!(ended.stderr.contains(name), "{ended:?}");
    }
}

#[test]
fn exit_statuses_0_to_123_are_passed_on_and_a_module_cannot_fake_an_error_of_the_runner() {
    for status in [0, 1, 123] {
        let start = format!("(call $exit (i32.const {status}))");
        Tool::wat(&command(&start)).run(&[]).ended(status);
    }
    // The module writes an error like the runner's to standard error first.
    for status in [124, 125, 126, 255, 256, -1] {
        let start =
            format!("(call $write (i32.const 2) (i32.const 64)) (call $exit (i32.const {status}))");
        let ended = Tool::wat(&command(&start)).run(&[]);
        assert!(
            ended
                .stderr
                .starts_with("{\"code\":\"wp_codebox_wasi_trap\""),
            "{ended:?}"
        );
        ended.refused("wasi_exit_invalid");
    }
}
