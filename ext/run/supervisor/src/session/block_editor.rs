//! `wordpress.block-exercise mode=editor-insert-save`: inserts a block in the block editor, validates
//! it there and saves it. The editor runs in a browser, by the steps of `wordpress.editor-actions`.

use super::{Commanded, Session};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::time::Instant;
use wp_codebox_contracts::{CommandCall, CommandResult, ErrorBody, ErrorCode, hex};
use wp_codebox_policy::arg_value;
use wp_codebox_runtime::{Bounds, ExecutionEnd, ExecutionResult};

/// Command whose steps insert and save the block.
const ACTIONS: &str = "wordpress.editor-actions";
/// Value of `mode` in the result.
const MODE: &str = "editor-insert-save";
/// Schema id of the result.
const RESULT: &str = "wp-codebox/wordpress-block-exercise-result/v1";

impl Session<'_, '_> {
    /// Exercises a block in the editor. The journal has an execution of the editor and of the
    /// command itself.
    pub(super) fn block_in_editor(
        &mut self,
        call: &CommandCall,
        bounds: Bounds,
    ) -> Result<Commanded, ErrorBody> {
        let block = Block::of(call)?;
        let started = Instant::now();
        let editor = CommandCall {
            command: ACTIONS.to_owned(),
            // This command has no arguments for timeouts, and its steps wait for no condition of
            // the page: the timeouts are longer than the defaults.
            args: vec![
                format!("steps-json={}", block.steps()),
                "wait-timeout=120s".to_owned(),
                "step-timeout=120s".to_owned(),
            ],
        };
        let inner = self.browser_command(&editor, bounds)?;
        let (document, error) = block.document(call, &inner.result);
        let mut done = self.carried_out(call, started, &document, error)?;
        // If the browser was stopped, the result of this command states that, too.
        if !matches!(inner.step.result.end, ExecutionEnd::Exited { .. }) {
            done.step.result = ExecutionResult {
                duration: done.step.result.duration,
                ..inner.step.result
            };
        }
        done.result.artifact_refs = inner.result.artifact_refs;
        Ok(done)
    }
}

/// The block to insert.
#[derive(Debug)]
struct Block {
    name: String,
    attributes: Map<String, Value>,
    content: Option<String>,
    markup: Option<String>,
}

impl Block {
    fn of(call: &CommandCall) -> Result<Self, ErrorBody> {
        let invalid = |why: String| {
            let message = format!("{}: {why}", call.command);
            ErrorBody::new(ErrorCode::InputInvalid, message).with("command", call.command.clone())
        };
        let filled = |name: &str| {
            let text = arg_value(call, name).filter(|text| !text.trim().is_empty());
            text.map(str::to_owned)
        };
        let attributes: Map<String, Value> = match filled("attrs-json") {
            Some(text) => serde_json::from_str(&text)
                .map_err(|_| invalid("attrs-json must be a JSON object".to_owned()))?,
            None => Map::new(),
        };
        let given = filled("block-name").unwrap_or_default();
        let name = full_name(given.trim()).ok_or_else(|| {
            let shown: String = given.chars().take(100).collect();
            invalid(format!(
                "block-name is {shown:?}, but must be like core/paragraph"
            ))
        })?;
        let block = Self {
            name,
            attributes,
            content: filled("content"),
            markup: filled("markup"),
        };
        if block.markup.is_some() && (block.content.is_some() || !block.attributes.is_empty()) {
            return Err(invalid(
                "give either markup or attrs-json and content".to_owned(),
            ));
        }
        Ok(block)
    }

    /// Returns the steps of the editor: insert the block, find it, validate it, and save the post.
    fn steps(&self) -> Value {
        let insert = match (&self.markup, &self.content) {
            (Some(markup), _) => json!({"kind": "setContent", "content": markup}),
            (None, Some(content)) => {
                json!({"kind": "setContent", "content": self.serialized(content)})
            }
            (None, None) => {
                json!({"kind": "insertBlock", "blockName": self.name, "attributes": self.attributes})
            }
        };
        json!([
            insert,
            {"kind": "expectBlock", "blockName": self.name},
            {"kind": "validateBlocks"},
            {"kind": "save"},
        ])
    }

