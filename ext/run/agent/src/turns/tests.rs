//! Tests of every way the loop can end, with a scripted model and a fake tool backend.

use super::CALLS;
use super::window::tests::pairs_are_whole;
use super::*;
use crate::{TaskEnd, ToolAnswer, ToolCall, ToolSpec, ToolStatus};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Duration;

type Answer = Result<Reply, ModelError>;

#[derive(Default)]
struct Script {
    answers: VecDeque<Answer>,
    /// Response to every request after the responses in `answers` are used up.
    then: Option<Reply>,
    asked: Vec<(String, Vec<Message>, u64)>,
}

impl Model for Script {
    fn turn(
        &mut self,
        request: TurnRequest<'_>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Reply, ModelError> {
        assert!(pairs_are_whole(request.messages), "{:?}", request.messages);
        self.asked.push((
            request.system.to_owned(),
            request.messages.to_vec(),
            request.max_output_tokens,
        ));
        let answer = self
            .answers
            .pop_front()
            .or_else(|| self.then.clone().map(Ok))
            .expect("the script is over");
        if let Ok(reply) = &answer {
            on_text(&reply.text);
        }
        answer
    }
}

#[derive(Default)]
struct FakeBackend {
    specs: Vec<ToolSpec>,
    /// Result of the fake tool `read`.
    read: String,
    calls: Vec<CallRecord>,
    turns: Vec<TurnRecord>,
    usage: ModelUsage,
    text: String,
    carried_out: Vec<String>,
    /// Number of executed calls after which the run is interrupted, and the outcome of that run.
    interrupt_after: Option<(usize, Stop)>,
    halt: Option<Stop>,
}

impl LoopObserver for FakeBackend {
    fn text(&mut self, piece: &str) {
        self.text.push_str(piece);
    }
    fn called(&mut self, call: CallRecord) -> Result<(), ErrorBody> {
        self.calls.push(call);
        Ok(())
    }
    fn turned(&mut self, turn: TurnRecord, usage: ModelUsage) -> Result<(), ErrorBody> {
        self.turns.push(turn);
        self.usage = usage;
        Ok(())
    }
    fn interrupted(&self) -> Option<Stop> {
        let (after, stop) = self.interrupt_after.as_ref()?;
        (self.carried_out.len() >= *after).then(|| stop.clone())
    }
}

impl Toolbox for FakeBackend {
    fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }
    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, Halt> {
        self.carried_out.push(call.name.clone());
        if let Some(stop) = &self.halt {
            return Err(Halt::Stop(stop.clone()));
        }
        let arguments = call.arguments.clone().unwrap();
        let text = |name: &str| {
            let value = arguments.get(name).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let answer = |status, text: String, end| ToolAnswer {
            text,
            status,
            end,
            executions: vec!["exec-1".to_owned()],
            duration: Duration::from_millis(3),
        };
        Ok(match call.name.as_str() {
            "read" => answer(ToolStatus::Ok, self.read.clone(), None),
            "fail" => answer(ToolStatus::Failed, "it is not there".to_owned(), None),
            "finish" => {
                let summary = text("summary");
                answer(
                    ToolStatus::Ok,
                    "noted".to_owned(),
                    Some(TaskEnd::Finished { summary }),
                )
            }
            "blocked" => {
                let reason = text("reason");
                answer(
                    ToolStatus::Ok,
                    "noted".to_owned(),
                    Some(TaskEnd::Blocked { reason }),
                )
            }
            _ => answer(
                ToolStatus::Denied,
                format!(
                    "{} is not offered [{}]",
                    call.name,
                    ErrorCode::ToolNotAllowed
                ),
                None,
            ),
        })
    }
}

fn spec(id: &str, name: &str) -> ToolSpec {
    ToolSpec {
        id: id.to_owned(),
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}),
    }
}

fn bench() -> FakeBackend {
    FakeBackend {
        specs: vec![
            spec("workspace.read", "read"),
            spec("workspace.fail", "fail"),
            spec("task.finish", "finish"),
            spec("task.blocked", "blocked"),
        ],
        read: "<?php".to_owned(),
        ..FakeBackend::default()
    }
}

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: format!("call-{name}-{}", arguments.to_string().len()),
        name: name.to_owned(),
        arguments: Ok(arguments.as_object().cloned().unwrap()),
    }
}

