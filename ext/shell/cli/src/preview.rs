//! Preview flags that several commands share.

use super::duration;
use super::output::Output;
use clap::Args;
use serde_json::Value;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, EventType, Hold, LifecycleEvent, PreviewLogin, PreviewRequest, RunRequest,
};

/// Maximum hold time in seconds, unless the environment variable [`BOUND`] allows more.
const LONGEST: u64 = 3600;
/// Highest value of [`BOUND`], in seconds.
const HOST_LONGEST: u64 = 86_400;
/// Environment variable in which the host sets the maximum hold time in seconds.
const BOUND: &str = "WP_CODEBOX_PREVIEW_HOLD_MAX_SECONDS";

/// Heading of these options in the help.
const HEADING: &str = "Preview";

/// Preview of the site while the sandbox is held.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PreviewArgs {
    /// Keep the sandbox running for this time after its work, with its site on an address of this
    /// host, such as 90s or 15m; at most an hour unless $WP_CODEBOX_PREVIEW_HOLD_MAX_SECONDS allows
    /// more. Visitors' changes in the database are lost with the sandbox; their changes in mounts
    /// are part of its change.
    #[arg(long, value_name = "DURATION", group = "preview_time", help_heading = HEADING)]
    pub preview_hold: Option<String>,
    /// The time of --preview-hold in seconds; s, m and h are accepted too.
    #[arg(long, value_name = "SECONDS", group = "preview_time", help_heading = HEADING)]
    pub preview_hold_seconds: Option<String>,
    /// Wait until the hold time is over, as commands that do not detach do anyway.
    #[arg(long, requires = "preview_time", hide = true, help_heading = HEADING)]
    pub preview_hold_blocking: bool,
    /// Port of the preview. [default: a free port]
    #[arg(long, value_name = "PORT", requires = "preview_time", help_heading = HEADING)]
    pub preview_port: Option<u16>,
    /// Listen address of the preview; with any other than 127.0.0.1 or ::1 visitors need a token,
    /// which the printed link contains. [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", requires = "preview_time", help_heading = HEADING)]
    pub preview_bind: Option<String>,
    /// Origin that visitors use, e.g. of a reverse proxy; no other site may use the same origin.
    #[arg(long, value_name = "URL", requires = "preview_time", help_heading = HEADING)]
    pub preview_public_url: Option<String>,
    /// Require the token of the printed link on 127.0.0.1 as well.
    #[arg(long, requires = "preview_time", help_heading = HEADING)]
    pub preview_token: bool,
    /// Also print a link that signs its first visitor in to wp-admin: as USER, or as the first
    /// administrator of the guest's site.
    #[arg(long, value_name = "USER", num_args = 0..=1, require_equals = true,
        default_missing_value = "", requires = "preview_time", help_heading = HEADING)]
    pub preview_login: Option<String>,
    /// Not supported: a lease that the caller made.
    #[arg(long, value_name = "JSON", hide = true, help_heading = HEADING)]
    pub preview_lease_json: Option<String>,
    /// Not supported: a lease in a process of its own.
    #[arg(long, value_name = "VALUE", num_args = 0..=1, hide = true, help_heading = HEADING)]
    pub preview_lease: Option<Option<String>>,
}

/// Whether a command waits for the end of the hold time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    UntilTheEnd,
    UntilReady,
}

/// Refuses preview options that would have no effect, each with the reason.
///
/// # Errors
/// `wp_codebox_input_invalid` with the name of the option and what to use instead.
pub(crate) fn check(args: &PreviewArgs, waits: Waits) -> Result<(), ErrorBody> {
    let refused = |why: &str| Err(ErrorBody::new(ErrorCode::InputInvalid, why));
    if args.preview_lease_json.is_some() {
        return refused(
            "--preview-lease-json: a lease cannot be given, because the supervisor of the run makes it; set --preview-hold-seconds, --preview-port, --preview-bind and --preview-public-url, and read the lease with `wp-codebox preview-lease status`",
        );
    }
    if args.preview_lease.is_some() {
        return refused(
            "--preview-lease: a preview has no process of its own, because its run serves it; start the sandbox with `wp-codebox boot` or `wp-codebox run --detach` and --preview-hold-seconds, then use `wp-codebox preview-lease status|release`",
        );
    }
    if args.preview_hold_blocking && waits == Waits::UntilReady {
        return refused(
            "--preview-hold-blocking: this command exits when the sandbox is ready; `wp-codebox run` without --detach waits for the end of the preview",
        );
    }
    Ok(())
}

