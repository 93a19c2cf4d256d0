//! Flags of `run`, and the task that they describe.

use super::activation::ActivationArgs;
use super::follow_up_args::FollowUpArgs;
use super::guest_args::{GuestArgs, StoreArgs};
use super::model::ModelArgs;
use super::network::NetworkArgs;
use super::output::{AgentOutput, Output};
use super::placement::PlacementArgs;
use super::preview::{self, PreviewArgs, Waits};
use super::request::{
    Beside, SizeArgs, absolute, input, policy, real_file, resolve, size, text, timeout,
};
use super::{agents, code_file, duration, mount};
use clap::{Args, Parser};
use serde_json::Value;
use std::path::PathBuf;
use wp_codebox_contracts::{
    CommandCall, ErrorBody, ErrorCode, Hold, LimitsRequest, OuterSandbox, OuterSandboxNeed,
    RunMode, RunRequest, StagedFile, TaskSpec, TaskTexts,
};
use wp_codebox_policy::{HostPrograms, command_words};
use wp_codebox_settings::Settings;

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox run --mount ./my-plugin:/wordpress/wp-content/plugins/my-plugin \\
    --command wordpress.wp-cli --arg command='plugin activate my-plugin' \\
    --wordpress /srv/site --state /var/lib/wp-codebox/www-data
  wp-codebox run --mount ./my-plugin:/workspace/my-plugin \\
    --goal 'Fix the failing settings save' --check 'vendor/bin/phpunit' \\
    --model gpt-5 --model-url https://api.openai.com/v1 \\
    --model-key-env OPENAI_API_KEY
  wp-codebox run --mount ./my-plugin:/workspace/my-plugin \\
    --goal 'Fix the coding style' --agent-success-codes 0,1 \\
    --agent-command 'phpcbf --standard=PSR12 .' \\
    --check 'phpcs --standard=PSR12 .' --json
  wp-codebox run --mount ./my-plugin:/workspace/my-plugin \\
    --follow-up run_0c4f --goal 'Finish the settings save' \\
    --comment 'settings.php:12=rename the option' --with 'add a test' \\
    --model gpt-5 --model-url https://api.openai.com/v1 \\
    --model-key-env OPENAI_API_KEY
  wp-codebox run --mount ./my-plugin:/wordpress/wp-content/plugins/my-plugin \\
    --preview-hold 10m --command wordpress.wp-cli \\
    --arg command='plugin activate my-plugin'

Exit status: 0 succeeded or nothing to do, 1 failed, 3 partial or blocked, 124 timed out, 125 the \
sandbox could not start, 126 denied by policy, 130 cancelled.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub guest: GuestArgs,
    /// Command id to run, see `wp-codebox commands`.
    #[arg(long, value_name = "ID")]
    pub command: Option<String>,
    /// Argument of the command, name=value; may be repeated. code-file=FILE is relative to the
    /// working directory.
    #[arg(long = "arg", value_name = "NAME=VALUE", requires = "command")]
    pub args: Vec<String>,
    /// Task description for the agent.
    #[arg(long, value_name = "TEXT")]
    pub goal: Option<String>,
    /// Agent program with arguments, split like a shell does but run without a shell.
    #[arg(long, value_name = "COMMAND LINE")]
    pub agent_command: Option<String>,
    /// Agent by the name of its preset, see `wp-codebox agents`. Needs a model; the program is
    /// searched for in --agents-dir.
    #[arg(long, value_name = "NAME", conflicts_with = "agent_command")]
    pub agent: Option<String>,
    /// Exit codes of the agent that count as success.
    #[arg(long, value_name = "CODES", value_delimiter = ',', default_value = "0")]
    pub agent_success_codes: Vec<i32>,
    /// Command line to run after the agent in a fresh sandbox; may be repeated. `auto` stands for
    /// the checks that the project brings, such as phpunit.xml.
    #[arg(long = "check", value_name = "COMMAND LINE")]
    pub checks: Vec<String>,
    #[command(flatten)]
    pub activation: ActivationArgs,
    /// Host file that the guest may read: HOST:GUEST below /run/codebox/staged, /workspace or where
    /// else a mount may lie; may be repeated.
    #[arg(long = "staged-file", value_name = "HOST:GUEST")]
    pub staged_files: Vec<String>,
    /// Runtime policy: a JSON file or JSON text.
    #[arg(long, value_name = "FILE|JSON")]
    pub policy: Option<String>,
    #[command(flatten)]
    pub network: NetworkArgs,
    /// Secret from the environment variable NAME of this command: the guest's variable NAME
    /// contains a placeholder, which the egress bridge replaces by the value in requests to these
    /// allowed hosts only; may be repeated.
    #[arg(long = "secret-env", value_name = "NAME=HOST[:PORT][,HOST...]")]
    pub secret_env: Vec<String>,
    /// Also copy the bundle to DIR/<run id>.
    #[arg(long, value_name = "DIR")]
    pub artifacts: Option<PathBuf>,
    /// Wall clock limit of the whole run, such as 90s, 15m or 4h.
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<String>,
    #[command(flatten)]
    pub sizes: SizeArgs,
    /// Limit of concurrent processes.
    #[arg(long, value_name = "N")]
    pub processes: Option<u64>,
    /// Output limit per execution, stdout and stderr together (beyond it only beginning and end are
    /// stored): bytes, or a number with K, M or G.
    #[arg(long, value_name = "SIZE")]
    pub output_limit: Option<String>,
    /// Form of an agent's JSON protocol lines: as steps defined by its preset, or raw. The bundle
    /// always contains the raw lines.
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    pub agent_output: AgentOutput,
    /// Report renames as git renames.
    #[arg(long)]
    pub find_renames: bool,
    /// Additional sandbox program around the launcher, whose own isolation of the guest stays on.
    #[arg(long, value_name = "KIND", value_parser = ["none", "bubblewrap", "gvisor"], default_value = "none")]
    pub outer_sandbox: String,
    /// Path of the program for --outer-sandbox. [default: bwrap or runsc in /usr/bin, /usr/local/bin
    /// or /bin]
    #[arg(long, value_name = "FILE")]
    pub outer_sandbox_program: Option<PathBuf>,
    /// Continue without the program for --outer-sandbox if it is missing; the result states so.
    #[arg(long)]
    pub outer_sandbox_optional: bool,
    /// Keep the sandbox running for this time after its command, for `wp-codebox exec`, such as
    /// 90s, 15m or 4h.
    #[arg(long, value_name = "DURATION")]
    pub hold: Option<String>,
    /// Longest hold time including all extensions. [default: the time of --hold]
    #[arg(long, value_name = "DURATION", requires = "hold")]
    pub hold_max: Option<String>,
    /// During --hold, end the sandbox after this time without use.
    #[arg(long, value_name = "DURATION", requires = "hold")]
    pub hold_idle: Option<String>,
    /// Do not wait for the end: print the id of the run and exit. `runs get` and `runs artifacts`
    /// show its results.
    #[arg(long, conflicts_with = "artifacts")]
    pub detach: bool,
    #[command(flatten)]
    pub preview: PreviewArgs,
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub follow_up: FollowUpArgs,
    #[command(flatten)]
    pub placement: PlacementArgs,
    /// Key of the request: repeated with the same key, it follows the same run and starts no second
    /// one.
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// Without --mount, mount the project around the current directory, whatever it is.
    #[arg(long, hide = true)]
    pub of_project: bool,
    /// Key and value for the provenance, by which other commands recognise the run.
    #[arg(skip)]
    pub purpose: Option<(&'static str, &'static str)>,
}

