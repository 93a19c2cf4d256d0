//! Creates and changes the streams and consumers of a cluster; the operator's part.

use super::connection::Connection;
use super::failure::{CallError, number};
use super::objects::{OBJECT_LIMIT, PART};
use super::options::NatsOptions;
use super::plan::{Limits, OVERHEAD, Part, Setup, Shrink, parts};
use super::tokens::Token;
use super::{layout, records};
use crate::bus::BusError;
use serde::Serialize;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::CodedError;

/// What a setup did; names of streams, and of consumers as `<stream>/<consumer>`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SetupReport {
    /// What did not exist before.
    pub created: Vec<String>,
    /// What existed with other settings.
    pub updated: Vec<String>,
    /// What existed with the same settings.
    pub unchanged: Vec<String>,
    /// What exists for capabilities and submitters that this setup does not name. It stays as it is.
    pub kept: Vec<String>,
}

/// Failures of a setup.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
pub enum SetupError {
    /// The settings contradict each other or the server.
    #[error("the cluster cannot be set up: {problem}")]
    #[code(
        InputInvalid,
        hint = "correct the options; `wp-codebox cluster setup --help` describes them"
    )]
    Invalid {
        /// What is wrong.
        problem: String,
    },
    /// Existing bounds would become lower, or a fixed setting differ. Nothing was changed.
    #[error("the setup would lower limits or change fixed settings of the message server: {}", .differences.join("; "))]
    #[code(
        ClusterConflict,
        hint = "give at least the present limits, or allow lower ones with --shrink, which does not change fixed settings"
    )]
    Shrinks {
        /// Stream, setting, present and wanted value of each.
        differences: Vec<String>,
    },
    /// The kernel gives no random bytes for the subjects of streams.
    #[error("the setup needs random bytes, which the kernel does not give: {detail}")]
    #[code(Internal)]
    Random {
        /// Error of the kernel.
        detail: String,
    },
    /// The server failed.
    #[error(transparent)]
    #[code(transparent)]
    Bus(#[from] BusError),
}

/// Creates what does not exist and changes what differs. What `wanted` does not name stays.
///
/// # Errors
/// [`SetupError`]; a setup that fails on the way is continued by the next one.
pub fn setup(options: &NatsOptions, wanted: &Setup) -> Result<SetupReport, SetupError> {
    check(wanted)?;
    let connection = Connection::open(options)?;
    let largest = connection.client().max_payload();
    if largest < PART + OVERHEAD {
        return Err(SetupError::Invalid {
            problem: format!(
                "the server accepts messages of {largest} bytes; set \"max_payload\" of the server to at least {}",
                PART + OVERHEAD
            ),
        });
    }
    match connection.block_on(apply(&connection, wanted)) {
        // Another setup has created a stream meanwhile, with a token that this one must read.
        Err(SetupError::Bus(BusError::Changed)) => connection.block_on(apply(&connection, wanted)),
        applied => applied,
    }
}

fn check(wanted: &Setup) -> Result<(), SetupError> {
    let invalid = |problem: &str| {
        Err(SetupError::Invalid {
            problem: problem.to_owned(),
        })
    };
    let Limits {
        queue_messages,
        task_bytes,
        record_bytes,
        objects_bytes,
        object_bytes,
    } = wanted.limits;
    let bounds = [
        queue_messages,
        task_bytes,
        record_bytes,
        objects_bytes,
        object_bytes,
    ];
    if !matches!(wanted.replicas, 1 | 3 | 5) {
        return invalid("the number of replicas must be 1, 3 or 5");
    }
    if wanted.capabilities.is_empty() {
        return invalid("a cluster needs at least one capability");
    }
    // The server reads limits as signed 64-bit numbers.
    if bounds.iter().any(|bound| *bound == 0 || *bound > 1 << 62) {
        return invalid("each limit must be from 1 to 2^62");
    }
    if object_bytes > objects_bytes {
        return invalid(
            "the limit of one object is larger than the limit of all objects of a submitter",
        );
    }
    Ok(())
}

/// What to do with a stream or consumer.
enum Step {
    Create(Part),
    Update(Part, Map<String, Value>),
    Nothing(Part),
}

async fn apply(connection: &Connection, wanted: &Setup) -> Result<SetupReport, SetupError> {
    let mut report = SetupReport::default();
    let mut differences = Vec::new();
    let mut steps = Vec::new();
    for mut part in parts(wanted) {
        let present = present(connection, &part).await?;
        if let Some(subjects) = &part.subjects {
            let token = token(present.as_ref())?;
            part.config.extend(token.settings(subjects));
        }
        let step = match present {
            None => Step::Create(part),
            Some(present) => compare(part, present, wanted.shrink, &mut differences),
        };
        steps.push(step);
    }
    if !differences.is_empty() {
        return Err(SetupError::Shrinks { differences });
    }
    report.kept = kept(connection, &steps).await?;
    for step in steps {
        let (part, operation, config, list) = match step {
            Step::Create(part) => {
                let (operation, config) = (part.create.clone(), part.config.clone());
                (part, operation, config, &mut report.created)
            }
            Step::Update(part, config) => {
                let operation = part.update.clone();
                (part, operation, config, &mut report.updated)
            }
            Step::Nothing(part) => {
                report.unchanged.push(part.shown);
                continue;
            }
        };
        let body = match &part.stream {
            Some(stream) => json!({"stream_name": stream, "config": config}),
            None => Value::Object(config),
        };
        let answered = connection.call::<Value>(&operation, &body).await;
        answered.map_err(|error| refused(error, &part.shown))?;
        list.push(part.shown);
    }
    Ok(report)
}

