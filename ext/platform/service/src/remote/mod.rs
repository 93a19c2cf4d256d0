//! The extension `remote`: sandboxes of another service, over its unix socket or TLS.
//!
//! This server sends its own sandbox id as idempotency key to the other service, which finds the
//! sandbox by that key. So no mapping between the ids of the two services is stored, and a repeated
//! `provision` makes no second sandbox.

mod client;
mod lines;
mod target;

pub use target::RemoteTarget;

use crate::actor::Actor;
use crate::extension::{
    CleanupReport, Ended, ExecEnd, ExecOutput, ExecRequest, Extension, Provision, Reachability,
    SandboxId, SandboxView,
};
use crate::profile::ProfileDocument;
use client::{Client, Sending, path};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_routing::Capabilities;

/// Time in seconds for which the other service holds one request until a sandbox is ready.
const WAIT: u64 = 30;
/// Longest time for a call that waits for the end of a sandbox or for a snapshot.
const LONG: Duration = Duration::from_secs(900);

/// Client of another service.
#[derive(Debug)]
pub struct Remote {
    capabilities: Capabilities,
    client: Client,
    /// Ids that the other service gave our sandboxes, by our ids. Only a cache.
    known: Mutex<HashMap<SandboxId, String>>,
}

/// The members of `service-sandbox/v1` that this extension reads.
#[derive(Debug, Deserialize)]
struct Told {
    id: String,
    state: crate::extension::SandboxState,
    profile: ToldProfile,
    #[serde(default)]
    expires_at: Option<String>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    reachability: Option<ToldReachability>,
    #[serde(default)]
    usage: Option<crate::extension::SandboxUsage>,
    #[serde(default)]
    cleanup: Option<CleanupReport>,
}

#[derive(Debug, Deserialize)]
struct ToldProfile {
    sha256: String,
}

#[derive(Debug, Deserialize)]
struct ToldReachability {
    #[serde(default)]
    exec_url: Option<String>,
    #[serde(default)]
    preview_url: Option<String>,
}

impl Told {
    fn read(document: Value) -> Result<Self, ErrorBody> {
        serde_json::from_value(document).map_err(|_| client::malformed())
    }

    fn ended(&self) -> Option<Ended> {
        self.state.is_final().then(|| Ended {
            reason: self.reason.clone().unwrap_or_default(),
            usage: self.usage.clone().unwrap_or_default(),
        })
    }
}

impl Remote {
    /// Creates a client. `capabilities` has the id of this extension and what its sandboxes offer;
    /// `token` is a token of the other service. No connection is made yet.
    ///
    /// # Errors
    /// When the token is not valid or the certificates cannot be read.
    pub fn new(
        capabilities: Capabilities,
        target: &RemoteTarget,
        token: Option<&str>,
    ) -> Result<Self, ErrorBody> {
        Ok(Self {
            capabilities,
            client: Client::new(target, token)?,
            known: Mutex::default(),
        })
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, HashMap<SandboxId, String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id that the other service gave a sandbox.
    fn theirs(&self, sandbox: &SandboxId) -> Result<String, ErrorBody> {
        if let Some(id) = self.cache().get(sandbox) {
            return Ok(id.clone());
        }
        let list = self
            .client
            .get(&format!("/v1/sandboxes?idempotency_key={sandbox}"))?;
        let row = list["sandboxes"].get(0).cloned().ok_or_else(|| {
            ErrorBody::new(
                ErrorCode::SandboxNotFound,
                "the other service has no sandbox with this id",
            )
        })?;
        let id = Told::read(row)?.id;
        let mut known = self.cache();
        if known.len() > 10_000 {
            known.clear();
        }
        known.insert(sandbox.clone(), id.clone());
        Ok(id)
    }

    fn at(&self, sandbox: &SandboxId, rest: &str) -> Result<String, ErrorBody> {
        Ok(format!("/v1/sandboxes/{}{rest}", self.theirs(sandbox)?))
    }

    fn told(&self, sandbox: &SandboxId) -> Result<Told, ErrorBody> {
        Told::read(self.client.get(&self.at(sandbox, "")?)?)
    }

    /// Returns our id of a sandbox of the other service, which is its idempotency key.
    fn ours(&self, theirs: &str) -> Option<String> {
        let document = self.client.get(&path(&["v1", "sandboxes", theirs])).ok()?;
        Some(document["idempotency_key"].as_str()?.to_owned())
    }
}

impl Extension for Remote {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn health(&self, _host: &str) -> Result<(), ErrorBody> {
        self.client.get("/readyz").map(|_| ())
    }

