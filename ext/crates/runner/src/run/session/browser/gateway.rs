//! The bridge of a browser's guest.

use crate::browser::{Task, Wake};
use crate::egress::{
    Bridge, BridgeConfig, BridgeLimits, EgressMode, Network, Pending, ReachSite, Site, Trust,
};
use crate::run::Setting;
use crate::run::egress::denials;
use crate::run::recorder::Recorder;
use serde_json::{Value, json};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use wp_codebox_contracts::{ErrorBody, ErrorCode, ExecutionId, NetworkPolicy};
use wp_codebox_policy::{EgressRules, Host};
use wp_codebox_runtime::Runtime;

/// Wait while the driver is busy with other messages.
const BUSY: Duration = Duration::from_millis(5);
/// Requests to other hosts that a result lists.
const LISTED: usize = 100;

/// An open way out of a browser's guest.
pub(super) struct Gateway(Bridge);

/// Asks the driver, which holds the working guest, for connections to the site.
struct Door(SyncSender<Wake>);

impl ReachSite for Door {
    fn reach(&self) -> Pending<'_, io::Result<TcpStream>> {
        Box::pin(async move {
            let gone = || io::Error::other("the command is over");
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

/// What pages may reach beside the site: never more than the run's policy, often less. TLS is
/// passed through and nothing of the run's secrets is put into requests of a page.
fn rules(setting: &Setting<'_>, task: &Task) -> Result<EgressRules, ErrorBody> {
    let rules = match (&setting.prepared.policy.network, task.external) {
        (NetworkPolicy::Posture(_), _) | (_, crate::browser::External::Deny) => {
            return Ok(EgressRules::nothing());
        }
        (NetworkPolicy::Rules(rules), crate::browser::External::Policy) => {
            EgressRules::compile(rules).map_err(|_| unavailable("its rules do not compile"))?
        }
    };
    let keep = |host: &Host| {
        (task.only_hosts.is_empty() || task.only_hosts.contains(host))
            && !task.never_hosts.contains(host)
    };
    Ok(rules.tunnelled().narrowed(keep))
}

fn unavailable(why: &str) -> ErrorBody {
    let message = format!("the browser's bridge cannot start: {why}");
    ErrorBody::new(ErrorCode::EgressUnavailable, message)
}

impl Gateway {
    /// Serves on the sockets of a guest in which nothing runs yet.
    pub(super) fn open(
        setting: &Setting<'_>,
        task: &Task,
        runtime: &mut dyn Runtime,
        driver: &SyncSender<Wake>,
    ) -> Result<Self, ErrorBody> {
        let sockets = runtime
            .take_egress()
            .ok_or_else(|| unavailable("the guest came without its sockets"))?;
        let limits = BridgeLimits {
            requests_per_minute: 3000,
            ..BridgeLimits::default()
        };
        Bridge::prepare(BridgeConfig {
            rules: rules(setting, task)?,
            model: None,
            site: Some(Site(Arc::new(Door(driver.clone())))),
            secrets: Vec::new(),
            limits,
            trust: Trust::System,
            network: Network::system(),
            deadline: setting.clock.deadline,
        })
        .and_then(|bridge| bridge.serve(sockets.unix, sockets.tcp))
        .map(Self)
        .map_err(|e| e.body())
    }

    /// Ends the bridge of a dead guest. Requests to other hosts than the site's are evidence of
    /// the run, and what a result shows of them is answered.
    pub(super) fn close(self, id: &ExecutionId, recorder: &mut Recorder<'_>) -> Value {
        let log = self.0.stop();
        let refused = denials(&log);
        if !refused.is_empty() {
            recorder.notices.push(format!(
                "the network policy refused requests of pages in the browser, among them: {} [{}]",
                refused.join(", "),
                ErrorCode::EgressDenied
            ));
        }
        let rows: Vec<Value> = log
            .rows
            .iter()
            .filter(|row| row.mode != EgressMode::Site)
            .map(|row| json!(row))
            .collect();
        for row in &rows {
            let mut kept = json!({"phase": "browser", "execution": id});
            if let (Some(kept), Some(row)) = (kept.as_object_mut(), row.as_object()) {
                kept.extend(row.clone());
            }
            recorder.egress.push(kept);
        }
        let shown: Vec<Value> = rows
            .iter()
            .take(LISTED)
            .map(|row| {
                let member = |name: &str| row.get(name).cloned().unwrap_or(Value::Null);
                json!({
                    "method": member("method"), "host": member("host"), "port": member("port"),
                    "path": member("path"), "decision": member("decision"),
                    "reason": member("reason"), "status": member("status"),
                })
            })
            .collect();
        json!({"total": rows.len(), "requests": shown})
    }
}
