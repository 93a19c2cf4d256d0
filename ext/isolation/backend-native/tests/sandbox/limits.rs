//! Resource limits of a guest and the result of exceeding them.

use crate::fixture::*;
use crate::lifetime::{all_gone, descendants, parent};
use wp_codebox_backend_native::{ExecEnd, KillCause};
use wp_codebox_contracts::{ExecLimits, Limits};

const MIB: u64 = 1024 * 1024;

fn limited(change: impl Fn(&mut Limits)) -> wp_codebox_backend_native::Guest {
    let mut limits = Limits::default();
    change(&mut limits);
    Spec {
        limits,
        ..Spec::default()
    }
    .launch()
}

#[test]
fn processes_above_the_limit_fail_to_start_and_a_fork_bomb_ends_with_its_guest() {
    let mut guest = limited(|l| l.processes = 20);
    let count = "i=0; while [ $i -lt COUNT ]; do sleep 40 & i=$((i+1)); done; echo all";
    let result = sh(&mut guest, &count.replace("COUNT", "12"));
    assert_eq!(result.ok(), "all\n", "control: below the limit");
    let result = sh(&mut guest, &count.replace("COUNT", "60"));
    assert_ne!(result.code(), 0, "{result:?}");
    let mut guest = limited(|l| l.processes = 20);
    sh(
        &mut guest,
        "bash -c 'f() { f | f & }; f; sleep 30' >/dev/null 2>&1 &",
    )
    .ok();
    let launcher = parent(guest.pid());
    in_time(|| descendants(launcher).len() > 15);
    let all = descendants(launcher);
    guest.kill(KillCause::Finished);
    assert!(all_gone(&all), "{all:?}");
}

#[test]
fn guest_is_killed_when_its_processes_together_exceed_the_memory_limit() {
    let mut guest = limited(|l| l.memory_bytes = 256 * MIB);
    let hog = |size: u32, seconds: u32| {
        format!("php -r '$x=str_repeat(\"x\",{size}*1024*1024);sleep({seconds});'")
    };
    assert_eq!(
        sh(&mut guest, &hog(100, 0)).code(),
        0,
        "control: one of them fits"
    );
    let result = sh(&mut guest, &format!("{0} & {0} & {0} & wait", hog(100, 20)));
    assert_eq!(result.execution.end, ExecEnd::MemoryLimit);
    assert!(result.execution.memory_pressure);
    let result = run(&mut guest, &["true"]);
    assert_eq!(
        result.execution.end,
        ExecEnd::MemoryLimit,
        "still known later"
    );
    let end = guest.kill(KillCause::Finished);
    assert_eq!(end.cause, KillCause::Memory);
    assert!(end.usage.peak_memory_bytes > 256 * MIB);
}

/// After fork, parent and children share all pages that none of them changes.
#[test]
fn pages_that_processes_share_count_once_towards_the_memory_limit() {
    let fork = "
import os, sys, time
held = bytearray(60 << 20)
ready, tell = os.pipe()
wait, end = os.pipe()
for child in range(8):
    if os.fork() == 0:
        os.close(end)
        if sys.argv[1] == 'change':
            held[:] = b'x' * len(held)
        os.write(tell, b'.')
        os.read(wait, 1)
        os._exit(0)
for child in range(8):
    os.read(ready, 1)
# All children hold their pages. The end of the pipe lets them exit.
time.sleep(2 if sys.argv[1] == 'share' else 60)
os.close(end)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break";
    let mut guest = limited(|l| l.memory_bytes = 256 * MIB);
    let shared = run(&mut guest, &["/usr/bin/python3", "-c", fork, "share"]);
    assert_eq!(shared.code(), 0, "{shared:?}");
    assert!(guest.usage().peak_memory_bytes < 256 * MIB);
    let changed = run(&mut guest, &["/usr/bin/python3", "-c", fork, "change"]);
    assert_eq!(changed.execution.end, ExecEnd::MemoryLimit, "control");
}