    fn provision(&self, request: &Provision) -> Result<(), ErrorBody> {
        if request.source.is_some() {
            return Err(ErrorBody::new(
                ErrorCode::MountSourceInvalid,
                "a sandbox of another service cannot see a directory of this host; use a profile with workspace mode remote-canonical, or the extension native",
            ));
        }
        let mut body = json!({
            "profile": format!("{}@{}", request.profile_id, request.profile_version),
            "profile_sha256": request.profile_sha256,
            "scope": request.scope,
            "ttl": request.ttl_ms,
            "inputs": request.inputs,
            "services": request.services,
            "setup_metadata": request.setup_metadata,
            // The other service attributes the sandbox to the actor of our token. The actor of this
            // request is sent as `consumer`, which the events of the other service contain.
            "consumer": {"actor": request.actor},
        });
        if let Some(snapshot) = &request.snapshot {
            body["snapshot"] = json!(snapshot);
        }
        let sending = Sending::json("POST", "/v1/sandboxes", &body)
            .header("idempotency-key", request.sandbox.as_str());
        let told = Told::read(self.client.send(sending)?)?;
        if told.profile.sha256 != request.profile_sha256 {
            return Err(client::malformed());
        }
        self.cache().insert(request.sandbox.clone(), told.id);
        Ok(())
    }

    fn wait_ready(&self, sandbox: &SandboxId) -> Result<Reachability, ErrorBody> {
        let at = self.at(sandbox, "")?;
        loop {
            let sending = Sending::new("GET", &at).header("prefer", &format!("wait={WAIT}"));
            let told = Told::read(self.client.send(sending)?)?;
            if told.state.is_usable() {
                let reachability = told.reachability;
                return Ok(Reachability {
                    exec: reachability.as_ref().is_some_and(|r| r.exec_url.is_some()),
                    preview_url: reachability.and_then(|r| r.preview_url),
                });
            }
            if told.state.is_final() || told.state == crate::extension::SandboxState::Destroying {
                let message = format!(
                    "the sandbox of the other service ended before it was ready: {}",
                    told.reason.unwrap_or_default()
                );
                return Err(ErrorBody::new(ErrorCode::SandboxNotHeld, message));
            }
        }
    }

    fn view(&self, sandbox: &SandboxId) -> Result<SandboxView, ErrorBody> {
        let told = self.told(sandbox)?;
        Ok(SandboxView {
            state: told.state,
            ended: told.ended(),
            expires_at: told.expires_at,
        })
    }

    fn exec(
        &self,
        sandbox: &SandboxId,
        exec: &ExecRequest,
        _actor: &Actor,
        output: &mut dyn ExecOutput,
    ) -> Result<ExecEnd, ErrorBody> {
        let at = self.at(sandbox, "/exec")?;
        lines::exec(
            &self.client,
            Sending::json("POST", &at, &json!(exec)),
            output,
        )
    }

    fn files(&self, sandbox: &SandboxId) -> Result<Value, ErrorBody> {
        self.client.get(&self.at(sandbox, "/files")?)
    }

    fn read_file(&self, sandbox: &SandboxId, file: &str) -> Result<Vec<u8>, ErrorBody> {
        let at = self.at(sandbox, &format!("/files{}", client::escaped(file)))?;
        self.client.bytes(Sending::new("GET", &at))
    }

    fn write_file(
        &self,
        sandbox: &SandboxId,
        file: &str,
        content: Option<&[u8]>,
        base_sha256: Option<&str>,
        _actor: &Actor,
    ) -> Result<Value, ErrorBody> {
        let at = self.at(sandbox, &format!("/files{}", client::escaped(file)))?;
        let mut sending = match content {
            Some(bytes) => Sending::bytes("PUT", &at, bytes),
            None => Sending::new("DELETE", &at),
        };
        sending = match base_sha256 {
            None => sending,
            Some("") => sending.header("if-none-match", "*"),
            Some(digest) => sending.header("if-match", &format!("\"{digest}\"")),
        };
        self.client.send(sending)
    }

