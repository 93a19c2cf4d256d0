//! Tools that read files in the guest's mounts: read, list, search, diff.

use super::shown;
use super::{Arguments, GuestExecutor, ToolError, ToolOutput, ToolResult, Tools};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::Duration;
use wp_codebox_artifacts::render_mount_patch;
use wp_codebox_contracts::GuestPath;
use wp_codebox_runtime::{Call, GuestMount};

/// Guest program that executes the file tools.
const WORKSPACE: &str = "/opt/codebox/guest/workspace.php";
/// Timeout of a tool call that reads or changes files.
pub(super) const QUICK: Duration = Duration::from_secs(60);
/// Maximum number of bytes of a diff in one result; the model requests the rest page by page.
const DIFF_BYTES: usize = 28 * 1024;

impl<H: GuestExecutor> Tools<H> {
    /// Returns the call of the guest program that executes a file tool. `bytes` follow the JSON
    /// request on its standard input.
    pub(super) fn workspace_call(&self, tool: &str, request: Value, bytes: &[u8]) -> Call {
        let mounts = self.context.mounts.iter();
        let roots: Vec<&GuestPath> = mounts.flat_map(GuestMount::names).collect();
        let mut document = json!({"roots": roots, "cwd": self.context.cwd});
        if let (Value::Object(document), Value::Object(request)) = (&mut document, request) {
            document.extend(request);
        }
        let shown = |name: &str| match &document[name] {
            Value::Null => None,
            Value::String(text) => Some(format!("{name}={}", shown::bounded(text, 300))),
            Value::Array(list) => Some(format!("{name}={}", list.len())),
            other => Some(format!("{name}={other}")),
        };
        let args = [
            "op",
            "path",
            "pattern",
            "start_line",
            "offset",
            "paths",
            "changes",
        ]
        .into_iter()
        .filter_map(shown)
        .collect();
        let mut stdin = document.to_string().into_bytes();
        stdin.push(b'\n');
        stdin.extend_from_slice(bytes);
        let argv = vec!["php".to_owned(), WORKSPACE.to_owned()];
        Call {
            stdin: Some(stdin),
            ..self.program(tool, args, argv)
        }
    }

    /// Runs the guest program for a file tool and returns its JSON result.
    pub(super) fn workspace(
        &mut self,
        tool: &str,
        request: Value,
        bytes: &[u8],
    ) -> Result<Map<String, Value>, ToolError> {
        let call = self.workspace_call(tool, request, bytes);
        let step = self.run(&call, QUICK)?;
        if step.result.stopped {
            return Err(ToolError::InvalidCall(format!(
                "the call took longer than {} seconds; choose a smaller directory",
                QUICK.as_secs()
            )));
        }
        answer_of(step.stdout.as_bytes(), &step.stderr).map(|(answer, _)| answer)
    }

    pub(super) fn read(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let path = arguments.text("path")?;
        match arguments.text_or("encoding", "text")? {
            "text" => {
                let request = json!({
                    "op": "read", "path": path,
                    "start_line": arguments.number("start_line", 1, 1..=100_000_000)?,
                    "lines": arguments.number("lines", 400, 1..=2000)?,
                });
                let answer = self.workspace(arguments.tool(), request, &[])?;
                Ok(ToolOutput::ok(lines_shown(&answer)))
            }
            "base64" => {
                let request = json!({
                    "op": "bytes", "path": path,
                    "offset": arguments.number("offset", 0, 0..=1 << 40)?,
                    "length": arguments.number("length", 12_288, 1..=24 * 1024)?,
                });
                let answer = self.workspace(arguments.tool(), request, &[])?;
                let mut text = format!(
                    "{} ({} bytes), base64 from byte {}\n{}",
                    word(&answer, "path"),
                    number(&answer, "size"),
                    number(&answer, "offset"),
                    word(&answer, "base64"),
                );
                if let Some(next) = answer.get("next").and_then(Value::as_u64) {
                    let _ = write!(text, "\n(more: offset {next})");
                }
                Ok(ToolOutput::ok(text))
            }
            other => Err(ToolError::InvalidCall(format!(
                "encoding is {other:?}, but must be text or base64"
            ))),
        }
    }

