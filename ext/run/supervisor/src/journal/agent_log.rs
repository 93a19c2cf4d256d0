//! Log of the built-in agent loop for the bundle (the run's result directory): turns and tool
//! calls, up to a maximum total size.
//!
//! Each row arrives redacted and with a limited length. This module limits the size of all rows
//! together: beyond a number of bytes it drops the texts of further rows, beyond [`ROWS`] it drops
//! whole rows. The documents in the bundle state how many rows were dropped.

use super::wasi_facts::WasiToolFacts;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wp_codebox_agent::{CallRecord, Ended, TurnRecord};
use wp_codebox_artifacts::EvidenceDocument;
use wp_codebox_contracts::{ModelUsage, WasiToolId, schema_id};

/// Maximum total size of the text of all turns, in bytes.
const TEXT: usize = 1024 * 1024;
/// Maximum total size of the arguments and results of all calls, in bytes.
const CALLS: usize = 4 * 1024 * 1024;
/// Maximum number of turns, and maximum number of tool calls, in the log.
const ROWS: usize = 4096;
/// Name of the rules by which texts were redacted before they reach this module.
const REDACTION: &str = "known-secrets-and-token-forms";

/// What executed a tool call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ToolType<'a> {
    /// The supervisor executed the tool by running a program inside the guest.
    Sandbox,
    /// The process that started the run executed the tool.
    Parent,
    /// The supervisor executed the WASI tool inside the guest.
    Wasi(&'a WasiToolFacts),
    /// Nothing: the run has no tool of this name.
    Unknown,
}

impl ToolType<'_> {
    fn name(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Parent => "parent",
            Self::Wasi(_) => "wasi",
            Self::Unknown => "unknown",
        }
    }
}

#[derive(Debug)]
struct CallRow {
    turn: u32,
    call_id: String,
    tool: String,
    status: &'static str,
    /// Row for this call in `tool-call-transcript.json`.
    row: Value,
}

/// Turns and calls of one agent loop.
#[derive(Debug, Default)]
pub(crate) struct AgentLog {
    turns: Vec<TurnRecord>,
    calls: Vec<CallRow>,
    text_bytes: usize,
    call_bytes: usize,
    /// WASI tools that the calls in `calls` used, each with the ids of its executions in the guest.
    wasi: BTreeMap<WasiToolId, (WasiToolFacts, Vec<String>)>,
    /// Number of turns that were dropped because the log was full.
    turns_cut: usize,
    calls_cut: usize,
    usage: ModelUsage,
    ended: Option<(&'static str, String)>,
}

impl AgentLog {
    pub(crate) fn turn(&mut self, mut turn: TurnRecord, usage: ModelUsage) {
        self.usage = usage;
        if self.turns.len() >= ROWS {
            self.turns_cut += 1;
            return;
        }
        self.text_bytes += turn.text.len();
        if self.text_bytes > TEXT {
            turn.text = format!("[{} bytes left out]", turn.text.len());
        }
        self.turns.push(turn);
    }

    pub(crate) fn call(&mut self, call: CallRecord, kind: ToolType<'_>) {
        if self.calls.len() >= ROWS {
            self.calls_cut += 1;
            return;
        }
        let mut row = json!({
            "call_id": call.call_id,
            "tool_name": call.tool,
            "tool_type": kind.name(),
            "phase": "agent",
            "status": call.status.name(),
            "redaction": {"policy": REDACTION},
            "turn": call.turn,
            "duration_ms": call.duration_ms,
            "executions": call.executions,
        });
        if let ToolType::Wasi(facts) = kind {
            row["wasi"] = facts.digests();
            if !call.executions.is_empty() {
                let first = || (facts.clone(), Vec::new());
                let (_, executions) = self.wasi.entry(facts.id.clone()).or_insert_with(first);
                executions.extend(call.executions.iter().cloned());
            }
        }
        self.call_bytes += call.answer.len() + call.arguments.to_string().len();
        if self.call_bytes > CALLS {
            row["omitted"] = json!(true);
        } else {
            // PHP would turn an empty object into a list, so empty arguments are left out.
            if call.arguments.as_object().is_some_and(|o| !o.is_empty()) {
                row["arguments"] = call.arguments;
            }
            row["answer"] = json!(call.answer);
        }
        self.calls.push(CallRow {
            turn: call.turn,
            call_id: call.call_id,
            tool: call.tool,
            status: call.status.name(),
            row,
        });
    }

    pub(crate) fn end(&mut self, ended: &Ended) {
        self.ended = Some((ended.how.name(), ended.summary.clone()));
    }

    /// Returns the model's summary of the whole task; `None` when the model gave none.
    pub(crate) fn summary(&self) -> Option<&str> {
        let (_, summary) = self.ended.as_ref()?;
        (!summary.is_empty()).then_some(summary)
    }

    /// Returns the turns and tool calls for the transcript.
    pub(crate) fn transcript(&self) -> Value {
        let turns: Vec<Value> = self
            .turns
            .iter()
            .map(|turn| {
                let calls: Vec<Value> = self
                    .calls
                    .iter()
                    .filter(|call| call.turn == turn.turn)
                    .map(|call| json!({"callId": call.call_id, "tool": call.tool, "status": call.status}))
                    .collect();
                json!({
                    "turn": turn.turn,
                    "text": turn.text,
                    "stop": turn.stop,
                    "model": turn.model,
                    "usage": turn.usage(),
                    "calls": calls,
                })
            })
            .collect();
        let mut value = json!({"turns": turns, "usage": self.usage});
        if let Some((how, summary)) = &self.ended {
            value["ending"] = json!({"kind": how, "summary": summary});
        }
        for (name, cut) in [("turnsCut", self.turns_cut), ("callsCut", self.calls_cut)] {
            if cut > 0 {
                value[name] = json!(cut);
            }
        }
        value
    }