    /// Returns the block in the form of stored posts. The attributes are escaped as WordPress does,
    /// so that their text cannot end the HTML comment that contains them.
    fn serialized(&self, content: &str) -> String {
        let mut attributes = String::new();
        if !self.attributes.is_empty() {
            let text = Value::Object(self.attributes.clone()).to_string();
            attributes = format!(
                " {}",
                text.replace("\\\"", "\\u0022")
                    .replace("--", "\\u002d\\u002d")
                    .replace('<', "\\u003c")
                    .replace('>', "\\u003e")
                    .replace('&', "\\u0026")
            );
        }
        let name = self.name.strip_prefix("core/").unwrap_or(&self.name);
        format!("<!-- wp:{name}{attributes} -->{content}<!-- /wp:{name} -->")
    }

    /// Returns the error if the editor has other blocks than the one to insert.
    fn is_not_alone(&self, call: &CommandCall, blocks: &[Value]) -> Option<ErrorBody> {
        let names: Vec<&str> = blocks
            .iter()
            .take(10)
            .filter_map(|block| block["name"].as_str())
            .collect();
        if names == [self.name.as_str()] {
            return None;
        }
        let message = format!(
            "{}: the markup must be one block {}, but the editor has {}",
            call.command,
            self.name,
            names.join(", ")
        );
        let error = ErrorBody::new(ErrorCode::InputInvalid, message);
        Some(error.with("command", call.command.clone()))
    }

    /// Returns the document of the command from that of the editor, and its error if a step failed.
    fn document(&self, call: &CommandCall, editor: &CommandResult) -> (Value, Option<ErrorBody>) {
        let found = editor.json.clone().unwrap_or_default();
        let state = &found["editor"];
        let error = editor.error.as_ref().map(|error| {
            let mut error = error.clone();
            let why = error
                .message
                .strip_prefix(ACTIONS)
                .unwrap_or(&error.message);
            error.message = format!("{}{why}", call.command);
            if let Some(data) = &mut error.data
                && data.contains_key("command")
            {
                data.insert("command".to_owned(), json!(call.command));
            }
            error
        });
        let blocks = state["blocks"].as_array().map_or(&[][..], Vec::as_slice);
        let error = error.or_else(|| self.is_not_alone(call, blocks));
        let steps = found["steps"].as_array().cloned().unwrap_or_default();
        let content = state["content"].as_str().unwrap_or_default();
        let inserted = blocks.first();
        let mut input = Map::new();
        input.insert("attrs".to_owned(), json!(self.attributes));
        for (name, text) in [("content", &self.content), ("markup", &self.markup)] {
            if let Some(text) = text {
                input.insert(name.to_owned(), json!(text));
            }
        }
        let source = arg_value(call, "source").filter(|text| !text.is_empty());
        let source = source.unwrap_or(match self.markup {
            Some(_) => "markup",
            None => "attributes",
        });
        let validation = steps.iter().find(|row| row["kind"] == "validateBlocks");
        let valid = validation.is_some_and(|row| row["status"] == "passed");
        let issues: Vec<&Value> = validation
            .and_then(|row| row.get("error"))
            .into_iter()
            .collect();
        let mut document = json!({
            "schema": RESULT,
            "command": call.command,
            "status": if error.is_none() { "ok" } else { "error" },
            "blockName": self.name,
            "attrs": match self.markup {
                Some(_) => inserted.map_or(json!({}), |block| block["attributes"].clone()),
                None => json!(self.attributes),
            },
            "input": input,
            "mode": MODE,
            "selection": MODE,
            "source": source,
            "serialized": {
                "markup": content,
                "bytes": state["contentBytes"],
                "sha256": hex(&Sha256::digest(content.as_bytes())),
            },
            "parsed": {"blocks": state["blocks"]},
            "validation": {"valid": valid, "issues": issues},
            "notices": found.get("notes").cloned().unwrap_or_else(|| json!([])),
            "errors": error.iter().map(|error| json!({"code": error.code, "message": error.message})).collect::<Vec<_>>(),
            "diagnostics": steps,
            "artifacts": {"files": editor.artifact_refs},
            "artifactRefs": editor.artifact_refs,
            "performance": found["timings"],
            "metadata": {"post": state["post"], "saved": error.is_none()},
        });
        if let Some(error) = &error {
            document["error"] = json!({"code": error.code, "message": error.message});
        }
        (document, error)
    }
}

