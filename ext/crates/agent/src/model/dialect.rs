//! What an endpoint does not understand, learnt from its refusals and kept for the run.
//!
//! Each word is changed once at most, so an endpoint that refuses everything is asked a
//! handful of times and no more.

use super::refusal::Refusal;

/// How this endpoint wants to be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    pub usage: UsageOption,
    pub limit: LimitWord,
    pub delivery: Delivery,
    pub cache: CacheMark,
}

/// Whether a stream is asked to count its tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum UsageOption {
    #[default]
    Asked,
    /// It does not know `stream_options`.
    LeftOut,
}

/// What the limit of an answer is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LimitWord {
    /// Known to nearly every endpoint, so it is tried first.
    #[default]
    MaxTokens,
    MaxCompletionTokens,
}

/// How the answer comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Delivery {
    #[default]
    Stream,
    /// It cannot stream.
    Whole,
}

/// Whether the provider is told what to keep for the next question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CacheMark {
    #[default]
    Set,
    /// It does not know `cache_control`.
    LeftOut,
}

/// Whether a refusal taught anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lesson {
    /// Ask again in other words.
    Learnt,
    /// It is about something else.
    Nothing,
}

impl Dialect {
    /// Learns from a refusal. Providers have no code for an unknown field: the sentence that
    /// names it is all there is.
    pub(super) fn learn(&mut self, refusal: &Refusal) -> Lesson {
        if !matches!(refusal.status, 400 | 422 | 501) {
            return Lesson::Nothing;
        }
        let about = |word: &str| refusal.names(word);
        if about("stream_options") && self.usage == UsageOption::Asked {
            self.usage = UsageOption::LeftOut;
        } else if about("max_completion_tokens") && self.limit == LimitWord::MaxTokens {
            self.limit = LimitWord::MaxCompletionTokens;
        } else if about("cache_control") && self.cache == CacheMark::Set {
            self.cache = CacheMark::LeftOut;
        } else if refusal.has_word(&["stream", "streaming"]) && self.delivery == Delivery::Stream {
            self.delivery = Delivery::Whole;
        } else {
            return Lesson::Nothing;
        }
        Lesson::Learnt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(dialect: &mut Dialect, status: u16, sentence: &str) -> Lesson {
        dialect.learn(&Refusal::read(status, sentence.as_bytes()))
    }

    #[test]
    fn each_word_is_changed_once() {
        let mut dialect = Dialect::default();
        for sentence in [
            "Unrecognized request argument supplied: stream_options",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "Streaming is not supported for this model",
            "system.0.cache_control: Extra inputs are not permitted",
        ] {
            assert_eq!(learn(&mut dialect, 400, sentence), Lesson::Learnt);
            assert_eq!(learn(&mut dialect, 400, sentence), Lesson::Nothing);
        }
        let all = Dialect {
            usage: UsageOption::LeftOut,
            limit: LimitWord::MaxCompletionTokens,
            delivery: Delivery::Whole,
            cache: CacheMark::LeftOut,
        };
        assert_eq!(dialect, all);
    }

    #[test]
    fn other_refusals_teach_nothing() {
        let mut dialect = Dialect::default();
        for (status, sentence) in [
            (400, "Invalid value for messages[3].content"),
            (400, "The upstream server is not configured"),
            (401, "stream_options"),
            (500, "max_completion_tokens"),
        ] {
            assert_eq!(learn(&mut dialect, status, sentence), Lesson::Nothing);
        }
        assert_eq!(dialect, Dialect::default());
    }
}