    pub(super) fn list(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let request = json!({
            "op": "list",
            "path": arguments.text_or("path", ".")?,
            "depth": arguments.number("depth", 2, 1..=16)?,
            "limit": arguments.number("limit", 300, 1..=1000)?,
            "offset": arguments.number("offset", 0, 0..=10_000_000)?,
        });
        let answer = self.workspace(arguments.tool(), request, &[])?;
        let mut text = format!("{}/\n", word(&answer, "path"));
        let rows = rows(&answer, "entries");
        if rows.is_empty() {
            text.push_str("(no entries)\n");
        }
        for row in rows {
            let path = shown::name(word(row, "path"));
            let _ = match word(row, "kind") {
                "dir" => writeln!(text, "{path}/"),
                "file" => writeln!(text, "{path} ({} bytes)", number(row, "size")),
                "link" => writeln!(text, "{path} -> {}", shown::name(word(row, "to"))),
                _ => writeln!(text, "{path} (neither file nor directory)"),
            };
        }
        if let Some(next) = answer.get("next").and_then(Value::as_u64) {
            let _ = write!(text, "(more: offset {next})");
        }
        Ok(ToolOutput::ok(text))
    }

    pub(super) fn search(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let mut request = json!({
            "op": "search",
            "path": arguments.text_or("path", ".")?,
            "pattern": arguments.text("pattern")?,
            "regex": arguments.flag("regex")?,
            "ignore_case": arguments.flag("ignore_case")?,
            "context": arguments.number("context", 0, 0..=5)?,
            "limit": arguments.number("limit", 100, 1..=500)?,
            "offset": arguments.number("offset", 0, 0..=10_000_000)?,
        });
        match arguments.text_or("glob", "")? {
            "" => {}
            glob => request["glob"] = json!(glob),
        }
        let answer = self.workspace(arguments.tool(), request, &[])?;
        let mut text = String::new();
        for hit in rows(&answer, "hits") {
            let path = shown::name(word(hit, "path"));
            let line = number(hit, "line");
            match hit.get("near").and_then(Value::as_object) {
                None => {
                    let _ = writeln!(text, "{path}:{line}|{}", word(hit, "text"));
                }
                Some(near) => {
                    for (key, value) in near {
                        let at = key.trim_start_matches('l');
                        let mark = if at == line.to_string() { '|' } else { '-' };
                        let _ = writeln!(
                            text,
                            "{path}:{at}{mark}{}",
                            value.as_str().unwrap_or_default()
                        );
                    }
                    text.push_str("--\n");
                }
            }
        }
        if text.is_empty() {
            text.push_str("(no hits)\n");
        }
        let _ = write!(
            text,
            "({} files searched, {} binary, large or unreadable ones skipped)",
            number(&answer, "files"),
            number(&answer, "skipped")
        );
        if let Some(next) = answer.get("next").and_then(Value::as_u64) {
            let _ = write!(text, "\n(more: offset {next})");
        }
        Ok(ToolOutput::ok(text))
    }

    pub(super) fn diff(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let only = arguments.text_or("path", "")?;
        let stat = arguments.flag("stat")?;
        let offset = arguments.number("offset", 0, 0..=1 << 40)?;
        let changes = match self.executor.changes() {
            Ok(changes) => changes,
            Err(error) => {
                return Err(ToolError::InvalidCall(format!(
                    "{}; try again",
                    error.message
                )));
            }
        };
        let mut text = String::new();
        for mount in changes {
            let root = mount.at.as_str();
            let prefix = match root == self.context.cwd.as_str() {
                true => String::new(),
                false => format!("{}/", root.trim_start_matches('/')),
            };
            let mut changes = mount.changes;
            if !only.is_empty() {
                let Some(below) = below(only, self.context.cwd.as_str(), root) else {
                    continue;
                };
                changes.entries.retain(|entry| {
                    let path = String::from_utf8_lossy(&entry.path);
                    below.is_empty() || path == below || path.starts_with(&format!("{below}/"))
                });
            }
            let patch = render_mount_patch(&changes, &prefix, &[]);
            if !stat {
                text.push_str(&String::from_utf8_lossy(&patch.bytes));
            }
            for entry in &changes.entries {
                let word = match (entry.change.before(), entry.change.after()) {
                    (None, _) => "added",
                    (_, None) => "deleted",
                    _ => "modified",
                };
                let shown = patch.stats.get(&entry.path);
                if stat || !matches!(shown, Some(wp_codebox_artifacts::FileStats::Text { .. })) {
                    let path = shown::name(&String::from_utf8_lossy(&entry.path));
                    let _ = writeln!(text, "# {word} {prefix}{path}{}", stats(shown));
                }
            }
            for omitted in &changes.omitted {
                let path = shown::name(&String::from_utf8_lossy(&omitted.path));
                let _ = writeln!(text, "# left out: {prefix}{path}");
            }
        }
        if text.is_empty() {
            return Ok(ToolOutput::ok("(nothing has changed)"));
        }
        let text = self.executor.clean(&text);
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let (piece, next) = shown::page(&text, offset, DIFF_BYTES);
        let mut piece = piece.to_owned();
        if let Some(next) = next {
            let _ = write!(piece, "\n(more: offset {next} of {})", text.len());
        }
        Ok(ToolOutput::ok(piece))
    }
}