    fn extend_ttl(
        &self,
        sandbox: &SandboxId,
        ttl_ms: u64,
        _actor: &Actor,
    ) -> Result<(), ErrorBody> {
        let at = self.at(sandbox, "/extend-ttl")?;
        let sending = Sending::json("POST", &at, &json!({"ttl": ttl_ms}));
        self.client.send(sending).map(|_| ())
    }

    fn snapshot(
        &self,
        sandbox: &SandboxId,
        name: Option<&str>,
        _actor: &Actor,
    ) -> Result<Value, ErrorBody> {
        let at = self.at(sandbox, "/snapshots")?;
        let body = name.map_or_else(|| json!({}), |name| json!({"name": name}));
        let sending = Sending::json("POST", &at, &body).within(LONG);
        let mut row = self.client.send(sending)?;
        row["run_id"] = json!(sandbox);
        Ok(row)
    }

    fn restore(&self, sandbox: &SandboxId, snapshot: &str, _: &Actor) -> Result<(), ErrorBody> {
        let at = self.at(sandbox, "/restore")?;
        let body = json!({"snapshot": snapshot});
        let sending = Sending::json("POST", &at, &body).within(LONG);
        self.client.send(sending).map(|_| ())
    }

    fn snapshots(&self) -> Result<Vec<Value>, ErrorBody> {
        let list = self.client.get("/v1/snapshots")?;
        let rows = list["snapshots"].as_array().cloned().unwrap_or_default();
        let mut ours: HashMap<String, Option<String>> = HashMap::new();
        let mut snapshots = Vec::new();
        for row in rows {
            let mut snapshot = row["snapshot"].clone();
            let Some(theirs) = snapshot["run_id"].as_str().map(str::to_owned) else {
                continue;
            };
            let found = ours
                .entry(theirs.clone())
                .or_insert_with(|| self.ours(&theirs));
            // A snapshot of a sandbox that was not made through this extension is left out.
            if let Some(id) = found {
                snapshot["run_id"] = json!(id);
                snapshots.push(snapshot);
            }
        }
        Ok(snapshots)
    }

    fn remove_snapshot(&self, id: &str, _actor: &Actor) -> Result<Value, ErrorBody> {
        let at = path(&["v1", "snapshots", id]);
        match self.client.send(Sending::new("DELETE", &at)) {
            // The other service returns an error for an unknown snapshot; the contract of the trait
            // asks for success without effect.
            Err(error) if error.code == ErrorCode::SnapshotNotFound => Ok(json!({
                "schema": wp_codebox_contracts::schema_id::SANDBOX_SNAPSHOT_REMOVAL,
                "success": true, "id": id, "removed": false,
            })),
            other => other,
        }
    }

    fn teardown(
        &self,
        sandbox: &SandboxId,
        _actor: &Actor,
        reason: &str,
    ) -> Result<CleanupReport, ErrorBody> {
        let before = self.told(sandbox)?;
        let short: String = reason.chars().take(60).collect();
        let query = match short.is_empty() {
            true => String::new(),
            false => format!("?reason={}", client::escaped(&short)),
        };
        let at = self.at(sandbox, &query)?;
        let told = Told::read(self.client.send(Sending::new("DELETE", &at).within(LONG))?)?;
        Ok(CleanupReport {
            complete: told.state.is_final(),
            already_ended: before.state.is_final(),
            ended: told.ended(),
            ..told.cleanup.unwrap_or_default()
        })
    }

    fn events(&self, sandbox: &SandboxId, after: u64) -> Result<Vec<Value>, ErrorBody> {
        let at = self.at(sandbox, &format!("/journal?after={after}"))?;
        let journal = self.client.get(&at)?;
        Ok(journal["events"].as_array().cloned().unwrap_or_default())
    }

    fn estimate(&self, profile: &ProfileDocument, duration_ms: u64) -> Result<Value, ErrorBody> {
        let body = json!({
            "profile": format!("{}@{}", profile.id, profile.version),
            "ttl": duration_ms,
        });
        let quote = self
            .client
            .send(Sending::json("POST", "/v1/quotes", &body))?;
        Ok(quote["estimate"].clone())
    }
}
