//! `wp-codebox boot`: starts and holds a WordPress sandbox, after running a blueprint if one is
//! given.

use super::guest_args::{GuestArgs, StoreArgs};
use super::output::Output;
use super::preview::{self, PreviewArgs, Waits};
use super::recipe::read_blueprint;
use super::request::{self, SizeArgs};
use super::{duration, mount};
use clap::Args;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, Hold, LimitsRequest, RunMode, RunRequest, TaskSpec, Workflow,
};
use wp_codebox_recipe::blueprint;
use wp_codebox_runs::supervisor;
use wp_codebox_settings::Settings;

/// Schema id of the output of `boot`.
const BOOT: &str = "wp-codebox/boot/v1";
/// Maximum hold time in milliseconds: a day, which is also the maximum duration of a run.
const LONGEST: u64 = 24 * 3_600_000;
/// Time limit for the blueprint before the hold starts, in milliseconds.
const SETUP: u64 = 10 * 60_000;

/// Arguments of `boot`.
#[derive(Debug, Args)]
#[command(after_help = "\
The sandbox outlives this command: it ends after the time of --hold or with `wp-codebox runs cancel`.

Examples:
  wp-codebox boot --wordpress /srv/site --hold 30m --memory 2G --disk 1G
  wp-codebox boot --mount ./my-plugin:/wordpress/wp-content/plugins/my-plugin \\
    --blueprint blueprint.json --json
  wp-codebox exec run_1f -- wp plugin list

Exit status: 0 the sandbox is ready, 1 the blueprint failed or is not valid, 125 the sandbox \
could not start, 126 denied by policy.")]
pub(crate) struct BootArgs {
    #[command(flatten)]
    pub guest: GuestArgs,
    /// Blueprint to run before the sandbox is ready: a JSON file or JSON text, see `wp-codebox
    /// validate-blueprint`.
    #[arg(long, value_name = "FILE|JSON")]
    pub blueprint: Option<String>,
    /// Time to keep the sandbox running: seconds, or a number with s, m or h.
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    pub hold: String,
    /// Runtime policy: a JSON file or JSON text. [default: no network, no secrets]
    #[arg(long, value_name = "FILE|JSON")]
    pub policy: Option<String>,
    #[command(flatten)]
    pub sizes: SizeArgs,
    #[command(flatten)]
    pub preview: PreviewArgs,
    #[command(flatten)]
    pub store: StoreArgs,
}

pub(crate) fn boot(output: &Output, args: &BootArgs) -> ExitCode {
    let mut shown = None;
    let settings = Settings::for_guests(&args.store.paths, args.guest.wp.as_deref(), *output);
    let started = settings
        .and_then(|settings| build(args, &settings))
        .and_then(|request| {
            let ready = supervisor::until_ready(&request, |event| {
                preview::announce(*output, &request, event);
                if let Some(link) = preview::link(&request, event) {
                    let mut record = event.data.clone();
                    if let Some(login) = preview::login(&request, &link) {
                        record.insert("loginUrl".to_owned(), json!(login));
                    }
                    record.insert("accessUrl".to_owned(), json!(link));
                    shown = Some(record);
                }
            })?;
            Ok((request, ready))
        });
    match started {
        Err(error) => output.failure("boot", &error),
        Ok((request, ready)) => {
            let mut document = document(&request, &ready);
            if let Some(preview) = shown {
                document["preview"] = json!(preview);
            }
            if output.is_json() {
                output.document(&document);
            } else {
                output.line(request.run_id.as_str());
                output.note("ready");
                if let Some(text) = ready.get("expiresAt").and_then(Value::as_str) {
                    output.note(&format!("  expiresAt {text}"));
                }
            }
            ExitCode::SUCCESS
        }
    }
}

fn document(request: &RunRequest, ready: &Map<String, Value>) -> Value {
    let mut document = json!({
        "success": true,
        "schema": BOOT,
        "id": request.run_id,
        "site": request.site,
        "state": "ready",
        "ready": ready,
    });
    if let Some(hold) = &request.hold {
        document["hold"] = json!({"ttlMs": hold.ttl_ms, "maxTtlMs": hold.max_ttl_ms});
    }
    document
}

