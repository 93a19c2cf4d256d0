//! A module that tries to leave its directory. Its first argument names the attempt.

use std::fs;
use std::process::exit;

fn main() {
    let attempt = std::env::args().nth(1).unwrap_or_default();
    let told = match attempt.as_str() {
        "read-link" => fs::read_to_string("/work/link").map(|text| println!("{}", text)),
        "read-up" => fs::read_to_string("/work/../secret").map(|text| println!("{}", text)),
        "read-absolute" => fs::read_to_string("/etc/passwd").map(|text| println!("{}", text)),
        "write-link" => fs::write("/work/link", "overwritten"),
        "write-through-directory" => fs::write("/work/out/made", "x"),
        "write" => fs::write("/work/made", "x"),
        "environment" => {
            println!("{}", std::env::vars().count());
            Ok(())
        }
        _ => exit(99),
    };
    if let Err(error) = told {
        println!("refused: {:?}", error.kind());
        exit(3);
    }
}
