//! `text.replace`: replaces a text in every UTF-8 file below a directory.
//!
//! Arguments: `from`, `to`, `path` (default `/work`). Prints each changed file with the number of its replacements. Symbolic
//! links are not followed. Exit status: 0, or 2 if it cannot work.

mod arguments;

use std::fs;
use std::path::Path;
use std::process::exit;

fn main() {
    if let Err(reason) = replace() {
        eprintln!("text.replace: {}", reason);
        exit(2);
    }
}

fn replace() -> Result<(), String> {
    let arguments = arguments::Arguments::read()?;
    let from = arguments.get("from").ok_or("the argument from is missing")?;
    let to = arguments.get("to").ok_or("the argument to is missing")?;
    if from.is_empty() {
        return Err("the argument from is empty".to_string());
    }
    let mut total = 0;
    walk(Path::new(arguments.get("path").unwrap_or("/work")), &mut |path| {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            // A binary file.
            Err(_) => return Ok(()),
        };
        let count = text.matches(from).count();
        if count > 0 {
            fs::write(path, text.replace(from, to))
                .map_err(|error| format!("{}: {}", path.display(), error))?;
            println!("{}: {}", path.display(), count);
            total += count;
        }
        Ok(())
    })?;
    println!("{} replacements", total);
    Ok(())
}

/// Visits the files below a directory, in the order of their names.
fn walk(
    directory: &Path,
    visit: &mut dyn FnMut(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {}", directory.display(), error);
    let mut entries = fs::read_dir(directory)
        .map_err(failed)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            walk(&entry.path(), visit)?;
        } else if kind.is_file() {
            visit(&entry.path())?;
        }
    }
    Ok(())
}
