//! Arguments of `serve`. The doc comments are the help texts.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use wp_codebox_settings::PathArgs;

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --listen only this machine reaches the service. On the unix socket, root and the owner of \
the state directory are administrators; every other client needs a token of `wp-codebox token`.

When root starts the service, its process switches for good to the user that owns the state \
directory. Its supervisors then have that user's rights, unless --runner-socket names a service of \
root that starts them. SIGTERM, SIGINT and SIGHUP stop the service gracefully: requests in progress \
get time to end, sandboxes go on, and the next start finds them.

A profile's secrets come from the files STATE/secrets/NAME, mode 0600.

Examples:
  wp-codebox serve
  curl --unix-socket ~/.local/state/wp-codebox/service/api.sock \\
    http://localhost/v1/sandboxes -H 'Prefer: wait=60' \\
    -H 'Content-Type: application/json' -d '{\"profile\": \"profile.shop\"}'
  wp-codebox serve --listen 0.0.0.0:8443 --tls-cert cert.pem \\
    --tls-key key.pem --source-root /srv/plugins
  wp-codebox serve --remote far=https://far.example:8443,/etc/far-token

Exit status: 0 after a graceful stop; 1 for wrong usage; 125 when it cannot start, for example \
because another service uses the state directory.")]
pub(crate) struct ServeArgs {
    /// Print the description of the API (OpenAPI 3.1) and exit.
    #[arg(long, exclusive = true)]
    pub openapi: bool,
    /// Path of the unix socket, mode 0600. [default: STATE/service/api.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Group whose members may connect to the unix socket, with tokens (mode 0660). Its directory
    /// is made with mode 2750 if it does not exist; it lies outside of the state directory.
    #[arg(long, value_name = "GROUP", requires = "socket")]
    pub socket_group: Option<String>,
    /// Also listen on this TCP address; only with TLS, and every client needs a token.
    #[arg(long, value_name = "ADDRESS:PORT", requires_all = ["tls_cert", "tls_key"])]
    pub listen: Option<SocketAddr>,
    /// Certificate chain for --listen, PEM.
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate, PEM; readable only by its owner.
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub tls_key: Option<PathBuf>,
    /// Use another `wp-codebox serve` as the extension (kind of sandbox) with this id: its address
    /// (https://HOST:PORT, or unix:SOCKET, which needs no token for the same user), a file with a
    /// token, and a file with the certificates to trust instead of the system's. May be repeated.
    #[arg(long = "remote", value_name = "ID=URL,TOKEN-FILE[,CA-FILE]")]
    pub remotes: Vec<String>,
    /// Socket of a service of root that starts a supervisor for each connection (wp-codebox.socket).
    /// [default: this process starts them]
    #[arg(long, value_name = "PATH")]
    pub runner_socket: Option<PathBuf>,
    /// Directory below which callers may name the directory of a workspace. May be repeated.
    #[arg(long = "source-root", value_name = "DIR")]
    pub source_roots: Vec<PathBuf>,
    /// Let webhooks reach this IP address, network (10.1.0.0/16) or host name, although it is not
    /// public; otherwise they reach only public addresses. May be repeated.
    #[arg(long = "webhook-allow", value_name = "NETWORK|HOST")]
    pub webhook_allow: Vec<String>,
    /// Maximum number of sandboxes of this machine at one time.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub capacity: u32,
    /// Region of this machine, for routes with a region.
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Prices of the extensions (wp-codebox/meter-prices/v1), JSON. [default:
    /// STATE/meter-prices.json, if it exists]
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Require credits: a sandbox starts only when the account of its token can pay for it.
    #[arg(long)]
    pub credits: bool,
    /// OpenTelemetry collector (http://HOST:4318 or https://HOST:4318) that gets spans of requests and
    /// sandboxes by OTLP/HTTP with JSON. [default: OTEL_EXPORTER_OTLP_ENDPOINT, if it is set]
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
    /// Part of the state directory that is used, sites/ID.
    #[arg(long, value_name = "ID", default_value = "cli")]
    pub site: String,
    #[command(flatten)]
    pub paths: PathArgs,
}
