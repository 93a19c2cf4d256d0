//! Reads a task from two JSON objects: the fields that the caller gave, and those that the host
//! sets.

use super::issues::Issues;
use super::normalise::normalise_task;
use crate::{check_env_name, defaults, parse, parse_tool_policy};
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{
    CodedError, ErrorBody, ErrorCode, Member, Need, Shape, TASK_FIELDS, TaskAuthority, TaskField,
    TaskSpec,
};

/// Maximum number of rows in a list of objects or command lines.
const MAX_ROWS: usize = 256;
/// Names of fields with program code; a task with one of them is refused with
/// [`ErrorCode::RawCodeForbidden`].
const RAW_CODE: [&str; 2] = ["code", "code_file"];

/// Reads a task; [`normalise_task`] first brings the fields of the caller into one form. A field of
/// `host` replaces that of `caller`, even if it is `null`. `caller` may contain only fields that
/// every caller may set. `host` may in addition contain fields that only a host may set.
///
/// # Errors
/// Fails with the first issue; if there are several, its `data.issues` lists all of them.
pub fn read_task(
    caller: Map<String, Value>,
    host: Map<String, Value>,
) -> Result<TaskSpec, ErrorBody> {
    let mut caller = normalise_task(caller)?;
    let mut reader = Reader::default();
    reader.check_names(&caller, TaskAuthority::Caller);
    reader.check_names(&host, TaskAuthority::Host);
    let network = match (host.get("network"), host.contains_key("policy")) {
        (None, true) => None,
        (None, false) => caller.get("network").cloned(),
        (host, _) => host.cloned(),
    };
    caller.extend(host);
    if let Some(network) = network.filter(|network| !network.is_null()) {
        let given = caller.get("policy").filter(|policy| !policy.is_null());
        let mut policy = match given {
            Some(policy) => policy.clone(),
            None => json!(defaults(vec!["command-agent-run".to_owned()])),
        };
        if let Value::Object(members) = &mut policy {
            members.insert("network".to_owned(), network);
        }
        caller.insert("policy".to_owned(), policy);
    }
    let mut fields = Map::new();
    for row in TASK_FIELDS {
        let Some(value) = caller.remove(row.name).filter(|value| !value.is_null()) else {
            continue;
        };
        let codes = Codes {
            own: ErrorCode::InputInvalid,
            members: row.code,
        };
        if let Some(value) = reader.value(row.name, codes, row.shape, value) {
            fields.insert(row.name.to_owned(), value);
        }
    }
    reader.issues.into_result()?;
    complete(&mut fields);
    serde_json::from_value(Value::Object(fields)).map_err(|_| {
        // Happens only if a shape in the table of fields does not match the field's type in
        // `TaskSpec`.
        ErrorBody::new(
            ErrorCode::Internal,
            "the table of task fields is wrong; report this defect",
        )
    })
}

/// Sets absent fields from other fields: the maximum time to live of a hold from its time to live,
/// and the wall clock limit from `task_timeout_seconds`.
fn complete(fields: &mut Map<String, Value>) {
    if let Some(Value::Object(hold)) = fields.get_mut("hold")
        && let Some(ttl) = hold.get("ttl_ms").cloned()
    {
        hold.entry("max_ttl_ms").or_insert(ttl);
    }
    let seconds = fields.get("task_timeout_seconds").and_then(Value::as_u64);
    if let Some(seconds) = seconds.filter(|seconds| *seconds > 0) {
        let limits = fields.entry("limits").or_insert_with(|| json!({}));
        if let Value::Object(limits) = limits {
            limits
                .entry("wall_clock_ms")
                .or_insert_with(|| seconds.saturating_mul(1000).into());
        }
    }
}

/// Error codes of one field: `own` if its value has the wrong shape, `members` if a member of the
/// value is wrong.
#[derive(Debug, Clone, Copy)]
struct Codes {
    own: ErrorCode,
    members: ErrorCode,
}

#[derive(Debug, Default)]
struct Reader {
    issues: Issues,
}

