//! The cluster that this host uses: `cluster.json` in its state directory.
//!
//! The operator writes the file, with `wp-codebox cluster configure` or by hand. Runs of this host
//! may use the cluster if the file exists. The supervisor of a run reads the file after it switched
//! to the uid of the owner of the state directory.

use crate::paths::input;
use crate::private_file::private_text;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use wp_codebox_contracts::{
    Capability, ClusterAccess, ClusterConfig, CodedError, DEFAULT_CAPABILITY, DEFAULT_MAX_TRIES,
    DEFAULT_PRIORITY, ErrorBody, NodeKeyRow, NodeName, Priority, ServerUrl, Sha256Hex,
    SubmitterName, schema_id,
};
use wp_codebox_runtime::StateDir;

/// Name of the file in the state directory.
const FILE: &str = "cluster.json";
/// Maximum value of `max_tries`.
pub const MOST_TRIES: u32 = 100;
/// Time for which requests to a message server that does not answer are repeated, in milliseconds.
pub const PATIENCE_MS: u64 = 600_000;

/// Reason why the configuration of the cluster cannot be read or written. Messages have no path of
/// the host, because callers over REST read them.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum ClusterConfigError {
    /// `cluster.json` does not exist.
    #[error("no cluster is configured on this host: its state directory has no {FILE}")]
    #[code(
        ClusterNotConfigured,
        hint = "run the task on this host, or let the operator run `wp-codebox cluster configure`"
    )]
    Missing,
    /// The file cannot be read, or other users could have changed it.
    #[error("the file {FILE} of the state directory cannot be used: {detail}")]
    #[code(
        ConfigInvalid,
        hint = "write it again with `wp-codebox cluster configure`"
    )]
    Unusable {
        /// What is wrong.
        detail: String,
    },
    /// A member is missing, unknown or has an impossible value.
    #[error("the file {FILE} of the state directory is not valid: {detail}")]
    #[code(
        ConfigInvalid,
        hint = "write it again with `wp-codebox cluster configure`"
    )]
    Invalid {
        /// What is wrong, with the name of the member.
        detail: String,
    },
    /// The file cannot be written.
    #[error("the file {FILE} of the state directory cannot be written: {source}")]
    #[code(StateDirInvalid)]
    Write {
        /// Error of the failed call.
        source: io::Error,
    },
}

/// Reads and checks the configuration.
pub fn read_cluster_config(state: &StateDir) -> Result<ClusterConfig, ClusterConfigError> {
    let seen = rustix::fs::statat(state, FILE, AtFlags::SYMLINK_NOFOLLOW);
    if matches!(seen, Err(Errno::NOENT)) {
        return Err(ClusterConfigError::Missing);
    }
    let text = private_text(state.as_fd(), Path::new(FILE), state.owner())
        .map_err(|detail| ClusterConfigError::Unusable { detail })?;
    let config: ClusterConfig = serde_json::from_str(&text).map_err(|e| invalid(e.to_string()))?;
    check(&config)?;
    Ok(config)
}

