//! Reads an answer of either protocol, whatever form it comes in.
//!
//! The form is seen in its first byte: an object is a whole answer, also where a stream was
//! asked for; anything but markup is taken for a stream.

use super::assembly::{AnswerError, Assembly, Progress};
use super::events::{Event, EventReader};
use super::limits::ANSWER_BYTES;
use super::{chat_answer, messages_answer};
use wp_codebox_contracts::ModelApi;

/// The form of an answer.
#[derive(Debug)]
enum Form {
    /// Only blanks so far.
    Unknown,
    Stream(EventReader),
    Whole(Vec<u8>),
}

/// An answer being read.
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

    /// Takes more of it.
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
                        "a web page came back: check the address of the model",
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

    /// The bytes are over.
    pub(super) fn finish(mut self, on_text: &mut dyn FnMut(&str)) -> Result<Assembly, AnswerError> {
        match std::mem::replace(&mut self.form, Form::Unknown) {
            Form::Unknown => return Err(AnswerError::Cut),
            Form::Whole(whole) => {
                let value = match serde_json::from_slice(&whole) {
                    Err(error) if error.is_eof() => return Err(AnswerError::Cut),
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
                    // The last event was never ended: what is wrong with it is its end.
                    Err(AnswerError::Json { .. }) if self.progress >= Progress::Stopped => {}
                    Err(AnswerError::Json { .. }) => return Err(AnswerError::Cut),
                    Err(other) => return Err(other),
                }
                if self.events == 0 {
                    return Err(AnswerError::Shape(
                        "it is neither JSON nor a stream of events",
                    ));
                }
                if self.progress == Progress::More {
                    return Err(AnswerError::Cut);
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
