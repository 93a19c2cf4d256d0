//! Handles one request to a sandbox that is kept open for clients. A client sends the request over
//! the control socket.

use super::handles::ControlHandles;
use super::lines::{Lines, Replies};
use super::{events, exec};
use crate::journal::queue::QueuedRequest;
use tokio::sync::oneshot;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, LIVE_PROTOCOL, LiveCall, LiveReply, LiveRequest, unknown_member,
};

/// Maximum number of characters of the actor (the name of the user or program that sends the
/// request).
const ACTOR: usize = 200;

/// Parses the first line of a connection as a request to the sandbox.
pub(super) fn parse(line: &[u8]) -> Result<LiveCall, ErrorBody> {
    let invalid = |what: String| ErrorBody::new(ErrorCode::InputInvalid, what);
    let mut call: LiveCall =
        serde_json::from_slice(line).map_err(|e| invalid(refusal(line, &e)))?;
    if call.live != LIVE_PROTOCOL {
        return Err(invalid(other_version(call.live.into())));
    }
    call.actor = call
        .actor
        .chars()
        .filter(|c| !c.is_control())
        .take(ACTOR)
        .collect();
    if call.actor.trim().is_empty() {
        return Err(invalid(
            "the call has no actor: set `actor` to the name of the user or program that makes it"
                .to_owned(),
        ));
    }
    Ok(call)
}

fn other_version(live: u64) -> String {
    format!(
        "the client uses version {live} of the live protocol, the sandbox version {LIVE_PROTOCOL}: use the client of the release that started the sandbox"
    )
}

/// Returns why the first line of a connection is not a request. A value in the line may be a
/// secret, so the JSON parser's message is used only if it is about an unknown member: such a
/// message contains no value.
fn refusal(line: &[u8], error: &serde_json::Error) -> String {
    #[derive(serde::Deserialize)]
    struct Version {
        live: u64,
    }
    match serde_json::from_slice(line) {
        // Checked first, because another version may have other members.
        Ok(Version { live }) if live != u64::from(LIVE_PROTOCOL) => return other_version(live),
        Ok(_) | Err(_) => {}
    }
    match unknown_member(error) {
        Some(said) => format!("the call has an {said}"),
        None => format!(
            "the first line is not a valid live call (error at column {})",
            error.column()
        ),
    }
}

/// Handles one request until its last reply is sent.
pub(super) async fn converse(
    call: LiveCall,
    lines: Lines,
    mut replies: Replies,
    handles: &ControlHandles,
) {
    let actor = handles.redactor.redact(&call.actor).into_owned();
    match call.request {
        LiveRequest::Exec(wanted) => exec::converse(actor, wanted, lines, replies, handles).await,
        LiveRequest::Events(wanted) => events::lines(&wanted, &mut replies, handles).await,
        LiveRequest::Status {} => match handles.queue.status() {
            Ok(answer) => replies.send(&LiveReply::Answer { answer }).await,
            Err(error) => replies.error(error).await,
        },
        request => {
            let (answer, answered) = oneshot::channel();
            let request = Box::new(request);
            let put = handles.queue.put(QueuedRequest::Call {
                actor,
                request,
                answer,
            });
            let answered = match put {
                Ok(()) => wait(answered, lines).await,
                Err(error) => Some(Err(error)),
            };
            match answered {
                Some(Ok(answer)) => replies.send(&LiveReply::Answer { answer }).await,
                Some(Err(error)) => replies.error(error).await,
                None => {}
            }
        }
    }
}

/// Waits for the answer to a request while the client is connected. A request that has been started
/// is completed even if the client disconnects.
async fn wait<T>(
    mut answered: oneshot::Receiver<Result<T, ErrorBody>>,
    mut lines: Lines,
) -> Option<Result<T, ErrorBody>> {
    let over = |_| ErrorBody::new(ErrorCode::SandboxNotHeld, "the sandbox has ended");
    loop {
        tokio::select! {
            answer = &mut answered => return Some(answer.unwrap_or_else(|e| Err(over(e)))),
            line = lines.next() => match line {
                // Lines that arrive while the answer is pending are ignored; only a disconnected
                // client ends the wait.
                Ok(Some(_)) => {}
                Ok(None) | Err(_) if lines.is_gone() => return None,
                Ok(None) | Err(_) => {
                    return Some(answered.await.unwrap_or_else(|e| Err(over(e))));
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn control_characters_are_removed_from_the_actor_of_a_call_and_its_length_is_limited() {
        let actor = |name: &str| {
            let line = json!({"live": LIVE_PROTOCOL, "actor": name, "request": {"type": "status"}});
            parse(line.to_string().as_bytes()).map(|call| call.actor)
        };
        assert_eq!(actor("a\u{7}\u{1b}[31mb\n").unwrap(), "a[31mb");
        assert_eq!(actor(&"x".repeat(ACTOR + 1)).unwrap(), "x".repeat(ACTOR));
        let refused = actor("\u{7}\n").unwrap_err();
        assert!(refused.message.contains("no actor"), "{}", refused.message);
    }
}