impl RunArgs {
    /// Returns the arguments of `wp-codebox run` without any option.
    pub(crate) fn plain() -> Result<Self, ErrorBody> {
        #[derive(Parser)]
        struct Plain {
            #[command(flatten)]
            run: RunArgs,
        }
        let parsed = Plain::try_parse_from(["run"]);
        parsed.map(|plain| plain.run).map_err(|e| {
            let message = format!("the default options of `run` cannot be read: {e}");
            ErrorBody::new(ErrorCode::Internal, message)
        })
    }
}

/// Fails for a goal on which no agent works, and for a command line of agent or check that needs a
/// shell. Opens nothing.
pub(crate) fn check_agent(args: &RunArgs) -> Result<(), ErrorBody> {
    for line in args.agent_command.iter().chain(&args.checks) {
        command_words(line)?;
    }
    let has_agent =
        args.agent_command.is_some() || args.agent.is_some() || args.model.model.is_some();
    if args.goal.is_none() || has_agent || args.command.is_some() {
        return Ok(());
    }
    Err(agents::missing(&Settings::resolve(&args.store.paths)?))
}

/// Builds the run request of `run`; errors name the flag. An agent without mounts works on the
/// project around the current directory.
pub(crate) fn build(
    args: &RunArgs,
    settings: &Settings,
    output: Output,
) -> Result<RunRequest, ErrorBody> {
    let mut task = task(args)?;
    let has_agent = args.agent_command.is_some() || args.agent.is_some() || task.model.is_some();
    let mounts = match (args.of_project, has_agent) {
        (true, _) => mount::mounts_or_project(&args.guest)?,
        (false, true) => mount::mounts_or_recognised(&args.guest)?,
        (false, false) => mount::mounts(&args.guest)?,
    };
    mount::announce(output, &mounts);
    task.checks = mount::checks(output, &args.checks, &mounts);
    task.activate = mount::activations(&mounts, args.activation.activate);
    if let Some((key, value)) = args.purpose {
        task.provenance.insert(key.to_owned(), value.into());
    }
    task.mounts = mounts.into_iter().map(|mounted| mounted.request).collect();
    host_programs(&mut task)?;
    let staged = code_file::stage(&mut task.commands, &task.mounts)?;
    task.staged_files.extend(staged);
    let beside = Beside {
        site: &args.store.site,
        model: &args.model,
        network: &args.network,
        settings,
    };
    let mut request = resolve(task, &beside)?;
    args.placement
        .place(&mut request, args.idempotency_key.as_deref())?;
    Ok(request)
}

