//! Egress bridge of the guest in which a browser runs: the proxy for all requests of its pages.

use crate::journal::recorder::Recorder;
use crate::prepared::context::RunContext;
use crate::session::egress::sentence;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use wp_codebox_browser::{Task, Wake};
use wp_codebox_contracts::{ErrorBody, ErrorCode, ExecutionId, NetworkPolicy, SITE_ORIGIN};
use wp_codebox_policy::{Authority, EgressRequest, EgressRules, Host, RequestPath};
use wp_codebox_proxy::egress::{
    Bridge, BridgeConfig, BridgeLimits, EgressDecision, EgressMode, Network, Pending, SecretSwap,
    Site, SiteConnector, Trust,
};
use wp_codebox_runtime::Runtime;

/// Delay before another attempt when the queue to the browser's driver is full.
const BUSY: Duration = Duration::from_millis(5);
/// Maximum number of different refused requests that a notice names.
const NAMED: usize = 16;
/// Maximum number of requests to other hosts than the site's that a result lists.
const LISTED: usize = 100;

/// Running bridge of a browser's guest.
pub(super) struct Gateway(Bridge);

/// Opens connections to the site for the bridge. Only the browser's driver can connect, because its
/// thread owns the work guest, so each request for a connection goes to the driver.
struct Door(SyncSender<Wake>);

impl SiteConnector for Door {
    fn connect(&self) -> Pending<'_, io::Result<TcpStream>> {
        Box::pin(async move {
            let gone = || io::Error::other("the command has ended");
            let (asker, answer) = oneshot::channel::<io::Result<OwnedFd>>();
            let mut wake = Wake::Site(asker);
            loop {
                wake = match self.0.try_send(wake) {
                    Ok(()) => break,
                    Err(TrySendError::Full(wake)) => wake,
                    Err(TrySendError::Disconnected(_)) => return Err(gone()),
                };
                tokio::time::sleep(BUSY).await;
            }
            let socket = answer.await.map_err(|_| gone())??;
            let socket = std::net::TcpStream::from(socket);
            socket.set_nonblocking(true)?;
            TcpStream::from_std(socket)
        })
    }
}

/// Returns which hosts pages may reach: those that the run's policy allows, without those that the
/// browser command excludes. TLS is tunnelled without interception, and the bridge adds no secret
/// to a page's requests.
pub(super) fn rules(context: &RunContext<'_>, task: &Task) -> Result<EgressRules, ErrorBody> {
    let rules = match (&context.prepared.policy.network, task.external) {
        (NetworkPolicy::Posture(_), _) | (_, wp_codebox_browser::External::Deny) => {
            return Ok(EgressRules::nothing());
        }
        (NetworkPolicy::Rules(rules), wp_codebox_browser::External::Policy) => {
            EgressRules::compile(rules)
                .map_err(|_| unavailable("a network rule of the policy is not valid"))?
        }
    };
    let keep = |host: &Host| {
        (task.only_hosts.is_empty() || task.only_hosts.contains(host))
            && !task.never_hosts.contains(host)
    };
    Ok(rules.tunnelled().narrowed(keep))
}

/// Returns whether these rules refuse a request of a page; the site itself needs no rule.
pub(super) fn refuses(rules: &EgressRules, method: &str, url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        // `data:` and `blob:` URLs need no network.
        return false;
    };
    let (tunnelled, default) = match scheme {
        "http" => (false, 80),
        // A browser tunnels every web socket through a proxy.
        "ws" => (true, 80),
        "https" | "wss" => (true, 443),
        _ => return false,
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    if scheme == "http" && SITE_ORIGIN.strip_prefix("http://") == Some(authority) {
        return false;
    }
    let Ok(Authority { host, port }) = Authority::parse(authority) else {
        return true;
    };
    let port = port.unwrap_or(default);
    if tunnelled {
        return rules.tunnel(&host, port).is_err();
    }
    let target = target.split('#').next().unwrap_or_default();
    let target = match target.starts_with('/') {
        true => target.to_owned(),
        false => format!("/{target}"),
    };
    RequestPath::parse(&target).is_ok_and(|path| {
        let request = EgressRequest {
            host: &host,
            port,
            method,
            path: &path,
        };
        rules.request(request).is_err()
    })
}

fn unavailable(why: &str) -> ErrorBody {
    let message = format!("the network proxy of the browser cannot start: {why}");
    ErrorBody::new(ErrorCode::EgressUnavailable, message)
}

