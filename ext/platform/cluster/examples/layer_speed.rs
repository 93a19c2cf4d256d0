//! Packs a directory as a layer and unpacks it: `layer_speed DIRECTORY TEMPORARY ROUNDS`.
//! Prints one JSON line per round: milliseconds of each step, wall clock and processor time, and sizes.
//! `tests/bench/layers` reads the lines.
//!
//! The steps: the scan by which a submitter finds an unchanged directory, the digest by which it
//! finds a directory that the server has already, packing on the submitter, and unpacking on a
//! node.

use serde_json::json;
use std::error::Error;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;
use wp_codebox_artifacts::{CaptureLimits, Dir, ExcludeRules, remove_tree, scan_tree};
use wp_codebox_cluster::layers::{PackRules, pack, pack_to, unpack};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(temporary), Some(rounds)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("use: layer_speed DIRECTORY TEMPORARY ROUNDS".into());
    };
    let (root, temporary) = (Dir::open(Path::new(&directory))?, Path::new(&temporary));
    let (rules, limits) = (PackRules::whole(), CaptureLimits::TREE);
    for _ in 0..rounds.parse::<u32>()? {
        let mut last = (Instant::now(), processor_ms());
        let mut lap = || {
            let now = (Instant::now(), processor_ms());
            let wall = now.0.duration_since(last.0).as_secs_f64() * 1000.0;
            let step = json!({"wall_ms": wall, "cpu_ms": now.1 - last.1});
            last = now;
            step
        };
        scan_tree(root.as_fd(), &ExcludeRules::default(), &limits)?;
        let scan = lap();
        pack_to(root.as_fd(), &rules, std::io::sink())?;
        let digest = lap();
        let layer = pack(root.as_fd(), &rules, temporary)?;
        let pack = lap();
        let into = temporary.join("unpacked");
        unpack(&layer.file, &layer.packed.digest, &into, &limits)?;
        let unpack = lap();
        remove_tree(&into)?;
        let row = json!({
            "scan": scan, "digest": digest, "pack": pack, "unpack": unpack,
            "bytes": layer.packed.bytes, "compressed_bytes": layer.compressed_bytes,
        });
        println!("{row}");
    }
    Ok(())
}

/// Returns the processor time of this process in milliseconds.
fn processor_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1000.0 + time.tv_nsec as f64 / 1e6
}
