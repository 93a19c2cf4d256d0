//! `wp-codebox cluster`: sets up a message server for a cluster, prints permissions of accounts, writes
//! which cluster this host uses, lists nodes, and removes what no run needs any more.

mod access;
mod args;
mod configure;
mod gc;

pub(crate) use access::{options_for, options_of};
pub(crate) use args::ClusterCommand;

use args::{HostsArgs, PermissionsArgs, SetupArgs};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use wp_codebox_cli::columns::{Column, table, terminal};
use wp_codebox_cli::output::Output;
use wp_codebox_cluster::bus::Bus as _;
use wp_codebox_cluster::host::HostRecord;
use wp_codebox_cluster::names::SubmitterName;
use wp_codebox_cluster::nats::{
    Limits, NatsBus, NatsOptions, Party, Setup, SetupReport, Shrink, permissions, setup,
};
use wp_codebox_contracts::{ErrorBody, schema_id};
use wp_codebox_runs::read_cluster_config;
use wp_codebox_runtime::StateDir;
use wp_codebox_settings::{PathArgs, Settings};

/// Time in which a node must acknowledge a message or report progress, else the server delivers the
/// message again.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// Default of the maximum size of one object in MiB.
const LARGEST_OBJECT: u64 = 2048;
/// Bytes of a mebibyte.
const MIB: u64 = 1024 * 1024;

pub(crate) fn main(output: &Output, command: &ClusterCommand) -> ExitCode {
    let (name, done) = match command {
        ClusterCommand::Setup(args) => ("cluster setup", set_up(output, args)),
        ClusterCommand::Permissions(args) => {
            ("cluster permissions", print_permissions(output, args))
        }
        ClusterCommand::Configure(args) => {
            ("cluster configure", configure::configure(output, args))
        }
        ClusterCommand::Hosts(args) => ("cluster hosts", hosts(output, args)),
        ClusterCommand::Gc(args) => ("cluster gc", gc::gc(output, args)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure(name, &error),
    }
}

fn set_up(output: &Output, args: &SetupArgs) -> Result<(), ErrorBody> {
    let options = options_for(&args.nats, Party::Operator)?;
    let wanted = Setup {
        replicas: args.replicas,
        capabilities: args::capabilities(&args.capabilities)?,
        submitters: args::submitters(&args.submitters)?,
        limits: Limits {
            queue_messages: args.queue_messages,
            task_bytes: args.task_space.saturating_mul(MIB),
            record_bytes: args.record_space.saturating_mul(MIB),
            objects_bytes: args.object_space.saturating_mul(MIB),
            object_bytes: args
                .object_size
                .unwrap_or(LARGEST_OBJECT.min(args.object_space))
                .saturating_mul(MIB),
        },
        answer_wait: ANSWER_WAIT,
        shrink: match args.shrink {
            true => Shrink::Allow,
            false => Shrink::Refuse,
        },
    };
    let report = setup(&options, &wanted)?;
    let mut document = json!({"schema": schema_id::CLUSTER_SETUP, "success": true});
    if let (Value::Object(all), Value::Object(members)) = (&mut document, json!(report)) {
        all.extend(members);
    }
    output.answer(&document, &setup_lines(&report));
    Ok(())
}

fn setup_lines(report: &SetupReport) -> Vec<String> {
    let groups = [
        ("created", &report.created),
        ("updated", &report.updated),
        ("unchanged", &report.unchanged),
        ("kept", &report.kept),
    ];
    groups
        .into_iter()
        .flat_map(|(what, names)| names.iter().map(move |name| format!("{what} {name}")))
        .collect()
}

fn print_permissions(output: &Output, args: &PermissionsArgs) -> Result<(), ErrorBody> {
    output.document(&permissions(&args.party()?).to_config());
    Ok(())
}

fn hosts(output: &Output, args: &HostsArgs) -> Result<(), ErrorBody> {
    let options = match (&args.submitter, args.nats.is_absent()) {
        (None, true) => configured(&args.paths)?,
        (None, false) => options_for(&args.nats, Party::Operator)?,
        (Some(name), _) => options_for(&args.nats, Party::Submitter(SubmitterName::new(name)?))?,
    };
    let found = NatsBus::connect(&options).and_then(|bus| bus.hosts())?;
    let hosts: Vec<HostRecord> = found.into_iter().map(|host| host.value).collect();
    let document = json!({
        "schema": schema_id::CLUSTER_HOST_LIST, "success": true, "hosts": hosts,
    });
    output.answer(&document, &host_lines(&hosts));
    Ok(())
}

/// Returns the options of a connection to the configured cluster. The process becomes the owner of
/// the state directory, who may read the credentials.
fn configured(paths: &PathArgs) -> Result<NatsOptions, ErrorBody> {
    let settings = Settings::resolve(paths)?;
    let state = StateDir::open(&settings.state_dir)?;
    state.become_owner()?;
    let cluster = read_cluster_config(&state)?.cluster;
    let submitter = SubmitterName::new(&cluster.submitter)?;
    options_of(&cluster, Party::Submitter(submitter))
}

fn host_lines(hosts: &[HostRecord]) -> Vec<String> {
    let column = |heading, spare| Column { heading, spare };
    let columns = [
        column("NODE", false),
        column("RUNS", false),
        column("CAPACITY", false),
        column("STATE", false),
        column("HEARTBEAT", true),
        column("VERSION", true),
        column("CAPABILITIES", false),
    ];
    let rows: Vec<Vec<String>> = hosts
        .iter()
        .map(|host| {
            let capabilities: Vec<&str> = host.capabilities.iter().map(|it| it.as_str()).collect();
            vec![
                host.claimant.node.to_string(),
                host.running.to_string(),
                host.capacity.to_string(),
                match host.draining {
                    true => "draining".to_owned(),
                    false => "ready".to_owned(),
                },
                host.beat.to_string(),
                host.version.clone(),
                capabilities.join(" "),
            ]
        })
        .collect();
    table(&columns, &rows, terminal())
}