/// Replaces the host files in the command lines of agent and checks by guest paths.
fn host_programs(task: &mut TaskSpec) -> Result<(), ErrorBody> {
    let mut programs = HostPrograms::default();
    for line in task.agent_command.iter_mut().chain(&mut task.checks) {
        let rewritten = programs.rewrite(line, &task.mounts, &real_file);
        *line = rewritten?;
    }
    task.staged_files.extend(programs.into_files());
    Ok(())
}

/// Returns the task that the flags describe; [`build`] adds the mounts.
pub(crate) fn task(args: &RunArgs) -> Result<TaskSpec, ErrorBody> {
    if args.goal.as_ref().is_some_and(|g| g.trim().is_empty()) {
        return Err(ErrorBody::new(
            ErrorCode::TaskMissing,
            "--goal is empty: describe what the agent should do",
        ));
    }
    let follow_up_of = args.follow_up.field()?;
    if follow_up_of.is_some() && args.goal.is_none() && args.agent_command.is_none() {
        return Err(ErrorBody::new(
            ErrorCode::TaskMissing,
            "--follow-up needs --goal: say what the agent should do next",
        ));
    }
    let staged_files = args
        .staged_files
        .iter()
        .map(|text| staged_file(text))
        .collect::<Result<Vec<_>, _>>()?;
    let goal = match (&args.goal, &args.agent_command) {
        (Some(goal), _) => goal.clone(),
        (None, Some(command)) => format!("Run {command}"),
        (None, None) => String::new(),
    };
    let mut task = TaskSpec {
        texts: TaskTexts::of_goal(goal),
        follow_up_of,
        mode: if args.detach {
            RunMode::Detached
        } else {
            RunMode::Attached
        },
        policy: args.policy.as_deref().map(policy).transpose()?,
        commands: args
            .command
            .iter()
            .map(|command| CommandCall {
                command: command.clone(),
                args: args.args.clone(),
            })
            .collect(),
        hold: hold(args)?,
        agent_command: args.agent_command.clone(),
        agent: args.agent.clone(),
        staged_files,
        secret_env: args.secret_env.clone(),
        services: args.guest.services.services(),
        limits: limits(args)?,
        find_renames: args.find_renames,
        outer_sandbox: outer_sandbox(args)?,
        ..TaskSpec::default()
    };
    if task.agent_command.is_some() {
        task.agent_success_codes
            .clone_from(&args.agent_success_codes);
    }
    args.model.options().fill(&mut task)?;
    let waits = match args.detach {
        true => Waits::UntilReady,
        false => Waits::UntilTheEnd,
    };
    preview::check(&args.preview, waits)?;
    preview::hold(&args.preview, &mut task.hold)?;
    Ok(task)
}

fn outer_sandbox(args: &RunArgs) -> Result<OuterSandbox, ErrorBody> {
    let kind = serde_json::from_value(Value::from(args.outer_sandbox.as_str())).map_err(|_| {
        input(format!(
            "--outer-sandbox {:?} must be none, bubblewrap or gvisor",
            args.outer_sandbox
        ))
    })?;
    let program = args.outer_sandbox_program.as_deref();
    Ok(OuterSandbox {
        kind,
        program: program.map(text).transpose()?,
        need: if args.outer_sandbox_optional {
            OuterSandboxNeed::Preferred
        } else {
            OuterSandboxNeed::Required
        },
    })
}

fn staged_file(given: &str) -> Result<StagedFile, ErrorBody> {
    let at = given
        .rfind(":/")
        .filter(|at| *at > 0)
        .ok_or_else(|| input(format!("--staged-file {given:?} must be HOST:GUEST, a path on this host and an absolute path in the sandbox")))?;
    Ok(StagedFile {
        source: absolute(&given[..at])?,
        target: given[at + 1..].to_owned(),
    })
}

fn hold(args: &RunArgs) -> Result<Option<Hold>, ErrorBody> {
    let Some(given) = &args.hold else {
        return Ok(None);
    };
    let time = |flag, given: &str| duration::positive(ErrorCode::LimitInvalid, flag, given);
    let ttl_ms = time("--hold", given)?;
    let other = |flag, given: &Option<String>| given.as_deref().map(|g| time(flag, g)).transpose();
    let max_ttl_ms = other("--hold-max", &args.hold_max)?.unwrap_or(ttl_ms);
    if max_ttl_ms < ttl_ms {
        return Err(ErrorBody::new(
            ErrorCode::LimitInvalid,
            "--hold-max is less than --hold: it must include --hold and all extensions",
        ));
    }
    Ok(Some(Hold {
        ttl_ms,
        max_ttl_ms,
        idle_ms: other("--hold-idle", &args.hold_idle)?,
        preview: None,
        identity: None,
        snapshot: None,
    }))
}

fn limits(args: &RunArgs) -> Result<LimitsRequest, ErrorBody> {
    Ok(LimitsRequest {
        wall_clock_ms: timeout(args.timeout.as_deref())?,
        processes: args.processes,
        output_bytes: size("--output-limit", args.output_limit.as_deref())?,
        ..args.sizes.limits()?
    })
}
