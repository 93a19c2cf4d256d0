//! Reads a response in either provider protocol, as an event stream or as one JSON text.
//!
//! The first byte decides the form: `{` or `[` starts a whole JSON response, even when a stream was
//! requested; `<` starts a web page, which is refused; any other byte starts a stream.

use super::assembly::{AnswerError, Assembly, Progress};
use super::events::{Event, EventReader};
use super::limits::ANSWER_BYTES;
use super::{chat_answer, messages_answer};
use wp_codebox_contracts::ModelApi;

/// Form of a response body.
#[derive(Debug)]
enum Form {
    /// No byte except whitespace has arrived yet.
    Unknown,
    Stream(EventReader),
    Whole(Vec<u8>),
}

/// Incremental reader of one response body.
#[derive(Debug)]
pub(super) struct AnswerReader {
    api: ModelApi,
    form: Form,
    assembly: Assembly,
    progress: Progress,
    bytes: usize,
    events: u64,
}

impl AnswerReader {
    pub(super) fn new(api: ModelApi) -> Self {
        Self {
            api,
            form: Form::Unknown,
            assembly: Assembly::default(),
            progress: Progress::More,
            bytes: 0,
            events: 0,
        }
    }

    pub(super) const fn progress(&self) -> Progress {
        self.progress
    }

    /// Adds bytes of the body; calls `on_text` for each piece of text that they complete.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        on_text: &mut dyn FnMut(&str),
    ) -> Result<(), AnswerError> {
        self.bytes += bytes.len();
        if self.bytes > ANSWER_BYTES {
            return Err(AnswerError::TooLong);
        }
        if matches!(self.form, Form::Unknown) {
            match bytes.trim_ascii_start().first() {
                None => return Ok(()),
                Some(b'{' | b'[') => self.form = Form::Whole(Vec::new()),
                Some(b'<') => {
                    return Err(AnswerError::Shape(
                        "the response is a web page: check the address of the model",
                    ));
                }
                Some(_) => self.form = Form::Stream(EventReader::default()),
            }
        }
        match &mut self.form {
            Form::Unknown => Ok(()),
            Form::Whole(whole) => {
                whole.extend_from_slice(bytes);
                Ok(())
            }
            Form::Stream(reader) => {
                let mut events = Vec::new();
                let pushed = reader.push(bytes, &mut events);
                self.take(events, on_text)?;
                pushed.map_err(AnswerError::from)
            }
        }
    }

    /// Ends the body and returns the assembled response.
    pub(super) fn finish(mut self, on_text: &mut dyn FnMut(&str)) -> Result<Assembly, AnswerError> {
        match std::mem::replace(&mut self.form, Form::Unknown) {
            Form::Unknown => return Err(AnswerError::Truncated),
            Form::Whole(whole) => {
                let value = match serde_json::from_slice(&whole) {
                    Err(error) if error.is_eof() => return Err(AnswerError::Truncated),
                    Err(_) => AnswerError::json(&String::from_utf8_lossy(&whole))?,
                    Ok(value) => value,
                };
                match self.api {
                    ModelApi::OpenaiChat => chat_answer::whole(&value, &mut self.assembly, on_text),
                    ModelApi::AnthropicMessages => {
                        messages_answer::whole(&value, &mut self.assembly, on_text)
                    }
                }?;
            }
            Form::Stream(mut reader) => {
                let mut events = Vec::new();
                reader.finish(&mut events)?;
                match self.take(events, on_text) {
                    Ok(()) => {}
                    // The last event is truncated. The model had finished before, so this event
                    // contains no part of the response.
                    Err(AnswerError::Json { .. }) if self.progress >= Progress::Stopped => {}
                    Err(AnswerError::Json { .. }) => return Err(AnswerError::Truncated),
                    Err(other) => return Err(other),
                }
                if self.events == 0 {
                    return Err(AnswerError::Shape(
                        "the response is neither JSON nor an event stream",
                    ));
                }
                if self.progress == Progress::More {
                    return Err(AnswerError::Truncated);
                }
            }
        }
        Ok(self.assembly)
    }

    fn take(
        &mut self,
        events: Vec<Event>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<(), AnswerError> {
        for event in events {
            if self.progress == Progress::Finished {
                break;
            }
            self.events += 1;
            let step = match self.api {
                ModelApi::OpenaiChat => {
                    chat_answer::event(&event.data, &mut self.assembly, on_text)
                }
                ModelApi::AnthropicMessages => {
                    messages_answer::event(&event, &mut self.assembly, on_text)
                }
            };
            self.progress = self.progress.max(step?);
        }
        Ok(())
    }
}