impl Reader {
    fn check_names(&mut self, given: &Map<String, Value>, authority: TaskAuthority) {
        if let Some(name) = RAW_CODE.iter().find(|name| given.contains_key(**name)) {
            let message = format!(
                "{name} is not accepted: a task carries a goal, never code; mount the code and describe the goal"
            );
            let issue = ErrorBody::new(ErrorCode::RawCodeForbidden, message);
            self.issues.push(issue.with("field", *name));
        }
        let may = |row: &&TaskField| row.authority <= authority;
        for name in given.keys().filter(|n| !RAW_CODE.contains(&n.as_str())) {
            if !TASK_FIELDS.iter().filter(may).any(|row| row.name == name) {
                let accepted = TASK_FIELDS.iter().filter(may).map(|row| row.name);
                self.unknown(ErrorCode::InputInvalid, name, accepted);
            }
        }
    }

    fn unknown<'a>(
        &mut self,
        code: ErrorCode,
        field: &str,
        accepted: impl Iterator<Item = &'a str>,
    ) {
        let accepted: Vec<&str> = accepted.collect();
        let message = format!(
            "there is no field {field}; accepted are: {}",
            accepted.join(", ")
        );
        self.issues
            .push(ErrorBody::new(code, message).with("field", field));
    }

    /// Checks a value against its shape and returns it in the form that serde reads. Returns `None`
    /// for a refused value, after adding an issue, and for an empty value that counts as absent.
    fn value(&mut self, at: &str, codes: Codes, shape: Shape, value: Value) -> Option<Value> {
        let rule = match (shape, &value) {
            (Shape::Text, Value::String(_))
            | (Shape::Flag, Value::Bool(_))
            | (Shape::Number, Value::Number(_))
            | (Shape::Network, _)
            | (Shape::FreeList, Value::Array(_)) => return Some(value),
            (Shape::Name, Value::String(text)) if !text.trim().is_empty() => return Some(value),
            (Shape::OneOf(words), Value::String(text)) if words.contains(&text.as_str()) => {
                return Some(value);
            }
            (Shape::Count, Value::Number(number)) if number.as_u64().is_some() => {
                return Some(value);
            }
            (Shape::Between(least, most), Value::Number(number))
                if number
                    .as_u64()
                    .is_some_and(|n| (least.into()..=most.into()).contains(&n)) =>
            {
                return Some(value);
            }
            (Shape::SmallCount, Value::Number(number))
                if number.as_u64().is_some_and(|n| u32::try_from(n).is_ok()) =>
            {
                return Some(value);
            }
            (Shape::Git, Value::String(word)) => return self.git(at, codes.own, word),
            (Shape::Policy, _) => {
                let parsed = parse(&value).map_err(ErrorBody::from);
                return self.parsed(parsed.map(|policy| json!(policy)));
            }
            (Shape::ToolPolicy, _) => {
                let parsed = parse_tool_policy(&value).map_err(|e| e.body().with("field", at));
                return self.parsed(parsed.map(|policy| json!(policy)));
            }
            (Shape::Texts | Shape::Lines | Shape::Argv | Shape::ExitCodes, Value::Array(_))
            | (Shape::Rows(_), Value::Array(_)) => {
                let Value::Array(items) = value else {
                    return None;
                };
                return self.list(at, codes, shape, items);
            }
            (
                Shape::Free
                | Shape::Environment
                | Shape::Outputs
                | Shape::Object(_)
                | Shape::Kinds(_),
                Value::Object(_) | Value::Array(_),
            ) if object(&value).is_some() => {
                return self.members(at, codes, shape, object(&value)?);
            }
            (shape, _) => rule(shape),
        };
        self.issues.refuse(codes.own, at, &rule);
        None
    }

    fn parsed(&mut self, parsed: Result<Value, ErrorBody>) -> Option<Value> {
        parsed.map_err(|issue| self.issues.push(issue)).ok()
    }

    /// Checks the git repository that a mount requests. `history` exposes every object of the
    /// host's repository, even those on no branch, so only the operator on the command line may
    /// request it.
    fn git(&mut self, at: &str, code: ErrorCode, word: &str) -> Option<Value> {
        match word {
            "baseline" | "none" => return Some(word.into()),
            "history" => self.issues.refuse(
                ErrorCode::GitUnavailable,
                at,
                "baseline or none: history shows everything that was ever committed, and only the operator on the command line may request it (wp-codebox run --git history)",
            ),
            _ => self.issues.refuse(code, at, &rule(Shape::Git)),
        }
        None
    }

    fn list(&mut self, at: &str, codes: Codes, shape: Shape, items: Vec<Value>) -> Option<Value> {
        let bounded = matches!(shape, Shape::Rows(_) | Shape::Lines);
        if bounded && items.len() > MAX_ROWS {
            let rule = format!("a list of at most {MAX_ROWS} entries");
            self.issues.refuse(codes.own, at, &rule);
            return None;
        }
        if let Shape::Argv = shape
            && items
                .first()
                .is_none_or(|program| program.as_str().is_some_and(|p| p.trim().is_empty()))
        {
            self.issues.refuse(codes.own, at, &rule(shape));
            return None;
        }
        let mut read = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let place = format!("{at}[{index}]");
            match (shape, item) {
                (Shape::Rows(members), item) => match object(&item) {
                    Some(row) => {
                        let row = self.object(&place, codes.members, members, row);
                        read.push(Value::Object(row));
                    }
                    None => self.issues.refuse(codes.members, &place, "an object"),
                },
                (Shape::ExitCodes, item) if item.as_u64().is_some_and(|code| code <= 255) => {
                    read.push(item);
                }
                (Shape::ExitCodes, _) => {
                    let rule = "a whole number from 0 to 255";
                    self.issues.refuse(codes.own, &place, rule);
                }
                (Shape::Argv, Value::String(text)) if text.contains('\0') => {
                    self.issues.refuse(codes.own, at, "free of NUL bytes");
                }
                (Shape::Lines, Value::String(text))
                    if text.trim().is_empty() || text.contains('\0') =>
                {
                    let rule = "not blank and free of NUL bytes";
                    self.issues.refuse(codes.own, &place, rule);
                }
                (_, item @ Value::String(_)) => read.push(item),
                (_, _) => self.issues.refuse(codes.own, &place, "a string"),
            }
        }
        // An empty list of exit codes means the default, which is 0.
        let empty = matches!(shape, Shape::ExitCodes) && read.is_empty();
        (!empty).then_some(Value::Array(read))
    }

    fn members(
        &mut self,
        at: &str,
        codes: Codes,
        shape: Shape,
        given: Map<String, Value>,
    ) -> Option<Value> {
        let read = match shape {
            Shape::Object(members) => self.object(at, codes.members, members, given),
            Shape::Kinds(kinds) => self.kind(at, codes.own, kinds, given)?,
            Shape::Environment => self.environment(at, codes.own, given),
            Shape::Outputs => self.outputs(at, codes.own, given),
            // Absent and empty mean the same, and serde fills in the default.
            _ if given.is_empty() => return None,
            _ => given,
        };
        Some(Value::Object(read))
    }

    fn kind(
        &mut self,
        at: &str,
        code: ErrorCode,
        kinds: &[(&str, ErrorCode, &[Member])],
        mut given: Map<String, Value>,
    ) -> Option<Map<String, Value>> {
        let kind = given.remove("kind").filter(|kind| !kind.is_null());
        let found = match &kind {
            None => kinds.first(),
            Some(kind) => kinds
                .iter()
                .find(|(name, _, _)| kind.as_str() == Some(name)),
        };
        let Some((kind, code, members)) = found else {
            let names: Vec<&str> = kinds.iter().map(|(name, _, _)| *name).collect();
            let rule = one_of(&names);
            self.issues.refuse(code, &format!("{at}.kind"), &rule);
            return None;
        };
        let mut read = self.object(at, *code, members, given);
        read.insert("kind".to_owned(), (*kind).into());
        Some(read)
    }

    fn environment(
        &mut self,
        at: &str,
        code: ErrorCode,
        given: Map<String, Value>,
    ) -> Map<String, Value> {
        for (name, value) in &given {
            if let Err(e) = check_env_name(name) {
                self.issues.push(e.body(name));
            }
            if value.as_str().is_none_or(|value| value.contains('\0')) {
                let place = format!("{at}.{name}");
                self.issues
                    .refuse(code, &place, "a string without NUL bytes");
            }
        }
        given
    }

    /// Checks that the variables of each output of a service are one name or a list of names.
    /// `check_services` checks the names themselves.
    fn outputs(
        &mut self,
        at: &str,
        code: ErrorCode,
        given: Map<String, Value>,
    ) -> Map<String, Value> {
        for (name, value) in &given {
            let texts = |items: &Vec<Value>| items.iter().all(Value::is_string);
            if !value.is_string() && !value.as_array().is_some_and(texts) {
                let place = format!("{at}.{name}");
                let rule = "the name of an environment variable, or a list of such names";
                self.issues.refuse(code, &place, rule);
            }
        }
        given
    }

    fn object(
        &mut self,
        at: &str,
        code: ErrorCode,
        members: &[Member],
        mut given: Map<String, Value>,
    ) -> Map<String, Value> {
        let mut read = Map::new();
        for member in members {
            let place = format!("{at}.{}", member.name);
            match given.remove(member.name).filter(|value| !value.is_null()) {
                None if member.need == Need::Required => {
                    let rule = match member.shape {
                        Shape::Argv => rule(Shape::Argv),
                        _ => "given and not blank".to_owned(),
                    };
                    self.issues.refuse(code, &place, &rule);
                }
                None => {}
                Some(value) => {
                    let codes = Codes {
                        own: code,
                        members: member.code.unwrap_or(code),
                    };
                    if let Some(value) = self.value(&place, codes, member.shape, value) {
                        read.insert(member.name.to_owned(), value);
                    }
                }
            }
        }
        let known = |name: &&String| !members.iter().any(|member| member.name == *name);
        for name in given.keys().filter(known) {
            let accepted = members.iter().map(|member| member.name);
            self.unknown(code, &format!("{at}.{name}"), accepted);
        }
        read
    }
}