impl Gateway {
    /// Starts the bridge on the sockets of a guest in which no program runs yet.
    pub(super) fn open(
        context: &RunContext<'_>,
        rules: EgressRules,
        runtime: &mut dyn Runtime,
        driver: &SyncSender<Wake>,
    ) -> Result<Self, ErrorBody> {
        let sockets = runtime
            .take_egress()
            .ok_or_else(|| unavailable("the guest sent no listening sockets"))?;
        let limits = BridgeLimits {
            requests_per_minute: 3000,
            ..BridgeLimits::default()
        };
        // The browser sends no secret, but a response may contain one, so the redactor must know
        // all of them.
        let secrets = context.prepared.secrets.swaps().into_iter();
        let secrets = secrets
            .map(|swap| SecretSwap {
                hosts: Vec::new(),
                ..swap
            })
            .collect();
        Bridge::prepare(BridgeConfig {
            rules,
            model: None,
            site: Some(Site(Arc::new(Door(driver.clone())))),
            secrets,
            limits,
            trust: Trust::System,
            network: Network::system(),
            deadline: context.clock.deadline,
            used: Arc::clone(&context.backend.used),
        })
        .and_then(|bridge| bridge.serve(sockets.unix, sockets.tcp))
        .map(Self)
        .map_err(ErrorBody::from)
    }

    /// Stops the bridge after its guest has ended, and records the guest's requests to other hosts
    /// than the site's as evidence. Returns what the command's result contains about them: the
    /// requests of pages, and only the number of all other requests, because a browser contacts its
    /// vendor in spite of the command-line switches that forbid it.
    pub(super) fn close(
        self,
        id: &ExecutionId,
        hosts: &BTreeSet<String>,
        recorder: &mut Recorder<'_>,
    ) -> Value {
        let log = self.0.stop();
        let mut shown = Vec::new();
        let (mut own, mut refused) = (0_u64, BTreeSet::new());
        for row in log.rows.iter().filter(|row| row.mode != EgressMode::Site) {
            let by_page = row.host.is_empty() || hosts.contains(&row.host);
            let by = if by_page { "page" } else { "browser" };
            let mut kept = json!({"phase": "browser", "execution": id, "by": by});
            if let (Some(kept), Value::Object(row)) = (kept.as_object_mut(), json!(row)) {
                kept.extend(row);
            }
            recorder.evidence.egress.push(kept);
            if !by_page {
                own += 1;
                continue;
            }
            if row.decision == EgressDecision::Denied && refused.len() < NAMED {
                refused.insert(sentence(row));
            }
            if shown.len() < LISTED {
                shown.push(json!({
                    "method": row.method, "host": row.host, "port": row.port, "path": row.path,
                    "decision": row.decision, "reason": row.reason, "status": row.status,
                }));
            }
        }
        if !refused.is_empty() {
            let list: Vec<String> = refused.into_iter().collect();
            recorder.evidence.notices.push(format!(
                "the network policy refused requests of pages in the browser, among them: {}; allow them in the policy's network if the pages need them [{}]",
                list.join(", "),
                ErrorCode::EgressDenied
            ));
        }
        json!({"requests": shown, "byBrowserItself": own, "rowsCut": log.cut})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_hosts_without_a_rule_are_refused_and_those_to_the_site_and_to_allowed_hosts_are_not()
     {
        let allowed = serde_json::from_value(json!({"allowHosts": ["allowed.test"]})).unwrap();
        let rules = EgressRules::compile(&allowed).unwrap();
        for (url, refused) in [
            ("http://localhost/wp-admin/?a=b#c", false),
            ("http://localhost:8080/", true),
            ("https://localhost/", true),
            ("http://allowed.test/a?b", false),
            ("http://allowed.test", false),
            ("https://allowed.test/", false),
            ("wss://allowed.test/", false),
            ("http://allowed.test:81/", true),
            ("https://secure.gravatar.com/avatar/x?s=64", true),
            ("http://10.1.2.3/", true),
            ("data:image/png;base64,AA", false),
            ("blob:http://localhost/1", false),
        ] {
            assert_eq!(refuses(&rules, "GET", url), refused, "{url}");
            assert_eq!(
                refuses(&EgressRules::nothing(), "GET", url),
                refused || url.contains("allowed"),
                "{url}"
            );
        }
    }
}