    /// Builds the `wasi-tools/v1` document: which WASI tools ran, and how; `None` if none ran.
    pub(crate) fn wasi_tools(&self) -> Option<EvidenceDocument> {
        let rows = self.wasi.values();
        let rows: Vec<Value> = rows.map(|(facts, ran)| facts.row(ran)).collect();
        (!rows.is_empty()).then(|| EvidenceDocument {
            name: "wasi-tools.json",
            key: "wasiTools",
            kind: "wasi-tools",
            values: vec![json!({"schema": schema_id::WASI_TOOLS, "tools": rows})],
        })
    }

    /// Builds the `tool-call-transcript/v1` document.
    pub(crate) fn tool_calls(&self) -> EvidenceDocument {
        let rows: Vec<&Value> = self.calls.iter().map(|call| &call.row).collect();
        let mut document = json!({
            "schema": schema_id::TOOL_CALL_TRANSCRIPT,
            "redaction": {"policy": REDACTION},
            "tool_calls": rows,
        });
        if self.calls_cut > 0 {
            document["calls_cut"] = json!(self.calls_cut);
        }
        EvidenceDocument {
            name: "tool-call-transcript.json",
            key: "toolCallTranscript",
            kind: "tool-call-transcript",
            values: vec![document],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_agent::{CallStatus, Counted, Ending, TokenUsage};
    use wp_codebox_contracts::{SandboxAudit, Sha256Hex};

    fn turn(number: u32, text: &str) -> TurnRecord {
        TurnRecord {
            turn: number,
            text: text.to_owned(),
            calls: Vec::new(),
            stop: "tools",
            model: "m".to_owned(),
            usage: TokenUsage::default(),
            counted: Counted::Provider,
        }
    }

    fn call(turn: u32, answer: &str) -> CallRecord {
        CallRecord {
            turn,
            call_id: format!("c{turn}"),
            tool: "workspace.read".to_owned(),
            status: CallStatus::Ok,
            arguments: json!({"path": "a"}),
            answer: answer.to_owned(),
            executions: vec!["exec-2".to_owned()],
            duration_ms: 4,
        }
    }

    #[test]
    fn recorded_tool_calls_contain_the_members_that_bundle_verifiers_require() {
        let mut log = AgentLog::default();
        log.turn(turn(1, "I look."), ModelUsage::default());
        log.call(call(1, "<?php"), ToolType::Sandbox);
        let mut without = call(1, "");
        without.arguments = json!({});
        log.call(without, ToolType::Unknown);
        log.end(&Ended {
            stop: None,
            how: Ending::Finished,
            summary: "Done.".to_owned(),
        });
        let document = &log.tool_calls().values[0];
        let row = &document["tool_calls"][0];
        for field in ["call_id", "tool_name", "tool_type", "phase", "status"] {
            assert!(
                row[field].as_str().is_some_and(|t| !t.is_empty()),
                "{field}"
            );
        }
        assert!(
            row["redaction"]["policy"].is_string() && document["redaction"]["policy"].is_string()
        );
        assert!(document["tool_calls"][1].get("arguments").is_none());
        let transcript = log.transcript();
        assert_eq!(transcript["turns"][0]["calls"][0]["status"], "ok");
        assert_eq!(transcript["ending"]["kind"], "finished");
        assert_eq!(log.summary(), Some("Done."));
    }

    #[test]
    fn agent_log_of_a_long_loop_stays_below_the_size_limits() {
        let mut log = AgentLog::default();
        for number in 0..6_000 {
            log.turn(turn(number, &"t".repeat(4_000)), ModelUsage::default());
            log.call(call(number, &"a".repeat(8_000)), ToolType::Parent);
        }
        let transcript = log.transcript();
        let document = &log.tool_calls().values[0];
        assert_eq!(transcript["turnsCut"], 6_000 - ROWS);
        assert_eq!(document["calls_cut"], 6_000 - ROWS);
        assert_eq!(document["tool_calls"][ROWS - 1]["omitted"], true);
        assert!(transcript.to_string().len() < 3 << 20);
        assert!(document.to_string().len() < 6 << 20);
    }

    #[test]
    fn calls_of_wasi_tools_have_digests_and_their_tool_has_one_record_with_all_executions() {
        let facts = WasiToolFacts {
            id: WasiToolId::new("css.lint").unwrap(),
            version: "1".to_owned(),
            definition_sha256: Sha256Hex::new("a".repeat(64)).unwrap(),
            module_sha256: Sha256Hex::new("b".repeat(64)).unwrap(),
            audit: SandboxAudit {
                kind: "none".to_owned(),
                wrapped_cmd: "wp-codebox-wasi".to_owned(),
                ..SandboxAudit::default()
            },
        };
        let mut log = AgentLog::default();
        assert!(log.wasi_tools().is_none());
        for executions in [vec!["exec-2".to_owned()], vec![], vec!["exec-5".to_owned()]] {
            let row = CallRecord {
                tool: "css.lint".to_owned(),
                executions,
                ..call(1, "")
            };
            log.call(row, ToolType::Wasi(&facts));
        }
        let row = &log.tool_calls().values[0]["tool_calls"][1];
        assert_eq!(row["tool_type"], "wasi");
        assert_eq!(row["wasi"]["moduleSha256"], "b".repeat(64));
        let document = &log.wasi_tools().unwrap().values[0];
        assert_eq!(document["tools"].as_array().unwrap().len(), 1);
        let tool = &document["tools"][0];
        assert_eq!(tool["executions"], json!(["exec-2", "exec-5"]));
        assert_eq!(tool["sandboxAudits"][0]["wrappedCmd"], "wp-codebox-wasi");
    }
}
