//! Calls every command of the public contract with every value that its argument formats name.
//!
//! `tests/conformance/public/` has the contract (`commands.json`), example values of the formats
//! that are not lists of words (`values.json`) and the intended differences (`differences.json`).

#![allow(clippy::unwrap_used)] // Helpers of the test panic on errors.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use wp_codebox_contracts::{CommandCall, RuntimePolicy};
use wp_codebox_policy::{assert_step, required_commands};

fn data(name: &str) -> Value {
    let path = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../tests/conformance/public")
        .join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

/// Returns the values to try: those of `values.json`, or the words that the format lists. A format
/// `a,b` is a list: each word alone and all together.
fn values(examples: &Map<String, Value>, format: &str) -> Vec<String> {
    if let Some(examples) = examples.get(format) {
        let examples = examples.as_array().unwrap();
        return examples
            .iter()
            .map(|v| v.as_str().unwrap().to_owned())
            .collect();
    }
    let words = |separator| -> Vec<String> {
        let words: Vec<String> = format.split(separator).map(str::to_owned).collect();
        let word = |w: &String| {
            w.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        if words.len() > 1 && words.iter().all(word) {
            words
        } else {
            Vec::new()
        }
    };
    let mut found = words('|');
    found.extend(words(','));
    if format.contains(',') && !found.is_empty() {
        found.push(format.to_owned());
    }
    assert!(
        !found.is_empty(),
        "values.json has no values for the format {format:?}"
    );
    found
}

fn call(id: &str, args: Vec<String>) -> Result<(), String> {
    let policy: RuntimePolicy = serde_json::from_value(json!({
        "network": "deny",
        "filesystem": "sandbox",
        "commands": required_commands(id),
        "secrets": "none",
        "approvals": "never",
    }))
    .unwrap();
    let call = CommandCall {
        command: id.to_owned(),
        args,
    };
    assert_step(&policy, &call)
        .map(|_| ())
        .map_err(|e| e.to_string())
}

#[test]
fn every_public_command_accepts_every_value_of_its_public_arguments_except_the_listed_differences()
{
    let (contract, values_file) = (data("commands.json"), data("values.json"));
    let formats = values_file["formats"].as_object().unwrap();
    let own = values_file["arguments"].as_object().unwrap();
    let differences = data("differences.json");
    let listed: BTreeSet<&str> = ["commands", "arguments", "values"]
        .iter()
        .filter_map(|kind| differences[kind].as_array())
        .flatten()
        .flat_map(|difference| difference["names"].as_array().unwrap())
        .map(|name| name.as_str().unwrap())
        .collect();
    let (mut refused, mut wrong, mut tried) = (BTreeSet::new(), Vec::new(), 0);
    for command in contract.as_array().unwrap() {
        let id = text(command, "id");
        let args = command["args"].as_array().unwrap();
        let first = |arg: &Value| {
            let key = format!("{id} {}", text(arg, "name"));
            let values = match own.get(&key) {
                Some(_) => values(own, &key),
                None => values(formats, text(arg, "format")),
            };
            (key, values)
        };
        if args.is_empty()
            && let Err(error) = call(id, Vec::new())
        {
            match listed.contains(id) {
                true => drop(refused.insert(id.to_owned())),
                false => wrong.push(format!("{id}: {error}")),
            }
        }
        for arg in args {
            let (key, values) = first(arg);
            for value in values {
                tried += 1;
                let required = args
                    .iter()
                    .filter(|other| other["required"] == true && other != &arg)
                    .map(|other| format!("{}={}", text(other, "name"), first(other).1[0]));
                let given = format!("{}={value}", text(arg, "name"));
                if let Err(error) = call(id, required.chain([given]).collect()) {
                    let names = [id.to_owned(), key.clone(), format!("{key}={value}")];
                    match names.iter().find(|name| listed.contains(name.as_str())) {
                        Some(name) => drop(refused.insert(name.clone())),
                        None => wrong.push(format!("{key}={value}: {error}")),
                    }
                }
            }
        }
    }
    assert!(tried > 900, "{tried} values");
    assert!(wrong.is_empty(), "refused:\n{}", wrong.join("\n"));
    let accepted: Vec<&&str> = listed.iter().filter(|n| !refused.contains(**n)).collect();
    assert_eq!(accepted, Vec::<&&str>::new(), "accepted, so no difference");
}
