//! `css.lint`: finds declarations that a later one in the same rule overrides.
//!
//! Arguments: `path`, a file below `/work`. Prints one line for each finding and a summary. Exit
//! status: 0 without findings, 1 with findings, 2 if it cannot work.

mod arguments;

use std::process::exit;

/// A declaration of the rule that is being read.
struct Declaration {
    property: String,
    line: usize,
}

fn main() {
    match lint() {
        Ok(0) => println!("no duplicate declarations"),
        Ok(found) => {
            println!("{} duplicate declarations", found);
            exit(1);
        }
        Err(reason) => {
            eprintln!("css.lint: {}", reason);
            exit(2);
        }
    }
}

fn lint() -> Result<usize, String> {
    let arguments = arguments::Arguments::read()?;
    let path = arguments.get("path").ok_or("the argument path is missing")?;
    let file = format!("/work/{}", path);
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {}", path, error))?;
    let mut found = 0;
    for (property, first, second) in duplicates(&text) {
        found += 1;
        println!("{}:{}: {} overrides line {}", path, second, property, first);
    }
    Ok(found)
}

/// Returns property, line of the first and line of the second declaration of each duplicate.
fn duplicates(text: &str) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    // One list of declarations for each open block.
    let mut blocks: Vec<Vec<Declaration>> = Vec::new();
    let (mut word, mut line, mut start) = (String::new(), 1, 1);
    let mut characters = text.chars().peekable();
    let mut quote = None;
    while let Some(c) = characters.next() {
        if c == '\n' {
            line += 1;
        }
        if let Some(open) = quote {
            word.push(c);
            if c == '\\' {
                word.extend(characters.next());
            } else if c == open {
                quote = None;
            }
            continue;
        }
        if c == '/' && characters.peek() == Some(&'*') {
            characters.next();
            let mut last = ' ';
            for c in characters.by_ref() {
                line += usize::from(c == '\n');
                if last == '*' && c == '/' {
                    break;
                }
                last = c;
            }
            continue;
        }
        match c {
            '{' => {
                blocks.push(Vec::new());
                word.clear();
            }
            ';' | '}' => {
                declare(&mut blocks, &word, start, &mut found);
                word.clear();
                if c == '}' {
                    blocks.pop();
                }
            }
            '"' | '\'' => {
                quote = Some(c);
                word.push(c);
            }
            _ => {
                if word.trim().is_empty() && !c.is_whitespace() {
                    start = line;
                }
                word.push(c);
            }
        }
    }
    found
}

fn declare(
    blocks: &mut [Vec<Declaration>],
    word: &str,
    line: usize,
    found: &mut Vec<(String, usize, usize)>,
) {
    let (block, (property, _)) = match (blocks.last_mut(), word.split_once(':')) {
        (Some(block), Some(parts)) => (block, parts),
        _ => return,
    };
    let property = property.trim().to_lowercase();
    if let Some(earlier) = block.iter().find(|one| one.property == property) {
        found.push((property.clone(), earlier.line, line));
    }
    block.push(Declaration { property, line });
}
