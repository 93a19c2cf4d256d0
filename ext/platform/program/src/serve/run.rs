//! Starts the server of `wp-codebox serve` and runs it until a signal stops it.

use super::args::ServeArgs;
use super::host::Machine;
use super::native::{Native, Runner};
use super::remote::RemoteSpec;
use super::socket_group;
use super::source_roots::SourceRoots;
use super::token::directory;
use crate::ledger::{PRICES, read_prices};
use std::sync::Arc;
use tokio::sync::Notify;
use wp_codebox_cli::output::Output;
use wp_codebox_contracts::{ErrorBody, ErrorCode, SiteId};
use wp_codebox_ledger::{Ledger, LedgerFiles};
use wp_codebox_routing::{ArchitectureName, ExtensionId, HostId, HostRecord, RegionName};
use wp_codebox_runs::signals::{on_end, unheard_signals};
use wp_codebox_runtime::StateDir;
use wp_codebox_service::{Extension, Listener, OtlpEndpoint, Service, ServiceConfig, SocketAccess};
use wp_codebox_settings::Settings;

/// Name of the unix socket in the directory of the service.
const SOCKET: &str = "api.sock";
/// Maximum number of sandboxes that this service creates in another service of `--remote`. The
/// other service also applies its own limit.
const REMOTE_CAPACITY: u32 = 1024;
/// Environment variable with the URL of an OpenTelemetry collector.
const COLLECTOR: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

pub(super) fn run(output: Output, args: &ServeArgs) -> Result<(), ErrorBody> {
    let settings = Settings::for_guests(&args.paths, None, output)?;
    let site = SiteId::new(&args.site).map_err(|e| invalid(format!("--site: {e}")))?;
    let state = StateDir::open(&settings.state_dir)?;
    let remotes = args.remotes.iter().map(|given| RemoteSpec::read(given));
    let remotes = remotes.collect::<Result<Vec<_>, _>>()?;
    // Do the following before giving up root: only root may be able to read the price table and the
    // private key, and to listen on a port below 1024.
    let usual = state.path().join(PRICES);
    // The owner of the state directory can replace every file in it by a link.
    let found = state.as_owner(|| usual.exists().then(|| read_prices(&usual)));
    let prices = match (&args.prices, found?) {
        (Some(path), _) => Some(read_prices(path)?),
        (None, Some(prices)) => Some(prices?),
        (None, None) if args.credits => {
            return Err(invalid(format!(
                "--credits needs prices: add --prices, or write the price table to {}",
                usual.display()
            )));
        }
        (None, None) => None,
    };
    let access = match (&args.socket, &args.socket_group) {
        (Some(socket), Some(group)) => socket_group::prepare(socket, group, &state)?,
        (_, None) | (None, _) => SocketAccess::Owner,
    };
    let mut listeners = Vec::new();
    if let (Some(address), Some(certificate), Some(key)) =
        (args.listen, &args.tls_cert, &args.tls_key)
    {
        let listener = Listener::tls(address, certificate, key)?;
        output.note(&format!(
            "listening on https://{}",
            listener.address().unwrap_or(address)
        ));
        listeners.push(listener);
    }
    let runner = || match &args.runner_socket {
        Some(path) => Runner::Socket(path.clone()),
        None => Runner::Child,
    };
    // Give up root for good, before there is a second thread: the system calls change only the
    // calling thread.
    let group = runner().group(state.owner());
    state.become_owner_with(group)?;
    wp_codebox_backend_native::raise_open_files();
    let directory = directory(&state)?;
    let socket = match &args.socket {
        Some(socket) => socket.clone(),
        None => directory.join(SOCKET),
    };
    let roots = SourceRoots::new(&args.source_roots)?;
    let mut config = ServiceConfig::new(directory);
    config.otlp = collector(args)?;
    for destination in &args.webhook_allow {
        let allowed = config.webhook_targets.allow(destination);
        allowed.map_err(|error| invalid(format!("--webhook-allow: {}", error.message)))?;
    }
    config.prices = prices;
    if args.credits {
        let files = LedgerFiles::in_state(state.path());
        config.ledger = Some(Ledger::open(&files)?);
    }
    let mut here = HostRecord::new(HostId::local(), ExtensionId::native(), args.capacity);
    here.region = args
        .region
        .as_deref()
        .map(RegionName::new)
        .transpose()
        .map_err(|e| invalid(format!("--region: {e}")))?;
    config.hosts.push(here);
    // A supervisor counts runs and sandboxes together. The service counts them apart, so that
    // sandboxes take no run from another actor.
    let max_runs = args.capacity + config.bounds.runs;
    let native = Native::new(
        settings.clone(),
        site.clone(),
        runner(),
        roots.clone(),
        max_runs,
    )?;
    let mut extensions: Vec<Arc<dyn Extension>> = vec![Arc::new(native)];
    let architecture = ArchitectureName::new(std::env::consts::ARCH)
        .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
    for remote in &remotes {
        let id = ExtensionId::new(&remote.id)
            .map_err(|e| invalid(format!("--remote {}: {e}", remote.id)))?;
        let record = HostRecord::new(host(&remote.id)?, id.clone(), REMOTE_CAPACITY);
        config.hosts.push(record);
        let remote = remote.extension(id, architecture.clone(), state.owner())?;
        extensions.push(Arc::new(remote));
    }
    let machine = Machine::new(settings, site, runner(), roots, max_runs)?;
    let service = Service::open(config, extensions, Arc::new(machine))?;
    // Bind after `Service::open` has locked the records: a second service fails there and does not
    // replace the socket of the first.
    listeners.push(Listener::unix(&socket, access)?);
    output.note(&format!("listening on {}", socket.display()));
    let stop = Arc::new(Notify::new());
    let signalled = Arc::clone(&stop);
    on_end(move || signalled.notify_one()).map_err(|e| unheard_signals(&e))?;
    service.run(listeners, async move {
        stop.notified().await;
        output.note("stopping; sandboxes go on");
    })
}

/// Returns the collector to which spans are sent. An empty environment variable counts as unset, as
/// OpenTelemetry specifies.
fn collector(args: &ServeArgs) -> Result<Option<OtlpEndpoint>, ErrorBody> {
    let named = match &args.otlp {
        Some(url) => Some(url.clone()),
        None => std::env::var(COLLECTOR).ok().filter(|url| !url.is_empty()),
    };
    named.map(|url| OtlpEndpoint::parse(&url)).transpose()
}

fn invalid(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

fn host(name: &str) -> Result<HostId, ErrorBody> {
    HostId::new(name).map_err(|e| invalid(e.to_string()))
}
