//! Definition of a WASI tool: a WebAssembly module that agents call, with its limits and grants.
//!
//! A definition says nothing about the host: it has no member for a path, so it cannot reach into a
//! site. The caller of a tool decides which directory the tool sees; `files` only says what the
//! tool does with it.

use crate::{CodedError, Sha256Hex, WasiToolId, parse_json, schema_id, string_enum};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Size limit of a definition document, in bytes.
pub const MAX_WASI_DEFINITION_BYTES: usize = 256 << 10;
/// Highest exit status of a tool. The runner uses higher ones: 124 at the deadline, 125 for its
/// errors.
pub const MAX_WASI_EXIT_STATUS: i32 = 123;

/// `wp-codebox/wasi-tool/v1`: what a tool is, what it may do, and which module it consists of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WasiTool {
    /// Schema id, always `wp-codebox/wasi-tool/v1`.
    pub schema: String,
    /// Id of the tool in policies, lists and calls, such as `css.lint`.
    pub id: WasiToolId,
    /// Version of the tool for people and records: 1 to 64 printable ASCII characters without
    /// spaces.
    pub version: String,
    /// Description for the model, 1 to 4096 bytes.
    pub description: String,
    /// JSON Schema of the arguments; its type is `object`. The tool reads the arguments of a call
    /// from its standard input as one JSON object.
    pub parameters: Value,
    /// Digest and size of the module that this definition describes.
    pub module: WasiModule,
    /// What the tool does with the directories that its caller gives it.
    pub files: WasiFiles,
    /// What the tool gets beside its input; each at most once.
    pub grants: Vec<WasiGrant>,
    /// Bounds of one call.
    pub limits: WasiLimits,
}

/// Digest and size of a WebAssembly module, which is a WASI preview 1 command module or a component
/// of the world `wasi:cli/command`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WasiModule {
    /// SHA-256 of the module.
    pub sha256: Sha256Hex,
    /// Size of the module in bytes: 8 bytes to 64 MiB.
    pub bytes: u64,
}

/// Bounds of one call of a tool. Reaching one ends the call with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WasiLimits {
    /// Units of work, about one per WebAssembly instruction, 1 to 10^12. The same call uses the
    /// same number on every host.
    pub fuel: u64,
    /// Bytes of linear memory and tables together, 64 KiB to 4 GiB.
    pub memory_bytes: u64,
    /// Wall clock time in milliseconds, 1 to 600,000.
    pub wall_ms: u64,
    /// Bytes of standard output, and as many of standard error: 1 byte to 16 MiB.
    pub output_bytes: u64,
}

string_enum! {
    /// Access of a tool to the directories that its caller gives it.
    pub enum WasiFiles {
        /// The tool gets no directory.
        None = "none",
        /// The tool reads the directories.
        Read = "read",
        /// The tool reads and changes the directories.
        Write = "write",
    }

    /// Something that makes a tool's answers differ between two calls with the same input.
    pub enum WasiGrant {
        /// The clocks of the host. Without it every clock begins at zero and advances by a fixed
        /// step with each reading.
        Clock = "clock",
        /// Random bytes of the host. Without it the generator begins with a fixed seed.
        Random = "random",
    }
}

/// Reason why a document is not a definition of a WASI tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(
    WasiDefinitionInvalid,
    hint = "correct the definition; docs/wasi-tools.md describes its members"
)]
pub enum WasiToolError {
    /// The document is larger than [`MAX_WASI_DEFINITION_BYTES`].
    #[error(
        "the definition of the tool has {bytes} bytes, but at most {MAX_WASI_DEFINITION_BYTES} are allowed"
    )]
    TooLarge {
        /// Size of the document.
        bytes: usize,
    },
    /// The document is not JSON, lacks a member, or has an unknown one.
    #[error("the definition of the tool does not match its schema: {reason}")]
    Malformed {
        /// Message of the parser.
        reason: String,
    },
    /// A member has a value that is not allowed.
    #[error("the member {field} of the tool's definition must be {rule}")]
    Value {
        /// Path of the member, joined by dots.
        field: &'static str,
        /// Allowed values.
        rule: &'static str,
    },
}

impl WasiTool {
    /// Parses and checks a definition document.
    pub fn parse(document: &[u8]) -> Result<Self, WasiToolError> {
        if document.len() > MAX_WASI_DEFINITION_BYTES {
            return Err(WasiToolError::TooLarge {
                bytes: document.len(),
            });
        }
        let tool: Self = parse_json(document).map_err(|error| WasiToolError::Malformed {
            reason: error.to_string(),
        })?;
        tool.check()?;
        Ok(tool)
    }

    /// Returns whether the tool gets `grant`.
    #[must_use]
    pub fn has(&self, grant: WasiGrant) -> bool {
        self.grants.contains(&grant)
    }