fn reply(text: &str, calls: Vec<ToolCall>, stop: StopReason) -> Reply {
    Reply {
        text: text.to_owned(),
        calls: calls
            .into_iter()
            .enumerate()
            .map(|(index, call)| ToolCall {
                id: format!("{}-{index}", call.id),
                ..call
            })
            .collect(),
        stop,
        usage: Some(TokenUsage {
            input: 100,
            cached_input: 40,
            output: 10,
        }),
        model: "scripted".to_owned(),
    }
}

fn calls(calls: Vec<ToolCall>) -> Answer {
    Ok(reply("I go on.", calls, StopReason::Tools))
}

fn read(path: &str) -> ToolCall {
    call("read", json!({"path": path}))
}

fn finish() -> Answer {
    calls(vec![call("finish", json!({"summary": "Fixed it."}))])
}

fn said(text: &str, stop: StopReason) -> Answer {
    Ok(reply(text, vec![], stop))
}

fn assignment() -> Assignment {
    Assignment {
        system: "system".to_owned(),
        task: "Fix it.".to_owned(),
        budget: AgentBudget {
            turns: 20,
            ..AgentBudget::default()
        },
        prices: None,
        context_tokens: 128_000,
        max_output_tokens: 8_192,
        deadline: Instant::now() + Duration::from_secs(60),
    }
}

struct Played {
    ended: Ended,
    script: Script,
    bench: FakeBackend,
}

fn play_with(
    bench: FakeBackend,
    assignment: Assignment,
    redactor: &Redactor,
    script: Script,
) -> Played {
    let (mut bench, mut script) = (bench, script);
    let ended = drive(&mut script, &mut bench, redactor, assignment).unwrap();
    Played {
        ended,
        script,
        bench,
    }
}

fn play(answers: Vec<Answer>) -> Played {
    let script = Script {
        answers: answers.into(),
        ..Script::default()
    };
    play_with(bench(), assignment(), &Redactor::default(), script)
}

fn endless(reply: Answer, assignment: Assignment) -> Played {
    let script = Script {
        then: reply.ok(),
        ..Script::default()
    };
    play_with(bench(), assignment, &Redactor::default(), script)
}

fn code(ended: &Ended) -> Option<ErrorCode> {
    match ended.stop.as_ref()? {
        Stop::Partial(e) | Stop::Blocked(e) | Stop::Failed(e) | Stop::Uncaptured(e) => Some(e.code),
        Stop::Timeout => Some(ErrorCode::RunTimeout),
        Stop::Cancelled => Some(ErrorCode::RunCancelled),
    }
}

