//! Flags of previews, shared by the commands that start runs.

use super::output::Output;
use super::request::scaled;
use clap::Args;
use serde_json::Value;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, EventType, Hold, LifecycleEvent, PreviewRequest, RunRequest,
};

/// Longest hold unless the host allows more, seconds.
const LONGEST: u64 = 3600;
/// Most that a host can allow, seconds.
const HOST_LONGEST: u64 = 86_400;
/// The host's own bound.
const BOUND: &str = "WP_CODEBOX_PREVIEW_HOLD_MAX_SECONDS";

/// A preview of the site, open while the sandbox is held.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PreviewArgs {
    /// Keep the sandbox so long after its work, with its site on an address of this host:
    /// seconds, or a number with s, m or h; an hour at most unless
    /// $WP_CODEBOX_PREVIEW_HOLD_MAX_SECONDS says more. Whatever visitors change in the
    /// database is gone with the sandbox; what they change in mounts is part of its change.
    #[arg(long, visible_alias = "preview-hold-seconds", value_name = "DURATION")]
    pub preview_hold: Option<String>,
    /// Port of the preview. [default: one that is free]
    #[arg(long, value_name = "PORT", requires = "preview_hold")]
    pub preview_port: Option<u16>,
    /// Address the preview listens on; visitors of any that is not 127.0.0.1 or ::1 need a token,
    /// which the printed link holds. [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", requires = "preview_hold")]
    pub preview_bind: Option<String>,
    /// The address that visitors use, e.g. of a proxy in front: an origin that nothing else uses.
    #[arg(long, value_name = "URL", requires = "preview_hold")]
    pub preview_public_url: Option<String>,
    /// Let nobody look without the token in the printed link, on 127.0.0.1 either.
    #[arg(long, requires = "preview_hold")]
    pub preview_token: bool,
}

/// Puts the preview that was asked for into a request.
pub(crate) fn hold(args: &PreviewArgs, request: &mut RunRequest) -> Result<(), ErrorBody> {
    let Some(given) = &args.preview_hold else {
        return Ok(());
    };
    let ttl_ms = milliseconds(given)?;
    let bind = args.preview_bind.clone();
    let local = bind.as_deref().is_none_or(|bind| {
        bind.parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
    });
    // Made here, so that this process can show the link and the run's journal never has it.
    let token = if args.preview_token || !local {
        Some(crate::preview::Token::random()?.reveal().to_owned())
    } else {
        None
    };
    let preview = PreviewRequest {
        action: None,
        bind,
        port: args.preview_port,
        public_url: args.preview_public_url.clone(),
        token,
        ttl_ms: None,
    };
    match &mut request.hold {
        // It is held for longer anyway: the preview has its own time.
        Some(hold) => {
            let preview = PreviewRequest {
                ttl_ms: Some(ttl_ms),
                ..preview
            };
            hold.preview = Some(preview);
        }
        None => {
            request.hold = Some(Hold {
                ttl_ms,
                max_ttl_ms: ttl_ms,
                idle_ms: None,
                preview: Some(preview),
                identity: None,
                snapshot: None,
            });
        }
    }
    Ok(())
}

fn milliseconds(given: &str) -> Result<u64, ErrorBody> {
    let invalid = |why: &str| {
        let message = format!("--preview-hold {given:?} {why}");
        ErrorBody::new(ErrorCode::LimitInvalid, message)
    };
    let seconds = scaled(given, &[("s", 1), ("m", 60), ("h", 3600)])
        .ok_or_else(|| invalid("must be a number of seconds, or one with s, m or h"))?;
    let longest = longest()?;
    match seconds {
        0 => Err(invalid("must be one second at least")),
        seconds if seconds > longest => Err(invalid(&format!("is longer than {longest} seconds"))
            .hint(format!("the host may allow up to a day with {BOUND}"))),
        seconds => Ok(seconds * 1000),
    }
}

fn longest() -> Result<u64, ErrorBody> {
    let Ok(given) = std::env::var(BOUND) else {
        return Ok(LONGEST);
    };
    let seconds = scaled(&given, &[("s", 1), ("m", 60), ("h", 3600)]);
    match seconds.filter(|seconds| (LONGEST..=HOST_LONGEST).contains(seconds)) {
        Some(seconds) => Ok(seconds),
        None => {
            let message =
                format!("{BOUND} {given:?} must be from {LONGEST} to {HOST_LONGEST} seconds");
            Err(ErrorBody::new(ErrorCode::ConfigInvalid, message))
        }
    }
}

/// Tells where the preview is, as soon as it is open. Talk, in JSON mode too: the document
/// comes when the run is over.
pub(crate) fn announce(output: Output, request: &RunRequest, event: &LifecycleEvent) {
    let is = |name: &str, value: &str| event.data.get(name).is_some_and(|found| found == value);
    if event.kind != EventType::Observed || !is("type", "preview") {
        return;
    }
    let text = |name: &str| event.data.get(name).and_then(Value::as_str);
    let token = request
        .hold
        .as_ref()
        .and_then(|hold| hold.preview.as_ref())
        .and_then(|preview| preview.token.as_deref());
    match (text("status"), text("url")) {
        (Some("open"), Some(url)) => {
            let link = match token {
                Some(token) => format!("{url}/?{}={token}", crate::preview::PARAMETER),
                None => format!("{url}/"),
            };
            let until = text("expiresAt").unwrap_or_default();
            output.note(&format!("preview {link} until {until}"));
        }
        (Some(status @ ("closed" | "expired")), Some(url)) => {
            output.note(&format!("preview {url}/ {status}"));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_bounded() {
        for (given, expected) in [("30", 30_000), ("10m", 600_000), ("1h", 3_600_000)] {
            assert_eq!(milliseconds(given).unwrap(), expected);
        }
        for bad in ["0", "61m", "2h", "-1", "1d", "", "99999999999999999999"] {
            assert_eq!(
                milliseconds(bad).unwrap_err().code,
                ErrorCode::LimitInvalid,
                "{bad}"
            );
        }
    }
}
