//! Refuses a server that accepts requests with unknown members.
//!
//! The server sends its answers to the subject that a request names, also to a subject of its own
//! interface, past the permissions of the requester. There an answer is a request. A strict server
//! refuses it, because each answer has a member that no request has. Another server ignores this
//! member, and every account that may store a message can remove the messages of any stream.
//!
//! Servers know the setting `strict` since 2.11.0 and have it by default since 2.12.0. The version
//! does not tell it, so a request that only a strict server refuses does.

use super::failure::{CallError, Outcome, number};
use super::layout;
use super::options::Party;
use crate::bus::BusError;

/// A request with a member that no version of the server knows. It changes nothing.
pub(super) const REQUEST: &[u8] = br#"{"seq":1,"codebox_unknown_member":true}"#;

/// Returns the subject for [`REQUEST`]: one that the permissions of the party include.
pub(super) fn subject(party: &Party) -> String {
    match party {
        // The server answers this before a setup, too.
        Party::Operator | Party::Node(_) => "$JS.API.STREAM.NAMES".to_owned(),
        // The names of all streams include those of other submitters.
        Party::Submitter(_) => format!("$JS.API.STREAM.MSG.GET.{}", layout::HOSTS),
    }
}

/// Reads the answer to [`REQUEST`].
///
/// # Errors
/// [`BusError::ServerNotStrict`] if the server carried the request out. An error that does not show
/// whether the server is strict is returned as it is.
pub(super) fn check(answer: &[u8]) -> Result<(), CallError> {
    match Outcome::read(answer)?.error {
        Some(error) if error.err_code == number::INVALID_JSON => Ok(()),
        Some(error) if error.err_code != number::NO_MESSAGE => Err(CallError::Api(error)),
        Some(_) | None => Err(CallError::from(BusError::ServerNotStrict)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::CodedError;

    fn code(answer: &str) -> &'static str {
        match check(answer.as_bytes()) {
            Ok(()) => "ok",
            Err(error) => error.into_bus("x").code().as_str(),
        }
    }

    #[test]
    fn server_is_strict_only_if_it_refuses_the_unknown_member() {
        let of = |number: u32| code(&format!(r#"{{"error":{{"err_code":{number}}}}}"#));
        assert_eq!(of(10025), "ok");
        let lenient = "wp_codebox_cluster_server_not_strict";
        assert_eq!(of(10037), lenient);
        assert_eq!(code(r#"{"streams":[]}"#), lenient);
        assert_eq!(code(r#"{"error":null}"#), lenient);
        // Servers in a cluster look for the stream before they read the request.
        assert_eq!(of(10059), "wp_codebox_cluster_not_set_up");
        assert_eq!(of(10008), "wp_codebox_cluster_unreachable");
        assert_eq!(of(0), "wp_codebox_cluster_unreachable");
        assert_eq!(code(""), "wp_codebox_cluster_unreadable");
    }
}