fn stats(stats: Option<&wp_codebox_artifacts::FileStats>) -> String {
    use wp_codebox_artifacts::FileStats;
    match stats {
        Some(FileStats::Text {
            insertions,
            deletions,
        }) => format!(" (+{insertions} -{deletions})"),
        Some(FileStats::Binary) => " (binary)".to_owned(),
        Some(FileStats::NotCarried) | None => String::new(),
    }
}

/// Returns a path relative to the mount `root`; `None` when the path is not in this mount.
fn below(path: &str, cwd: &str, root: &str) -> Option<String> {
    let whole = match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("{cwd}/{path}"),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let whole = format!("/{}", parts.join("/"));
    let rest = whole.strip_prefix(root)?;
    match rest.strip_prefix('/') {
        Some(rest) => Some(rest.to_owned()),
        None => rest.is_empty().then(String::new),
    }
}

/// Splits the output into its first line, parsed as JSON, and the bytes after it.
pub(super) fn answer_of<'b>(
    output: &'b [u8],
    stderr: &str,
) -> Result<(Map<String, Value>, &'b [u8]), ToolError> {
    let end = output.iter().position(|byte| *byte == b'\n');
    let (line, rest) = output.split_at(end.unwrap_or(output.len()));
    let Ok(Value::Object(answer)) = serde_json::from_slice(line) else {
        let why = shown::bounded(stderr.trim(), 1000);
        return Err(ToolError::InvalidCall(format!(
            "the tool's program in the sandbox returned an invalid result (error output: {why})"
        )));
    };
    if answer.get("ok") == Some(&Value::Bool(true)) {
        Ok((answer, rest.get(1..).unwrap_or_default()))
    } else {
        Err(ToolError::InvalidCall(word(&answer, "message").to_owned()))
    }
}

pub(super) fn word<'v>(row: &'v Map<String, Value>, name: &str) -> &'v str {
    row.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn number(row: &Map<String, Value>, name: &str) -> u64 {
    row.get(name).and_then(Value::as_u64).unwrap_or_default()
}

pub(super) fn rows<'v>(answer: &'v Map<String, Value>, name: &str) -> Vec<&'v Map<String, Value>> {
    answer
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .collect()
}

fn lines_shown(answer: &Map<String, Value>) -> String {
    let (path, size) = (shown::name(word(answer, "path")), number(answer, "size"));
    if answer.get("binary") == Some(&Value::Bool(true)) {
        return format!(
            "{path} is binary ({size} bytes, sha256 {}); set encoding to base64 to read its bytes",
            word(answer, "sha256")
        );
    }
    let start = number(answer, "start");
    let lines: Vec<&str> = answer
        .get("lines")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|line| line.as_str().unwrap_or_default())
        .collect();
    let total = answer.get("total").and_then(Value::as_u64);
    let of = total.map_or(String::new(), |total| format!(" of {total}"));
    if lines.is_empty() {
        return if size == 0 {
            format!("{path} is empty")
        } else {
            format!(
                "{path} has no line {start}; it has{} lines",
                of.replace(" of", "")
            )
        };
    }
    let last = start + lines.len() as u64 - 1;
    let mut text = format!("{path} ({size} bytes), lines {start}-{last}{of}\n");
    for (line, number) in lines.iter().zip(start..) {
        let _ = writeln!(text, "{number}|{}", line.trim_end_matches('\r'));
    }
    if lines.iter().any(|line| line.ends_with('\r')) {
        text.push_str("(lines end in CRLF; edits keep that)\n");
    }
    let cut: Vec<String> = answer
        .get("cut")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    if !cut.is_empty() {
        let _ = writeln!(
            text,
            "(cut, because they are too long: lines {})",
            cut.join(", ")
        );
    }
    if let Some(next) = answer.get("next").and_then(Value::as_u64) {
        let _ = write!(text, "(more: start_line {next})");
    }
    text
}