#[test]
fn process_that_needs_more_than_memory_bytes_fails_and_memory_pressure_is_reported() {
    // With strings of the first size PHP touches all memory that it maps, with the second size only
    // half.
    for size in [1_000_000, 1_048_576] {
        let mut guest = limited(|l| l.memory_bytes = 128 * MIB);
        let hog = format!("$a=[];while(true){{$a[]=str_repeat('x',{size});}}");
        let result = run(&mut guest, &["php", "-r", &hog]);
        assert!(!matches!(result.execution.end, ExecEnd::Exited(0)));
        assert!(result.execution.memory_pressure, "{size}: {result:?}");
    }
    // The control needs a new guest: the thread that polls the memory may have killed the previous
    // one when the process failed.
    let mut guest = limited(|l| l.memory_bytes = 128 * MIB);
    let result = sh(&mut guest, "exit 1");
    assert!(
        !result.execution.memory_pressure,
        "control: a failure for another reason"
    );
}

#[test]
fn writing_or_truncating_a_file_past_disk_bytes_fails_in_the_guest() {
    let mut guest = limited(|l| l.disk_bytes = 24 * MIB);
    let result = sh(
        &mut guest,
        "head -c 8000000 /dev/zero > /tmp/a && echo fits",
    );
    assert_eq!(result.out, "fits\n", "control");
    assert!(!result.execution.disk_full);
    let result = sh(
        &mut guest,
        "head -c 9000000 /dev/zero > /wordpress/wp-content/b; head -c 20000000 /dev/zero > /home/agent/c",
    );
    assert_ne!(result.code(), 0);
    assert!(result.err.contains("No space left"), "{result:?}");
    assert!(result.execution.disk_full);
    let result = sh(&mut guest, "rm /home/agent/c; truncate -s 100M /tmp/sparse");
    assert_ne!(
        result.execution.end,
        ExecEnd::Exited(0),
        "a sparse file counts by its length"
    );
    assert_eq!(
        sh(&mut guest, "truncate -s 10M /tmp/sparse").code(),
        0,
        "control"
    );
    let end = guest.kill(KillCause::Finished);
    assert!(end.usage.peak_disk_bytes > 20 * MIB && end.usage.peak_disk_bytes <= 24 * MIB);
}

/// The guest gets one inode for each 4 KiB of `disk_bytes`, but at least 16,384 of them.
#[test]
fn creating_files_fails_at_the_scratch_inode_limit() {
    let mut guest = limited(|l| l.disk_bytes = 16 * MIB);
    let fill = "cd /tmp; for d in $(seq 1 40); do mkdir d$d && (cd d$d && touch $(seq 1 1000)) || exit 9; done";
    let result = sh(&mut guest, fill);
    assert_eq!(result.code(), 9, "{result:?}");
    assert!(result.err.contains("No space left"));
}

#[test]
fn cpu_time_limit_ends_one_execution_but_not_the_guest() {
    let mut guest = guest();
    let mut spin = request(&["sh", "-c", "while :; do :; done"]);
    spin.limits = ExecLimits {
        cpu_seconds: Some(1),
    };
    // Without the limit, the program would run until its deadline and end as timed out.
    let result = run_request(&mut guest, &spin, &[]);
    // The hard limit equals the soft limit, so the kernel sends SIGKILL and no SIGXCPU.
    assert_eq!(
        result.execution.end,
        ExecEnd::Signaled(libc::SIGKILL),
        "{result:?}"
    );
    assert!(result.execution.user_us + result.execution.system_us >= 300_000);
    assert_eq!(run(&mut guest, &["true"]).code(), 0, "the guest lives on");
}

#[test]
fn cpu_time_and_peak_memory_of_an_execution_and_its_guest_are_reported() {
    let mut guest = guest();
    // The loop runs until a CPU time, not a wall-clock time, because the machine may be busy.
    let work = "$x=str_repeat('x',60*1024*1024); do { $u=getrusage(); } while($u['ru_utime.tv_sec']*1e6+$u['ru_utime.tv_usec']<3e5); usleep(250000);";
    let result = run(&mut guest, &["php", "-r", work]);
    assert!(result.execution.user_us >= 300_000, "{result:?}");
    assert!(result.execution.max_rss_bytes > 60 * MIB);
    let usage = guest.usage();
    assert!(
        usage.peak_memory_bytes > 60 * MIB && usage.peak_memory_bytes < 300 * MIB,
        "{usage:?}"
    );
    let end = guest.kill(KillCause::Finished);
    assert!(end.user_us >= result.execution.user_us);
    assert_eq!(
        end,
        guest.kill(KillCause::Cancelled),
        "the end is told once"
    );
}