/// Adds the requested preview to the request.
pub(crate) fn hold(args: &PreviewArgs, held: &mut Option<Hold>) -> Result<(), ErrorBody> {
    check(args, Waits::UntilTheEnd)?;
    let Some(ttl_ms) = args.time()? else {
        return Ok(());
    };
    let bind = args.preview_bind.clone();
    let local = bind.as_deref().is_none_or(|bind| {
        bind.parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
    });
    // Create the token in this process: it prints the link, and the journal never contains the
    // token.
    let token = if args.preview_token || !local {
        Some(
            wp_codebox_proxy::preview::Token::random()?
                .reveal()
                .to_owned(),
        )
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
        login: match &args.preview_login {
            None => None,
            Some(user) => Some(PreviewLogin {
                key: Some(
                    wp_codebox_proxy::preview::Token::random()?
                        .reveal()
                        .to_owned(),
                ),
                user: Some(user.clone()).filter(|user| !user.is_empty()),
            }),
        },
    };
    match held {
        // Another flag already holds the sandbox and sets its hold time. So the preview time ends
        // the preview, but not the hold.
        Some(hold) => {
            let preview = PreviewRequest {
                ttl_ms: Some(ttl_ms),
                ..preview
            };
            hold.preview = Some(preview);
        }
        None => {
            *held = Some(Hold {
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

impl PreviewArgs {
    /// Returns the hold time in milliseconds, if requested.
    ///
    /// # Errors
    /// `wp_codebox_limit_invalid` if the time is shorter than a second or longer than the host
    /// allows, `wp_codebox_config_invalid` if the maximum in [`BOUND`] is not valid.
    fn time(&self) -> Result<Option<u64>, ErrorBody> {
        let invalid = |why: &str| ErrorBody::new(ErrorCode::LimitInvalid, why);
        let ttl_ms = match (&self.preview_hold, &self.preview_hold_seconds) {
            (Some(given), _) => duration::read(ErrorCode::LimitInvalid, "--preview-hold", given)?,
            (None, Some(given)) => match given.parse::<u64>() {
                Ok(seconds) => seconds.saturating_mul(1000),
                Err(_) => duration::read(ErrorCode::LimitInvalid, "--preview-hold-seconds", given)?,
            },
            (None, None) => return Ok(None),
        };
        let longest = longest()?;
        if ttl_ms < 1000 {
            return Err(invalid("a preview must stay open for at least one second"));
        }
        if ttl_ms > longest * 1000 {
            let why = format!("a preview can stay open for {longest} seconds at most");
            return Err(invalid(&why).hint(format!(
                "to allow more, up to a day, set the environment variable {BOUND} to a number of seconds"
            )));
        }
        Ok(Some(ttl_ms))
    }
}

fn longest() -> Result<u64, ErrorBody> {
    let Ok(given) = std::env::var(BOUND) else {
        return Ok(LONGEST);
    };
    let seconds = given.parse().ok();
    seconds
        .filter(|seconds| (LONGEST..=HOST_LONGEST).contains(seconds))
        .ok_or_else(|| {
            let message = format!(
                "{BOUND} {given:?} must be a number of seconds from {LONGEST} to {HOST_LONGEST}"
            );
            ErrorBody::new(ErrorCode::ConfigInvalid, message)
        })
}

/// Returns the link to the preview if the event reports that it is open. The link contains the
/// token, which is not in the journal.
pub(crate) fn link(request: &RunRequest, event: &LifecycleEvent) -> Option<String> {
    let (status, url) = of_preview(event)?;
    let preview = request.hold.as_ref()?.preview.as_ref()?;
    (status == "open").then(|| match &preview.token {
        Some(token) => format!("{url}/?{}={token}", wp_codebox_proxy::preview::PARAMETER),
        None => format!("{url}/"),
    })
}

/// Returns the link that signs its visitor in to wp-admin, if it was requested.
pub(crate) fn login(request: &RunRequest, link: &str) -> Option<String> {
    let preview = request.hold.as_ref()?.preview.as_ref()?;
    let key = preview.login.as_ref()?.key.as_ref()?;
    let joint = if link.contains('?') { '&' } else { '?' };
    Some(format!(
        "{link}{joint}{}={key}",
        wp_codebox_proxy::preview::LOGIN_PARAMETER
    ))
}

/// Returns true if the request asks for a preview.
pub(crate) fn expected(request: &RunRequest) -> bool {
    let hold = request.hold.as_ref();
    hold.is_some_and(|hold| hold.preview.is_some())
}

/// Returns status and address of the preview if the event is about one.
fn of_preview(event: &LifecycleEvent) -> Option<(&str, &str)> {
    let text = |name: &str| event.data.get(name).and_then(Value::as_str);
    if event.kind != EventType::Observed || text("type") != Some("preview") {
        return None;
    }
    text("status").zip(text("url"))
}

/// Prints the link to the preview as soon as it is open. In JSON mode the link is a message too,
/// because the document is printed only when the run ends.
pub(crate) fn announce(output: Output, request: &RunRequest, event: &LifecycleEvent) {
    if let Some(link) = link(request, event) {
        let until = event.data.get("expiresAt").and_then(Value::as_str);
        output.note(&format!(
            "preview {link} until {}",
            until.unwrap_or_default()
        ));
        let login = login(request, &link);
        if let Some(login) = &login {
            output.note(&format!("login, works once: {login}"));
        }
        if output.open_links {
            open(output, login.as_deref().unwrap_or(&link));
        }
    } else if let Some((status @ ("closed" | "expired"), url)) = of_preview(event) {
        output.note(&format!("preview {url}/ {status}"));
    }
}

/// Opens the link with the desktop's browser. The link contains the access token; other processes
/// of this host can read it in the argument list of `xdg-open` until that ends.
fn open(output: Output, link: &str) {
    let started = std::process::Command::new("xdg-open")
        .arg(link)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn();
    if let Err(error) = started {
        output.note(&format!("no browser was opened: xdg-open: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(flags: &[&str]) -> Result<Option<u64>, ErrorBody> {
        #[derive(clap::Parser)]
        struct Flags {
            #[command(flatten)]
            preview: PreviewArgs,
        }
        let flags = std::iter::once(&"run").chain(flags);
        <Flags as clap::Parser>::parse_from(flags).preview.time()
    }

    #[test]
    fn preview_options_without_an_effect_are_refused_by_name() {
        #[derive(clap::Parser)]
        struct Flags {
            #[command(flatten)]
            preview: PreviewArgs,
        }
        let refused = |flags: &[&str], waits| {
            let flags = [&["run", "--preview-hold", "9s"], flags].concat();
            let args = <Flags as clap::Parser>::parse_from(flags).preview;
            check(&args, waits).err().map(|error| error.message)
        };
        for (flag, value) in [("--preview-lease-json", "{}"), ("--preview-lease", "x")] {
            let why = refused(&[flag, value], Waits::UntilTheEnd).unwrap();
            assert!(why.starts_with(&format!("{flag}: ")), "{why}");
        }
        assert!(refused(&["--preview-lease"], Waits::UntilTheEnd).is_some());
        assert!(refused(&["--preview-hold-blocking"], Waits::UntilReady).is_some());
        assert_eq!(
            refused(&["--preview-hold-blocking"], Waits::UntilTheEnd),
            None
        );
        assert_eq!(refused(&[], Waits::UntilReady), None);
    }

    #[test]
    fn preview_hold_time_outside_its_bounds_is_rejected() {
        for (given, expected) in [("30s", 30_000), ("10m", 600_000), ("1h", 3_600_000)] {
            assert_eq!(time(&["--preview-hold", given]).unwrap(), Some(expected));
        }
        for (given, expected) in [("30", 30_000), ("30s", 30_000), ("2m", 120_000)] {
            let flags = ["--preview-hold-seconds", given];
            assert_eq!(time(&flags).unwrap(), Some(expected), "{given}");
        }
        assert_eq!(time(&[]).unwrap(), None);
        for bad in ["0s", "999ms", "61m", "2h", "30", "99999999999999999999s"] {
            assert_eq!(
                time(&["--preview-hold", bad]).unwrap_err().code,
                ErrorCode::LimitInvalid,
                "{bad}"
            );
        }
        for bad in ["0", "3601", "18446744073709551615"] {
            assert_eq!(
                time(&["--preview-hold-seconds", bad]).unwrap_err().code,
                ErrorCode::LimitInvalid,
                "{bad}"
            );
        }
    }
}
