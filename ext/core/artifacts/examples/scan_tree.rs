//! Scans a directory as a run scans the source of a mount: `scan_tree DIRECTORY ROUNDS`.
//! Prints one line per scan: its duration in milliseconds. `tests/bench/large` reads the lines.

use std::error::Error;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;
use wp_codebox_artifacts::{CaptureLimits, Dir, ExcludeRules, scan_tree};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(rounds)) = (arguments.next(), arguments.next()) else {
        return Err("use: scan_tree DIRECTORY ROUNDS".into());
    };
    let root = Dir::open(Path::new(&directory))?;
    for _ in 0..rounds.parse::<u32>()? {
        let began = Instant::now();
        scan_tree(root.as_fd(), &ExcludeRules::default(), &CaptureLimits::TREE)?;
        println!("{:.3}", began.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(())
}