/// Checks what the types of the members do not express.
fn check(config: &ClusterConfig) -> Result<(), ClusterConfigError> {
    let ClusterConfig {
        schema,
        cluster,
        nodes,
        capability,
        priority: level,
        max_tries,
    } = config;
    let member = |name: &str, error: ErrorBody| invalid(format!("{name}: {}", error.message));
    if schema != schema_id::CLUSTER_CONFIG {
        return Err(invalid(format!(
            "schema must be {}",
            schema_id::CLUSTER_CONFIG
        )));
    }
    if cluster.servers.is_empty() {
        return Err(invalid("cluster.servers names no server"));
    }
    for url in &cluster.servers {
        ServerUrl::parse(url).map_err(|e| member("cluster.servers", e))?;
    }
    SubmitterName::new(&cluster.submitter).map_err(|e| member("cluster.submitter", e))?;
    for (name, path) in [
        ("cluster.credentials_file", &cluster.credentials_file),
        ("cluster.ca_file", &cluster.ca_file),
    ] {
        // The supervisor has another working directory, so a relative path would mean another file.
        if path.as_ref().is_some_and(|path| !path.starts_with('/')) {
            return Err(invalid(format!("{name} must be an absolute path")));
        }
    }
    if nodes.is_empty() {
        return Err(invalid(
            "nodes lists no node, so no result would be accepted",
        ));
    }
    for row in nodes {
        NodeName::new(&row.node).map_err(|e| member("nodes", e))?;
    }
    Capability::new(capability).map_err(|e| member("capability", e))?;
    cluster_priority(level).map_err(|e| member("priority", e))?;
    match (1..=MOST_TRIES).contains(max_tries) {
        true => Ok(()),
        false => Err(invalid(format!("max_tries must be 1 to {MOST_TRIES}"))),
    }
}

fn invalid(detail: impl Into<String>) -> ClusterConfigError {
    ClusterConfigError::Invalid {
        detail: detail.into(),
    }
}