fn input(message: String) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

fn build(args: &BootArgs, settings: &Settings) -> Result<RunRequest, ErrorBody> {
    let ttl_ms = duration::positive(ErrorCode::LimitInvalid, "--hold", &args.hold)?;
    if ttl_ms > LONGEST {
        let message = "--hold is longer than a day; choose at most 24h";
        return Err(ErrorBody::new(ErrorCode::LimitInvalid, message));
    }
    let policy = args.policy.as_deref().map(request::policy).transpose()?;
    let mut spec = TaskSpec {
        mode: RunMode::Detached,
        policy,
        mounts: mount::mounts(&args.guest)?
            .into_iter()
            .map(|mounted| mounted.request)
            .collect(),
        workflow: workflow(args)?,
        services: args.guest.services.services(),
        hold: Some(Hold {
            ttl_ms,
            max_ttl_ms: ttl_ms,
            idle_ms: None,
            preview: None,
            identity: None,
            snapshot: None,
        }),
        limits: LimitsRequest {
            wall_clock_ms: Some((ttl_ms + SETUP).min(LONGEST)),
            ..args.sizes.limits()?
        },
        provenance: Map::from_iter([("requester".to_owned(), Value::from("command-line"))]),
        ..TaskSpec::default()
    };
    preview::check(&args.preview, Waits::UntilReady)?;
    preview::hold(&args.preview, &mut spec.hold)?;
    request::request(spec, &args.store.site, settings)
}

/// Reads the blueprint; rejects it if any part is unsupported.
fn workflow(args: &BootArgs) -> Result<Option<Workflow>, ErrorBody> {
    let Some(given) = &args.blueprint else {
        return Ok(None);
    };
    let document = read_blueprint(given)?.map_err(|why| input(format!("--blueprint: {why}")))?;
    let judged = blueprint(&document);
    let refused: Vec<String> = judged
        .rows
        .iter()
        .filter_map(|row| Some(format!("{}: {}", row.path, row.reason.as_ref()?)))
        .collect();
    match refused.first() {
        None => Ok(Some(judged.workflow())),
        Some(first) => {
            let message = format!("the blueprint contains an unsupported part: {first}");
            Err(ErrorBody::new(ErrorCode::RecipeInvalid, message)
                .with("issues", refused)
                .hint("wp-codebox validate-blueprint lists every unsupported part"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn limits(flags: &[&str]) -> Result<LimitsRequest, ErrorBody> {
        let all = ["wp-codebox", "boot", "--wordpress", "/srv/wordpress"];
        let all = all.iter().chain(flags);
        match Cli::<crate::HandedOver>::try_parse_from(all)
            .unwrap()
            .command
        {
            Command::Boot(args) => {
                let settings = Settings::resolve(&args.store.paths).unwrap();
                build(&args, &settings).map(|request| request.limits)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn boot_flags_memory_and_disk_set_the_requested_limits() {
        let plain = limits(&[]).unwrap();
        assert_eq!((plain.memory_bytes, plain.disk_bytes), (None, None));
        let asked = limits(&["--memory", "2G", "--disk", "768M"]).unwrap();
        assert_eq!(asked.memory_bytes, Some(2 << 30));
        assert_eq!(asked.disk_bytes, Some(768 << 20));
        assert_eq!(asked.wall_clock_ms, plain.wall_clock_ms);
        for (given, milli) in [("2", 2000), ("1.5", 1500), ("0.05", 50), (".25", 250)] {
            let asked = limits(&["--cpus", given]).unwrap();
            assert_eq!(asked.cpu_milli, Some(milli), "{given}");
        }
        for given in [
            "",
            ".",
            "0",
            "0.01",
            "1.2345",
            "1e3",
            "all",
            "99999999999999999999",
        ] {
            let refused = limits(&["--cpus", given]).unwrap_err();
            assert!(refused.message.starts_with("--cpus"), "{}", refused.message);
        }
        let refused = limits(&["--disk", "much"]).unwrap_err();
        assert_eq!(refused.code, ErrorCode::LimitInvalid);
        assert!(refused.message.starts_with("--disk"), "{}", refused.message);
    }
}