/// Returns the members of a JSON object, `None` for any other value. An empty list counts as an
/// empty object, because PHP encodes an empty object as `[]`.
fn object(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(members) => Some(members.clone()),
        Value::Array(items) if items.is_empty() => Some(Map::new()),
        _ => None,
    }
}

/// Describes a valid value of a shape, for error messages.
fn rule(shape: Shape) -> String {
    match shape {
        Shape::Text => "a string".to_owned(),
        Shape::Name => "a string that is not blank".to_owned(),
        Shape::OneOf(words) => one_of(words),
        Shape::Git => one_of(&["baseline", "none"]),
        Shape::Flag => "true or false".to_owned(),
        Shape::Count => "a whole number from 0".to_owned(),
        Shape::SmallCount => format!("a whole number from 0 to {}", u32::MAX),
        Shape::Between(least, most) => format!("a whole number from {least} to {most}"),
        Shape::Number => "a number".to_owned(),
        Shape::Argv => "a list that starts with the program".to_owned(),
        Shape::FreeList | Shape::Texts | Shape::Lines | Shape::ExitCodes | Shape::Rows(_) => {
            "a list".to_owned()
        }
        Shape::Free | Shape::Environment | Shape::Outputs | Shape::Object(_) | Shape::Kinds(_) => {
            "an object".to_owned()
        }
        Shape::Policy | Shape::ToolPolicy | Shape::Network => "a document".to_owned(),
        Shape::Typed => "left out".to_owned(),
    }
}

/// Formats `a, b or c`.
fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [word] => (*word).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests;