/// Writes the configuration with mode 0600. A reader sees the old or the new file. The process must
/// run as the owner of the state directory, because the supervisors run as that user.
pub fn write_cluster_config(
    state: &StateDir,
    config: &ClusterConfig,
) -> Result<(), ClusterConfigError> {
    check(config)?;
    let failed = |source: io::Error| ClusterConfigError::Write { source };
    let mut bytes = serde_json::to_vec_pretty(config).map_err(|e| failed(e.into()))?;
    bytes.push(b'\n');
    let new = format!(".{FILE}.{}", std::process::id());
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(state, &*new, flags, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(file.map_err(|e| failed(e.into()))?);
    let written = file
        .write_all(&bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| Ok(rustix::fs::renameat(state, &*new, state, FILE)?))
        .and_then(|()| Ok(rustix::fs::fsync(state)?));
    if written.is_err() {
        let _ = rustix::fs::unlinkat(state, &*new, AtFlags::empty());
    }
    written.map_err(failed)
}

/// Returns the configuration of a cluster, with the usual defaults for tasks. An error names the option
/// of the command line. Each of `node_keys` is `NODE=SHA256`.
pub fn cluster_config(
    cluster: ClusterAccess,
    node_keys: &[String],
) -> Result<ClusterConfig, ErrorBody> {
    Ok(ClusterConfig {
        schema: schema_id::CLUSTER_CONFIG.to_owned(),
        cluster,
        nodes: node_keys
            .iter()
            .map(|row| node_key(row))
            .collect::<Result<_, _>>()?,
        capability: DEFAULT_CAPABILITY.to_owned(),
        priority: DEFAULT_PRIORITY.to_owned(),
        max_tries: DEFAULT_MAX_TRIES,
    })
}

fn node_key(row: &str) -> Result<NodeKeyRow, ErrorBody> {
    let wrong = || input("--node-key must be NODE=SHA256, as `wp-codebox node` prints the key");
    let (node, key) = row.split_once('=').ok_or_else(wrong)?;
    Ok(NodeKeyRow {
        node: NodeName::new(node)?.to_string(),
        key: Sha256Hex::new(key).map_err(|_| wrong())?,
    })
}

/// Reads the priority of a task.
pub fn cluster_priority(text: &str) -> Result<Priority, ErrorBody> {
    let mut all = Priority::ALL.iter().copied();
    all.find(|level| level.as_str() == text)
        .ok_or_else(|| input(format!("the priority {text:?} must be high, normal or low")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use wp_codebox_contracts::ErrorCode;

    fn state() -> (tempfile::TempDir, StateDir) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("state");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(&path, Some(12_345), Some(12_345)).unwrap();
        }
        let state = StateDir::open(&path).unwrap();
        (temp, state)
    }

    fn valid() -> Value {
        json!({
            "schema": "wp-codebox/cluster-config/v1",
            "cluster": {
                "servers": ["tls://nats.example:4222"], "submitter": "shop",
                "credentials_file": "/etc/wp-codebox/shop.seed", "ca_file": "/etc/wp-codebox/ca.pem",
            },
            "nodes": [{"node": "one", "key": "5b".repeat(32)}],
            "capability": "gpu", "priority": "high", "max_tries": 2,
        })
    }

    /// Writes the file with mode 0600.
    fn put(state: &StateDir, document: &Value) {
        let path = state.path().join(FILE);
        fs::write(&path, document.to_string()).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }

    #[test]
    fn written_configuration_is_read_back_and_only_its_owner_has_permissions_on_it() {
        let (_temp, state) = state();
        let config: ClusterConfig = serde_json::from_value(valid()).unwrap();
        write_cluster_config(&state, &config).unwrap();
        write_cluster_config(&state, &config).unwrap();
        assert_eq!(read_cluster_config(&state).unwrap(), config);
        let mode = fs::metadata(state.path().join(FILE)).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1);
    }

    #[test]
    fn missing_configuration_is_reported_as_not_configured_without_a_host_path() {
        let (_temp, state) = state();
        let error = read_cluster_config(&state).unwrap_err().body();
        assert_eq!(error.code, ErrorCode::ClusterNotConfigured);
        assert!(!error.message.contains(state.path().to_str().unwrap()));
    }

    #[test]
    fn configuration_file_that_is_a_link_or_that_other_users_could_read_or_change_is_refused() {
        let (_temp, state) = state();
        let path = state.path().join(FILE);
        let code = || read_cluster_config(&state).unwrap_err().code();
        put(&state, &valid());
        assert!(read_cluster_config(&state).is_ok());
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(code(), ErrorCode::ConfigInvalid, "{mode:o}");
        }
        put(&state, &valid());
        if rustix::process::geteuid().is_root() {
            chown(&path, Some(23_456), None).unwrap();
            assert_eq!(code(), ErrorCode::ConfigInvalid);
        }
        let elsewhere = state.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert_eq!(code(), ErrorCode::ConfigInvalid);
    }

    #[test]
    fn error_for_an_invalid_or_unknown_member_contains_its_name() {
        let (_temp, state) = state();
        put(&state, &valid());
        assert!(read_cluster_config(&state).is_ok());
        let cases = [
            ("/schema", json!("wp-codebox/cluster-config/v2"), "schema"),
            ("/cluster/servers", json!([]), "cluster.servers"),
            ("/cluster/servers/0", json!("http://x"), "cluster.servers"),
            ("/cluster/submitter", json!("a.b"), "cluster.submitter"),
            (
                "/cluster/ca_file",
                json!("ca.pem"),
                "cluster.ca_file must be an absolute path",
            ),
            (
                "/cluster/credentials_file",
                json!("../shop.seed"),
                "cluster.credentials_file must be an absolute path",
            ),
            ("/nodes", json!([]), "nodes"),
            ("/nodes/0/node", json!("a b"), "nodes"),
            ("/capability", json!("a.b"), "capability"),
            ("/priority", json!("urgent"), "priority"),
            ("/max_tries", json!(0), "max_tries"),
            ("/max_tries", json!(101), "max_tries"),
        ];
        for (at, value, name) in cases {
            let mut document = valid();
            *document.pointer_mut(at).unwrap() = value;
            put(&state, &document);
            let error = read_cluster_config(&state).unwrap_err().body();
            assert_eq!(error.code, ErrorCode::ConfigInvalid, "{at}");
            assert!(error.message.contains(name), "{at}: {error}");
        }
        let mut document = valid();
        document["token"] = json!("secret-value");
        put(&state, &document);
        let error = read_cluster_config(&state).unwrap_err().body();
        assert!(error.message.contains("`token`"), "{error}");
        assert!(!error.message.contains("secret-value"), "{error}");
    }
}
