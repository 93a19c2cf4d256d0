//! Request options that a provider does not support. The client learns them from the provider's
//! error responses and omits or replaces them for the rest of the run.
//!
//! Each option changes at most once, so a provider that refuses everything gets only a few
//! requests.

use super::refusal::Refusal;

/// Request options to use with this provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    pub usage: UsageOption,
    pub limit: LimitField,
    pub delivery: Delivery,
    pub cache: CacheMark,
}

/// Whether streamed requests ask for token counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum UsageOption {
    #[default]
    Asked,
    /// Do not ask for token counts, because the provider does not know `stream_options`.
    LeftOut,
}

/// Name of the request field that limits the output tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LimitField {
    /// `max_tokens`, which the client tries first, because nearly every provider knows it.
    #[default]
    MaxTokens,
    MaxCompletionTokens,
}

/// Whether to request the response as a stream or as one JSON text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Delivery {
    #[default]
    Stream,
    /// One JSON text, because the provider cannot stream.
    Whole,
}

/// Whether requests mark content for the provider's prompt cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CacheMark {
    #[default]
    Set,
    /// Do not mark, because the provider does not know `cache_control`.
    LeftOut,
}

/// Whether an error response led to different request options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LearnResult {
    /// An option changed, so the request must be sent again.
    Changed,
    /// The error response is not about an option that can change.
    Nothing,
}

impl Dialect {
    /// Changes an option if the error response is about it. Providers have no error code for an
    /// unknown field, so this searches the message for the field's name.
    pub(super) fn learn(&mut self, refusal: &Refusal) -> LearnResult {
        if !matches!(refusal.status, 400 | 422 | 501) {
            return LearnResult::Nothing;
        }
        let about = |word: &str| refusal.names(word);
        if about("stream_options") && self.usage == UsageOption::Asked {
            self.usage = UsageOption::LeftOut;
        } else if about("max_completion_tokens") && self.limit == LimitField::MaxTokens {
            self.limit = LimitField::MaxCompletionTokens;
        } else if about("cache_control") && self.cache == CacheMark::Set {
            self.cache = CacheMark::LeftOut;
        } else if refusal.has_word(&["stream", "streaming"]) && self.delivery == Delivery::Stream {
            self.delivery = Delivery::Whole;
        } else {
            return LearnResult::Nothing;
        }
        LearnResult::Changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(dialect: &mut Dialect, status: u16, sentence: &str) -> LearnResult {
        dialect.learn(&Refusal::read(status, sentence.as_bytes()))
    }

    #[test]
    fn each_model_request_option_is_changed_at_most_once_after_a_refusal() {
        let mut dialect = Dialect::default();
        for sentence in [
            "Unrecognized request argument supplied: stream_options",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "Streaming is not supported for this model",
            "system.0.cache_control: Extra inputs are not permitted",
        ] {
            assert_eq!(learn(&mut dialect, 400, sentence), LearnResult::Changed);
            assert_eq!(learn(&mut dialect, 400, sentence), LearnResult::Nothing);
        }
        let all = Dialect {
            usage: UsageOption::LeftOut,
            limit: LimitField::MaxCompletionTokens,
            delivery: Delivery::Whole,
            cache: CacheMark::LeftOut,
        };
        assert_eq!(dialect, all);
    }

    #[test]
    fn unrelated_provider_refusals_change_no_model_request_option() {
        let mut dialect = Dialect::default();
        for (status, sentence) in [
            (400, "Invalid value for messages[3].content"),
            (400, "The upstream server is not configured"),
            (401, "stream_options"),
            (500, "max_completion_tokens"),
        ] {
            assert_eq!(learn(&mut dialect, status, sentence), LearnResult::Nothing);
        }
        assert_eq!(dialect, Dialect::default());
    }
}