    /// Checks the values of the members, whose types serde has checked.
    fn check(&self) -> Result<(), WasiToolError> {
        let graphic = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let limits = &self.limits;
        let rules = [
            (
                self.schema == schema_id::WASI_TOOL,
                "schema",
                "wp-codebox/wasi-tool/v1",
            ),
            (
                (1..=64).contains(&self.version.len()) && graphic(&self.version),
                "version",
                "1 to 64 printable ASCII characters without spaces",
            ),
            (
                (1..=4096).contains(&self.description.len()),
                "description",
                "a text of 1 to 4096 bytes",
            ),
            (
                self.parameters.get("type").and_then(Value::as_str) == Some("object"),
                "parameters",
                "a JSON Schema of type object",
            ),
            (
                (8..=64 << 20).contains(&self.module.bytes),
                "module.bytes",
                "a number from 8 to 67108864",
            ),
            (
                WasiGrant::ALL
                    .iter()
                    .all(|grant| self.grants.iter().filter(|one| *one == grant).count() < 2),
                "grants",
                "a list without repetitions",
            ),
            (
                (1..=1_000_000_000_000).contains(&limits.fuel),
                "limits.fuel",
                "a number from 1 to 1000000000000",
            ),
            (
                (64 << 10..=4 << 30).contains(&limits.memory_bytes),
                "limits.memory_bytes",
                "a number from 65536 to 4294967296",
            ),
            (
                (1..=600_000).contains(&limits.wall_ms),
                "limits.wall_ms",
                "a number from 1 to 600000",
            ),
            (
                (1..=16 << 20).contains(&limits.output_bytes),
                "limits.output_bytes",
                "a number from 1 to 16777216",
            ),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, field, rule)) => Err(WasiToolError::Value { field, rule }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use serde_json::json;

    fn document() -> Value {
        json!({
            "schema": "wp-codebox/wasi-tool/v1",
            "id": "css.lint",
            "version": "1.0.0",
            "description": "Finds duplicate declarations.",
            "parameters": { "type": "object" },
            "module": { "sha256": "a".repeat(64), "bytes": 1000 },
            "files": "read",
            "grants": ["clock"],
            "limits": { "fuel": 1000, "memory_bytes": 65536, "wall_ms": 1000, "output_bytes": 1 },
        })
    }

    fn parse(document: &Value) -> Result<WasiTool, WasiToolError> {
        WasiTool::parse(document.to_string().as_bytes())
    }

    #[test]
    fn valid_definition_round_trips_through_json() {
        let tool = parse(&document()).unwrap();
        assert_eq!(tool.id.as_str(), "css.lint");
        assert!(tool.has(WasiGrant::Clock) && !tool.has(WasiGrant::Random));
        assert_eq!(serde_json::to_value(&tool).unwrap(), document());
    }

    #[test]
    fn definition_with_a_wrong_value_is_refused() {
        for (pointer, value) in [
            ("/schema", json!("wp-codebox/wasi-tool/v2")),
            ("/id", json!("css")),
            ("/id", json!("../css.lint")),
            ("/id", json!("Css.lint")),
            ("/id", json!("css..lint")),
            ("/id", json!(format!("css.{}", "a".repeat(61)))),
            ("/version", json!("")),
            ("/version", json!("1 0")),
            ("/description", json!("")),
            ("/parameters", json!({ "type": "array" })),
            ("/parameters", json!([])),
            ("/module/sha256", json!("A".repeat(64))),
            ("/module/bytes", json!(7)),
            ("/module/bytes", json!((64 << 20) + 1)),
            ("/files", json!("/srv/site")),
            ("/grants", json!(["clock", "clock"])),
            ("/grants", json!(["network"])),
            ("/limits/fuel", json!(0)),
            ("/limits/fuel", json!(-1)),
            ("/limits/memory_bytes", json!(65535)),
            ("/limits/wall_ms", json!(600_001)),
            ("/limits/output_bytes", json!(0)),
        ] {
            let mut changed = document();
            *changed.pointer_mut(pointer).unwrap() = value.clone();
            let refused = parse(&changed).unwrap_err();
            assert_eq!(
                refused.code(),
                ErrorCode::WasiDefinitionInvalid,
                "{pointer} {value}"
            );
        }
    }

    /// A definition has no member for a path, so a member with a path is an unknown member.
    #[test]
    fn definition_with_an_unknown_member_is_refused_at_every_level() {
        for at in ["", "/module", "/limits"] {
            for name in ["dirs", "path", "mounts"] {
                let mut changed = document();
                changed.pointer_mut(at).unwrap()[name] = json!("/var/www/html");
                let refused = parse(&changed).unwrap_err();
                assert!(
                    matches!(&refused, WasiToolError::Malformed { reason } if reason.contains(name)),
                    "{at} {name}: {refused}"
                );
            }
        }
    }

    #[test]
    fn definition_that_is_too_large_is_refused_before_it_is_parsed() {
        let refused = WasiTool::parse(&vec![b' '; MAX_WASI_DEFINITION_BYTES + 1]).unwrap_err();
        assert!(matches!(refused, WasiToolError::TooLarge { .. }));
        // Positive control: a definition that spaces fill up to exactly the limit is accepted.
        let mut text = document().to_string();
        text.push_str(&" ".repeat(MAX_WASI_DEFINITION_BYTES - text.len()));
        assert!(WasiTool::parse(text.as_bytes()).is_ok());
    }
}