/// Returns the name of a block with its namespace; `None` if it is not a name.
fn full_name(given: &str) -> Option<String> {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    match given.split_once('/') {
        Some((namespace, name)) if is_part(namespace) && is_part(name) => Some(given.to_owned()),
        None if is_part(given) => Some(format!("core/{given}")),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::CommandStatus;

    fn call(args: &[&str]) -> CommandCall {
        let mode = ["mode=editor-insert-save"];
        CommandCall {
            command: "wordpress.block-exercise".to_owned(),
            args: mode
                .iter()
                .chain(args)
                .map(|arg| (*arg).to_owned())
                .collect(),
        }
    }

    fn answer(document: &Value, error: Option<&str>) -> CommandResult {
        let status = match error {
            None => CommandStatus::Ok,
            Some(_) => CommandStatus::Error,
        };
        let mut result =
            CommandResult::of_output(ACTIONS, status, document.to_string(), String::new());
        result.error = error.map(|why| {
            ErrorBody::new(ErrorCode::CommandFailed, format!("{ACTIONS}: {why}"))
                .with("command", ACTIONS)
        });
        result
    }

    fn saved(name: &str) -> Value {
        json!({
            "steps": [{"kind": "insertBlock", "status": "passed"},
                {"kind": "validateBlocks", "status": "passed"}],
            "editor": {"post": {"id": 5, "status": "draft"}, "content": "x", "contentBytes": 1,
                "blocks": [{"name": name, "attributes": {"level": 2}}]},
            "timings": {"totalMs": 9},
        })
    }

    #[test]
    fn block_attributes_are_escaped_so_that_they_cannot_end_the_html_comment_of_the_block() {
        let block = Block::of(&call(&[
            "block-name=paragraph",
            "content=<p>a</p>",
            r#"attrs-json={"a":"--><b>&\""}"#,
        ]))
        .unwrap();
        assert_eq!(
            block.serialized("<p>a</p>"),
            r#"<!-- wp:paragraph {"a":"\u002d\u002d\u003e\u003cb\u003e\u0026\u0022"} --><p>a</p><!-- /wp:paragraph -->"#
        );
        assert_eq!(block.steps()[0]["kind"], "setContent");
        let plain = Block::of(&call(&["block-name=a/b"])).unwrap();
        assert_eq!(plain.steps()[0]["blockName"], "a/b");
    }

    #[test]
    fn block_with_an_invalid_name_or_attributes_or_with_both_markup_and_content_is_refused() {
        for args in [
            &["block-name=Core/Paragraph"][..],
            &["block-name=a/b/c"],
            &["block-name=a/b", "markup=<!-- wp:a/b /-->", "content=x"],
            &["block-name=a/b", "attrs-json=[]"],
        ] {
            let error = Block::of(&call(args)).unwrap_err();
            assert_eq!(error.code, ErrorCode::InputInvalid, "{args:?}");
        }
        assert!(Block::of(&call(&["block-name=a/b", "markup=<!-- wp:a/b /-->"])).is_ok());
    }

    #[test]
    fn result_of_a_saved_block_has_every_member_that_the_output_schema_requires() {
        let call = call(&["block-name=core/heading", "attrs-json={\"level\":2}"]);
        let block = Block::of(&call).unwrap();
        let (document, error) = block.document(&call, &answer(&saved("core/heading"), None));
        assert_eq!(error, None);
        assert_eq!(document["status"], "ok");
        assert_eq!(document["mode"], MODE);
        assert_eq!(document["validation"], json!({"valid": true, "issues": []}));
        assert_eq!(document["serialized"]["markup"], "x");
        assert_eq!(document["metadata"]["post"]["id"], 5);
        let public: Value = serde_json::from_str(include_str!(
            "../../../../../tests/conformance/public/commands.json"
        ))
        .unwrap();
        let rows = public.as_array().unwrap();
        let row = rows.iter().find(|row| row["id"] == call.command).unwrap();
        let required = row["output"]["required"].as_array().unwrap();
        assert!(required.len() > 10);
        for member in required {
            assert!(document.get(member.as_str().unwrap()).is_some(), "{member}");
        }
        let (document, error) = block.document(&call, &answer(&saved("core/paragraph"), None));
        assert!(error.unwrap().message.contains("core/paragraph"));
        assert_eq!(document["status"], "error");
        let failed = answer(&json!({}), Some("steps[0] insertBlock: no such block"));
        let (document, error) = block.document(&call, &failed);
        let error = error.unwrap();
        assert_eq!(
            error.message,
            "wordpress.block-exercise: steps[0] insertBlock: no such block"
        );
        assert_eq!(error.data.unwrap()["command"], call.command);
        assert_eq!(document["errors"][0]["code"], "wp_codebox_command_failed");
    }
}