fn last_user(messages: &[Message]) -> &str {
    match messages.last() {
        Some(Message::User(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn task_finish_call_ends_the_agent_loop_as_finished() {
    let played = play(vec![calls(vec![read("a.php")]), finish()]);
    assert_eq!(played.ended.stop, None);
    assert_eq!(played.ended.how, Ending::Finished);
    assert_eq!(played.ended.summary, "Fixed it.");
    let second = &played.script.asked[1].1;
    assert!(matches!(&second[2], Message::Tool { text, .. } if text == "<?php"));
    assert_eq!(played.bench.usage.turns, 2);
    assert_eq!(played.bench.usage.input_tokens, 200);
    assert_eq!(played.bench.usage.cached_input_tokens, 80);
    assert_eq!(played.bench.usage.cost_microusd, None);
    assert_eq!(played.bench.text, "I go on.I go on.");
    let first = &played.bench.calls[0];
    assert_eq!(
        (first.tool.as_str(), first.status),
        ("workspace.read", CallStatus::Ok)
    );
    assert_eq!(first.executions, ["exec-1"]);
}

#[test]
fn task_blocked_call_ends_the_agent_loop_with_its_reason_and_skips_later_calls() {
    let blocked = call("blocked", json!({"reason": "no network"}));
    let played = play(vec![calls(vec![read("a"), blocked, read("b")])]);
    assert_eq!(code(&played.ended), Some(ErrorCode::AgentBlocked));
    assert!(
        matches!(&played.ended.stop, Some(Stop::Blocked(e)) if e.message.ends_with("no network"))
    );
    assert_eq!(played.bench.carried_out, ["read", "blocked"]);
    let statuses: Vec<CallStatus> = played.bench.calls.iter().map(|c| c.status).collect();
    assert_eq!(
        statuses,
        [CallStatus::Ok, CallStatus::Ok, CallStatus::Skipped]
    );
}

#[test]
fn exhausted_budget_ends_the_agent_loop_as_partial_and_the_error_names_the_budget() {
    let costs = ModelPrices {
        input: 1_000_000,
        cached_input: None,
        output: 1_000_000,
    };
    type Change = fn(&mut AgentBudget);
    let rows: [(&str, Change); 4] = [
        ("turns", |b| b.turns = 6),
        ("input_tokens", |b| b.input_tokens = 1_000),
        ("output_tokens", |b| b.output_tokens = 55),
        ("cost_microusd", |b| b.cost_microusd = Some(600)),
    ];
    for (name, change) in rows {
        let mut assignment = assignment();
        change(&mut assignment.budget);
        assignment.prices = Some(costs);
        let script = Script {
            answers: (0..20).map(|n| calls(vec![read(&n.to_string())])).collect(),
            ..Script::default()
        };
        let played = play_with(bench(), assignment, &Redactor::default(), script);
        assert_eq!(
            code(&played.ended),
            Some(ErrorCode::BudgetExhausted),
            "{name}"
        );
        let Some(Stop::Partial(error)) = &played.ended.stop else {
            panic!("{name}: not partial")
        };
        assert_eq!(error.data.as_ref().unwrap()["budget"], name);
        // The result reports the usage, which exceeds the budget only slightly.
        let usage = played.bench.usage;
        assert!(usage.turns >= 4 && usage.turns <= 10, "{name}: {usage:?}");
        assert!(usage.cost_microusd.unwrap() <= 1_100, "{name}: {usage:?}");
    }
}

#[test]
fn model_is_warned_when_few_turns_are_left_and_in_the_last_turn() {
    let mut short = assignment();
    short.budget.turns = 4;
    let script = Script {
        answers: (0..4).map(|n| calls(vec![read(&n.to_string())])).collect(),
        ..Script::default()
    };
    let played = play_with(bench(), short, &Redactor::default(), script);
    let told: Vec<bool> = played
        .script
        .asked
        .iter()
        .map(|(_, messages, _)| matches!(messages.last(), Some(Message::User(t)) if t.contains("left:") || t.contains("last turn")))
        .collect();
    assert_eq!(told, [false, true, false, true]);
}

#[test]
fn output_token_limit_of_a_turn_is_capped_by_the_remaining_budget() {
    let mut short = assignment();
    short.budget.output_tokens = 25;
    let script = Script {
        answers: (0..9).map(|n| calls(vec![read(&n.to_string())])).collect(),
        ..Script::default()
    };
    let played = play_with(bench(), short, &Redactor::default(), script);
    let asked: Vec<u64> = played.script.asked.iter().map(|a| a.2).collect();
    assert_eq!(asked, [25, 15, 5]);
}

#[test]
fn tokens_are_estimated_if_the_provider_reports_no_usage() {
    let uncounted = Reply {
        usage: None,
        ..reply(
            &"w".repeat(400),
            vec![call("finish", json!({}))],
            StopReason::Tools,
        )
    };
    let played = play(vec![Ok(uncounted)]);
    let usage = played.bench.usage;
    assert!(
        usage.output_tokens > 100 && usage.output_tokens < 110,
        "{usage:?}"
    );
    assert!(
        usage.input_tokens > 20 && usage.input_tokens < 500,
        "{usage:?}"
    );
    assert_eq!(played.bench.turns[0].usage()["counted"], "estimate");
}

#[test]
fn each_provider_failure_ends_the_agent_loop_with_its_error_code() {
    let why = || "x".to_owned();
    let rows = [
        (
            ModelError::Unavailable {
                why: why(),
                attempts: 5,
            },
            ErrorCode::ProviderUnavailable,
        ),
        (
            ModelError::Malformed {
                protocol: "p",
                why: why(),
            },
            ErrorCode::ProviderUnavailable,
        ),
        (
            ModelError::Unauthorised { status: 401 },
            ErrorCode::ProviderRejected,
        ),
        (
            ModelError::Rejected {
                status: 404,
                why: why(),
            },
            ErrorCode::ProviderRejected,
        ),
        (ModelError::Deadline, ErrorCode::RunTimeout),
        (ModelError::Cancelled, ErrorCode::RunCancelled),
    ];
    for (error, expected) in rows {
        let played = play(vec![calls(vec![read("a")]), Err(error.clone())]);
        assert_eq!(code(&played.ended), Some(expected), "{error}");
        assert_eq!(played.bench.usage.turns, 1, "what was used stays known");
    }
}

#[test]
fn filtered_model_response_ends_the_agent_loop_without_executing_its_tool_calls() {
    let played = play(vec![Ok(reply("", vec![read("a")], StopReason::Filtered))]);
    assert_eq!(code(&played.ended), Some(ErrorCode::ProviderRejected));
    assert!(played.bench.carried_out.is_empty());
    assert_eq!(played.bench.calls[0].status, CallStatus::Skipped);
}

#[test]
fn lack_of_progress_warns_the_model_and_then_ends_the_agent_loop() {
    let played = endless(calls(vec![read("same")]), assignment());
    assert_eq!(code(&played.ended), Some(ErrorCode::AgentNoProgress));
    assert_eq!(played.bench.usage.turns, 5);
    assert!(last_user(&played.script.asked[3].1).contains("same arguments before"));
}

#[test]
fn turns_with_only_refused_tool_calls_end_the_agent_loop() {
    let script = Script {
        answers: (0..20)
            .map(|n| calls(vec![call("delete_host", json!({"n": n}))]))
            .collect(),
        ..Script::default()
    };
    let played = play_with(bench(), assignment(), &Redactor::default(), script);
    assert_eq!(code(&played.ended), Some(ErrorCode::AgentNoProgress));
    assert_eq!(played.bench.usage.turns, 8);
}

#[test]
fn call_of_an_unknown_tool_is_refused_and_recorded() {
    let played = play(vec![
        calls(vec![call("host_exec", json!({"cmd": "id"})), read("a")]),
        finish(),
    ]);
    assert_eq!(played.ended.stop, None);
    let refused = &played.bench.calls[0];
    assert_eq!(
        (refused.tool.as_str(), refused.status),
        ("host_exec", CallStatus::Denied)
    );
    assert!(refused.answer.contains("wp_codebox_tool_not_allowed"));
    assert_eq!(played.bench.calls[1].status, CallStatus::Ok);
    assert!(matches!(
        &played.script.asked[1].1[2],
        Message::Tool {
            status: ToolStatus::Denied,
            ..
        }
    ));
}

#[test]
fn tool_call_with_unparsable_arguments_fails_without_being_executed() {
    let broken = ToolCall {
        arguments: Err("expected `,` at column 9".to_owned()),
        ..read("a")
    };
    let played = play(vec![calls(vec![broken]), finish()]);
    assert_eq!(played.bench.carried_out, ["finish"]);
    assert_eq!(played.bench.calls[0].status, CallStatus::Failed);
    assert!(
        matches!(&played.script.asked[1].1[2], Message::Tool { text, .. } if text.contains("column 9"))
    );
}

#[test]
fn tool_calls_beyond_the_limit_of_one_model_response_fail_without_being_executed() {
    let many = (0..CALLS + 3).map(|n| read(&n.to_string())).collect();
    let played = play(vec![calls(many), finish()]);
    assert_eq!(played.bench.carried_out.len(), CALLS + 1);
    assert_eq!(played.bench.calls[CALLS].status, CallStatus::Failed);
    assert_eq!(played.ended.stop, None);
}

#[test]
fn second_model_response_in_a_row_without_tool_calls_ends_the_agent_loop_as_done() {
    let played = play(vec![
        said("Done.", StopReason::End),
        said("It is fixed.", StopReason::End),
    ]);
    assert_eq!(
        (played.ended.stop, played.ended.how),
        (None, Ending::ClaimedDone)
    );
    assert_eq!(played.ended.summary, "It is fixed.");
    assert!(last_user(&played.script.asked[1].1).contains("You called no tool"));
    // After a tool call in between, a second response with text only does not end the loop.
    let played = play(vec![
        said("Hm.", StopReason::End),
        calls(vec![read("a")]),
        said("Hm.", StopReason::End),
        finish(),
    ]);
    assert_eq!(played.ended.how, Ending::Finished);
}

#[test]
fn repeated_empty_or_truncated_model_responses_end_the_agent_loop() {
    let played = endless(said("", StopReason::End), assignment());
    assert_eq!(code(&played.ended), Some(ErrorCode::AgentNoProgress));
    assert_eq!(played.bench.usage.turns, 3);
    let played = endless(said("and so on", StopReason::Length), assignment());
    assert_eq!(code(&played.ended), Some(ErrorCode::AgentNoProgress));
    assert_eq!(played.bench.usage.turns, 4);
    // After one truncated response, the loop asks the model to continue.
    let played = play(vec![said("I will", StopReason::Length), finish()]);
    assert_eq!(played.ended.how, Ending::Finished);
    assert!(last_user(&played.script.asked[1].1).contains("cut at its length limit"));
}

#[test]
fn deadline_and_cancellation_end_the_agent_loop_between_tool_calls() {
    for stop in [Stop::Timeout, Stop::Cancelled] {
        let bench = FakeBackend {
            interrupt_after: Some((1, stop.clone())),
            ..bench()
        };
        let script = Script {
            answers: vec![calls(vec![read("a"), read("b"), read("c")])].into(),
            ..Script::default()
        };
        let played = play_with(bench, assignment(), &Redactor::default(), script);
        assert_eq!(played.ended.stop, Some(stop));
        assert_eq!(played.bench.carried_out, ["read"]);
        let statuses: Vec<CallStatus> = played.bench.calls.iter().map(|c| c.status).collect();
        assert_eq!(
            statuses,
            [CallStatus::Ok, CallStatus::Skipped, CallStatus::Skipped]
        );
    }
}

#[test]
fn agent_loop_ends_with_the_guests_error_when_the_guest_ends() {
    let lost = Stop::Failed(ErrorBody::new(ErrorCode::RunFailed, "the guest ended"));
    let bench = FakeBackend {
        halt: Some(lost.clone()),
        ..bench()
    };
    let script = Script {
        answers: vec![calls(vec![read("a"), read("b")])].into(),
        ..Script::default()
    };
    let played = play_with(bench, assignment(), &Redactor::default(), script);
    assert_eq!(played.ended.stop, Some(lost));
    assert_eq!(played.bench.calls.len(), 2, "{:?}", played.bench.calls);
}

/// Runs the loop with tool results so large that the conversation outgrows its context window.
fn long_work(context_tokens: u64, answer_bytes: usize, turns: usize) -> Played {
    let mut small = assignment();
    small.context_tokens = context_tokens;
    small.max_output_tokens = 500;
    small.budget.turns = 60;
    let mut answers: VecDeque<Answer> = (0..turns)
        .map(|n| {
            let answer = reply("I go on.", vec![read(&n.to_string())], StopReason::Tools);
            Ok(Reply {
                usage: None,
                ..answer
            })
        })
        .collect();
    answers.push_back(finish());
    let bench = FakeBackend {
        read: "r".repeat(answer_bytes),
        ..bench()
    };
    let script = Script {
        answers,
        ..Script::default()
    };
    play_with(bench, small, &Redactor::default(), script)
}

#[test]
fn full_context_window_shortens_old_tool_results_and_requests_no_summary_if_that_is_enough() {
    let played = long_work(8_000, 4_000, 12);
    assert_eq!(played.ended.stop, None, "{:?}", played.ended);
    assert_eq!(played.bench.usage.turns, 13, "no summary was needed");
    for (_, messages, _) in &played.script.asked {
        let tokens = window::bytes(messages) / 4;
        assert!(tokens < 8_000, "{tokens}");
        assert_eq!(messages[0], Message::User("Fix it.".to_owned()));
    }
    let last = &played.script.asked.last().unwrap().1;
    let shortened =
        |m: &&Message| matches!(m, Message::Tool { text, .. } if text.contains("were left out"));
    assert!(last.iter().filter(shortened).count() >= 6);
}

#[test]
fn context_window_still_full_after_shortening_requests_a_summary() {
    let mut small = assignment();
    small.context_tokens = 4_000;
    small.max_output_tokens = 500;
    small.budget.turns = 60;
    let steps = |from: usize| {
        (from..from + 40).map(|n| {
            let answer = reply(
                &"x".repeat(700),
                vec![read(&n.to_string())],
                StopReason::Tools,
            );
            Ok(Reply {
                usage: None,
                ..answer
            })
        })
    };
    let mut script = Script {
        answers: steps(0).collect(),
        ..Script::default()
    };
    // A summary request takes the next response of the script, and the call in that response is not
    // executed; so several `finish` responses follow.
    script
        .answers
        .extend([finish(), finish(), finish(), finish()]);
    let played = play_with(bench(), small, &Redactor::default(), script);
    let summaries = played
        .script
        .asked
        .iter()
        .filter(|(_, m, _)| last_is_request(m))
        .count();
    assert!(summaries >= 1, "{}", played.script.asked.len());
    let skipped = played
        .bench
        .calls
        .iter()
        .filter(|c| c.status == CallStatus::Skipped);
    assert!(skipped.count() >= summaries);
    let after = played
        .script
        .asked
        .iter()
        .position(|(_, m, _)| last_is_request(m))
        .unwrap();
    let next = &played.script.asked[after + 1].1;
    assert!(
        matches!(&next[0], Message::User(t) if t.starts_with("Fix it.") && t.contains(&"x".repeat(700)))
    );
    assert!(next.len() < played.script.asked[after].1.len());
    assert_eq!(played.bench.usage.turns as usize, played.script.asked.len());
}

fn last_is_request(messages: &[Message]) -> bool {
    matches!(messages.last(), Some(Message::User(t)) if t.contains("must become shorter"))
}

#[test]
fn context_length_error_requests_a_summary_and_then_retries() {
    let played = play(vec![
        calls(vec![read("a")]),
        Err(ModelError::TooLong),
        said("I read a.", StopReason::End),
        finish(),
    ]);
    assert_eq!(played.ended.stop, None, "{:?}", played.ended);
    assert_eq!(played.script.asked.len(), 4);
    assert!(last_is_request(&played.script.asked[2].1));
}

#[test]
fn conversation_that_cannot_fit_the_context_window_ends_the_agent_loop_as_partial() {
    let mut tiny = assignment();
    tiny.context_tokens = 1_000;
    tiny.max_output_tokens = 100;
    tiny.task = "t".repeat(20_000);
    let script = Script {
        then: said("nothing", StopReason::End).ok(),
        ..Script::default()
    };
    let played = play_with(bench(), tiny, &Redactor::default(), script);
    let Some(Stop::Partial(error)) = &played.ended.stop else {
        panic!("{:?}", played.ended)
    };
    assert_eq!(error.code, ErrorCode::BudgetExhausted);
    assert_eq!(error.data.as_ref().unwrap()["budget"], "context_tokens");
}

/// A known secret in a guest's file, in the task or in model output reaches neither the provider
/// nor the recorded turns, calls and result.
#[test]
fn known_secret_is_redacted_in_model_requests_and_in_recorded_turns_and_calls() {
    let secret = "correct-horse-battery";
    let redactor = Redactor::with_secrets(&[], [secret]);
    let mut told = assignment();
    told.task = format!("Use {secret}.");
    told.system = format!("Host says {secret}.");
    let bench = FakeBackend {
        read: format!("key={secret}"),
        ..bench()
    };
    let script = Script {
        answers: vec![
            calls(vec![
                read(secret),
                ToolCall {
                    arguments: Err(format!("bad {secret}")),
                    ..read("x")
                },
            ]),
            said(secret, StopReason::End),
            calls(vec![call(
                "finish",
                json!({"summary": format!("It was {secret}")}),
            )]),
        ]
        .into(),
        ..Script::default()
    };
    let played = play_with(bench, told, &redactor, script);
    assert_eq!(played.ended.how, Ending::Finished);
    let sent = format!("{:?}", played.script.asked);
    assert!(!sent.contains("horse"), "{sent}");
    assert!(sent.contains("key=[REDACTED:configured-secret-value]"));
    let kept = format!(
        "{:?}{:?}{:?}",
        played.bench.calls, played.bench.turns, played.ended
    );
    assert!(!kept.contains("horse"), "{kept}");
    // The call whose arguments could not be parsed was not executed.
    assert_eq!(played.bench.carried_out, ["read", "finish"]);
}

#[test]
fn observer_error_while_a_tool_call_is_recorded_ends_the_agent_loop() {
    struct Full(FakeBackend);
    impl Toolbox for Full {
        fn specs(&self) -> &[ToolSpec] {
            self.0.specs()
        }
        fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, Halt> {
            self.0.call(call)
        }
    }
    impl LoopObserver for Full {
        fn text(&mut self, _: &str) {}
        fn called(&mut self, _: CallRecord) -> Result<(), ErrorBody> {
            Err(ErrorBody::new(ErrorCode::BundleWriteFailed, "full"))
        }
        fn turned(&mut self, _: TurnRecord, _: ModelUsage) -> Result<(), ErrorBody> {
            Ok(())
        }
        fn interrupted(&self) -> Option<Stop> {
            None
        }
    }
    let mut script = Script {
        then: calls(vec![read("a")]).ok(),
        ..Script::default()
    };
    let answer = drive(
        &mut script,
        &mut Full(bench()),
        &Redactor::default(),
        assignment(),
    );
    assert_eq!(answer.unwrap_err().code, ErrorCode::BundleWriteFailed);
}