/// Returns the token of an existing stream, so that connected parties need not read it again, or a
/// new one.
fn token(present: Option<&Map<String, Value>>) -> Result<Token, SetupError> {
    let found = present.and_then(|config| Token::of(config.get("subjects")?));
    match found {
        Some(token) => Ok(token),
        None => Token::random().map_err(|error| SetupError::Random {
            detail: error.to_string(),
        }),
    }
}

/// Returns the error of a request that creates or changes something.
fn refused(error: CallError, what: &str) -> SetupError {
    match error.number() {
        // Too few servers; replicas need a cluster; the settings are invalid.
        Some(number::NO_PEERS | 10074 | 10052 | 10012) => SetupError::Invalid {
            problem: format!("{what}: {error}"),
        },
        Some(_) | None => SetupError::Bus(error.into_bus(what)),
    }
}

async fn present(
    connection: &Connection,
    part: &Part,
) -> Result<Option<Map<String, Value>>, SetupError> {
    match connection.call::<Value>(&part.info, &Value::Null).await {
        Ok(info) => match info.get("config") {
            Some(Value::Object(config)) => Ok(Some(config.clone())),
            _ => Err(SetupError::Bus(BusError::Unreadable {
                what: part.shown.clone(),
                detail: "the server's answer has no settings".to_owned(),
            })),
        },
        Err(error) if records::is_absent(&error) => Ok(None),
        Err(error) => Err(SetupError::Bus(error.into_bus(&part.shown))),
    }
}

/// Returns a bound as a number; the server writes -1 for none.
fn bound(value: Option<&Value>) -> u64 {
    match value {
        Some(Value::String(text)) => text.parse().unwrap_or(u64::MAX),
        Some(value) => value.as_u64().unwrap_or(u64::MAX),
        None => u64::MAX,
    }
}

fn compare(
    part: Part,
    present: Map<String, Value>,
    shrink: Shrink,
    differences: &mut Vec<String>,
) -> Step {
    let mut config = present.clone();
    for (name, value) in &part.config {
        let old = present.get(name);
        let differs = match (old, value) {
            // The server adds members of its own.
            (Some(Value::Object(old)), Value::Object(new)) => {
                new.iter().any(|(key, value)| old.get(key) != Some(value))
            }
            (None, Value::Bool(false)) => false,
            (old, new) => old != Some(new),
        };
        if !differs {
            continue;
        }
        let lowered = match (name.as_str(), value) {
            ("metadata", Value::Object(new)) => {
                let old = old.and_then(|old| old.get(OBJECT_LIMIT));
                bound(new.get(OBJECT_LIMIT)) < bound(old)
            }
            (name, value) if part.bounds.contains(&name) => bound(Some(value)) < bound(old),
            _ => false,
        };
        let is_fixed = part.fixed.contains(&name.as_str());
        if is_fixed || (lowered && shrink == Shrink::Refuse) {
            let old = old.unwrap_or(&Value::Null);
            differences.push(format!("{} has {name} {old}, not {value}", part.shown));
        }
        match (config.get_mut(name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => old.extend(new.clone()),
            _ => {
                config.insert(name.clone(), value.clone());
            }
        }
    }
    match config == present {
        true => Step::Nothing(part),
        false => Step::Update(part, config),
    }
}

/// Returns streams and consumers of a cluster that no step names.
async fn kept(connection: &Connection, steps: &[Step]) -> Result<Vec<String>, SetupError> {
    let named = |name: &String| {
        steps.iter().any(|step| match step {
            Step::Create(part) | Step::Update(part, _) | Step::Nothing(part) => part.shown == *name,
        })
    };
    let failed = |error: CallError| SetupError::Bus(error.into_bus("the list of streams"));
    let streams = connection
        .names("STREAM.NAMES", "streams", json!({}))
        .await
        .map_err(failed)?;
    let mut all = Vec::new();
    for stream in streams {
        if layout::submitter_of_tasks(&stream).is_some() {
            let operation = format!("CONSUMER.NAMES.{stream}");
            let consumers = connection.names(&operation, "consumers", json!({})).await;
            let names = consumers.map_err(failed)?;
            all.extend(names.iter().map(|name| format!("{stream}/{name}")));
        }
        if stream.starts_with("CODEBOX_") {
            all.push(stream);
        }
    }
    all.retain(|name| !named(name));
    all.sort();
    Ok(all)
}
