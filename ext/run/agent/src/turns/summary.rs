//! Shortens a conversation to fit the context window: first old tool results, then a summary
//! written by the model.

use super::Turns;
use super::budget::Exhausted;
use super::window::{self, KEEP};
use crate::{Halt, Message};

/// Maximum number of bytes of the model's summary that stay in the conversation.
const BYTES: usize = 16 * 1024;

const REQUEST: &str = "This conversation must become shorter before you go on. Do not call a tool now. Write down, in at most 600 words, what you need to go on without the earlier turns: what the task asks for, what you found out (files, lines, causes), what you changed and where, what you tried that failed, and what is left to do.";

impl Turns<'_> {
    fn tokens(&self, messages: &[Message]) -> u64 {
        self.window.tokens(self.fixed + window::bytes(messages))
    }

    /// Shortens the conversation when it uses too much of the context window.
    pub(super) fn fit(&mut self) -> Result<(), Halt> {
        let limit = self.window.limit();
        if self.tokens(&self.messages) <= limit {
            return Ok(());
        }
        window::shorten(&mut self.messages, KEEP);
        // Shortening is enough only if several more turns fit; otherwise the next turn would have
        // to shorten again, so request a summary now.
        if self.tokens(&self.messages) <= limit / 6 * 5 {
            return Ok(());
        }
        let summary = self.summary()?;
        let task = Message::User(format!(
            "{}\n\n---\nThe conversation became too long and was shortened. What you wrote down of the turns before:\n\n{summary}",
            self.task
        ));
        // Keeps as many of the last turns as fit, at most `KEEP`.
        for keep in (0..=KEEP).rev() {
            let mut shorter = vec![task.clone()];
            let kept = window::last_turns(&self.messages, keep);
            shorter.extend_from_slice(&self.messages[kept..]);
            // Keeps the last turn alone only with shortened tool results and arguments. If it does
            // not fit even so, it is dropped too.
            if keep == 1 {
                window::shorten(&mut shorter, 0);
            }
            let room = if keep == 0 { limit } else { limit / 3 * 2 };
            if self.tokens(&shorter) <= room {
                self.messages = shorter;
                return Ok(());
            }
        }
        Err(self.exhausted(Exhausted::Window))
    }

    /// Requests a summary of the conversation from the model, which counts as a turn. Returns a
    /// fixed note if the model writes none.
    fn summary(&mut self) -> Result<String, Halt> {
        self.interrupted()?;
        let most = self.window.most();
        let per_byte = self.window.tokens(1 << 20).max(1);
        let bytes = usize::try_from((most << 20) / per_byte).unwrap_or(usize::MAX);
        let room = bytes.saturating_sub(self.fixed + REQUEST.len() + 64);
        let mut question = window::drop_oldest(&self.messages, room);
        question.push(Message::User(REQUEST.to_owned()));
        let reply = self.ask_about(&question)?;
        let Some(reply) = reply else {
            return Ok(unknown());
        };
        // Tool calls in this response are not executed; each is recorded as skipped.
        self.skip_all(&reply.calls)?;
        let text = self.redactor.redact(reply.text.trim());
        if text.is_empty() {
            return Ok(unknown());
        }
        Ok(window::head(&text, BYTES).to_owned())
    }
}

fn unknown() -> String {
    "(Nothing was written down. Look at the files again before you change them.)".to_owned()
}
