//! Runs the conformance suite on the fake extension: directly, and through another service over a
//! unix socket and over TLS.

use crate::fake::{self, Fake, FakeHost, WORKSPACE, capabilities, profile};
use crate::http::Client;
use crate::server::{self, Server};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wp_codebox_service::conformance::{Subject, Violation, check};
use wp_codebox_service::{
    Extension, Listener, Remote, RemoteTarget, SandboxId, Service, SocketAccess,
};

fn new_id() -> SandboxId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    SandboxId::parse(&format!("run_{number:032x}")).unwrap()
}

fn subject(extension: Arc<dyn Extension>) -> Subject {
    Subject {
        extension,
        profile: profile("profile.shop"),
        source: None,
        workspace: WORKSPACE.to_owned(),
        patience: Duration::from_secs(60),
    }
}

fn conforms(extension: Arc<dyn Extension>) {
    let violations = check(&subject(extension), &new_id);
    assert_eq!(violations, Vec::<Violation>::new());
}

fn token(server: &Server) -> String {
    server.token("atm:front", &["*"]).token.unwrap()
}

#[test]
fn fake_extension_passes_every_check_of_the_extension_contract() {
    let directory = tempfile::tempdir().unwrap();
    conforms(Fake::new(directory.path()));
}

#[test]
fn remote_extension_over_a_unix_socket_passes_every_check_of_the_extension_contract() {
    let server = Server::start();
    let token = token(&server);
    let target = RemoteTarget::Unix(server.socket.clone());
    conforms(Arc::new(
        Remote::new(capabilities("remote"), &target, Some(&token)).unwrap(),
    ));
}

/// A self-signed certificate for 127.0.0.1 and its key, in files. It is marked as a CA certificate,
/// as `openssl req -x509` makes it.
fn certificate(directory: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
    let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let own = rcgen::KeyPair::generate().unwrap();
    let (certificate, key) = (directory.join("cert.pem"), directory.join("key.pem"));
    fs::write(&certificate, params.self_signed(&own).unwrap().pem()).unwrap();
    fs::write(&key, own.serialize_pem()).unwrap();
    (certificate, key)
}

#[test]
fn remote_extension_over_tls_passes_all_contract_checks_only_with_trusted_certificate_and_token() {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(directory.path());
    let service = directory.path().join("service");
    let fake: Arc<dyn Extension> = Fake::new(&directory.path().join("fake"));
    let opened = Service::open(
        server::config(&service),
        vec![fake],
        Arc::new(FakeHost::default()),
    )
    .unwrap();
    let listener = Listener::tls("127.0.0.1:0".parse().unwrap(), &certificate, &key).unwrap();
    let address = listener.address().unwrap();
    let _running = server::start(opened, vec![listener]);
    let tokens = wp_codebox_service::TokenStore::open(&service).unwrap();
    let made = tokens.create(wp_codebox_service::TokenSpec {
        scopes: wp_codebox_service::Scopes::everything(),
        actor: "atm:front".parse().unwrap(),
        account: None,
        rate_per_minute: 100_000,
        concurrency: 100,
        ttl_ms: None,
    });
    let token = made.unwrap().token;
    let remote = |authorities: Option<std::path::PathBuf>, token: Option<&str>| {
        let target = RemoteTarget::Tls {
            url: format!("https://{address}"),
            authorities,
        };
        Remote::new(capabilities("remote"), &target, token).unwrap()
    };
    // Denials first: an untrusted certificate, and no token, because over TLS the uid gives no
    // rights.
    assert!(remote(None, Some(&token)).health("x").is_err());
    let without = remote(Some(certificate.clone()), None);
    without.health("x").unwrap();
    let refused = without.snapshots().unwrap_err();
    assert!(refused.message.contains("token"), "{refused}");
    conforms(Arc::new(remote(Some(certificate), Some(&token))));
}

#[test]
fn sandbox_of_a_front_service_is_created_used_snapshotted_and_destroyed_on_the_service_behind_it() {
    let back = Server::start();
    let token = token(&back);
    let target = RemoteTarget::Unix(back.socket.clone());
    let remote = Remote::new(capabilities("remote"), &target, Some(&token)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut config = server::config(&directory.path().join("service"));
    config.hosts = vec![fake::host("back", "remote")];
    let socket = directory.path().join("front.sock");
    let extensions: Vec<Arc<dyn Extension>> = vec![Arc::new(remote)];
    let service = Service::open(config, extensions, Arc::new(FakeHost::default())).unwrap();
    let _front = server::start(
        service,
        vec![Listener::unix(&socket, SocketAccess::Owner).unwrap()],
    );
    let front = Client::new(&socket);
    let id = front.ready("profile.shop");
    let run = json!({"argv": ["/bin/sh", "-c", "echo here"]});
    let answer = front
        .post(&format!("/v1/sandboxes/{id}/exec"), &run)
        .expect(200);
    assert!(answer.text().contains("here\\n"), "{}", answer.text());
    let theirs = back.admin().get("/v1/sandboxes").json();
    assert_eq!(
        theirs["sandboxes"][0]["idempotency_key"].as_str(),
        Some(id.as_str())
    );
    assert_eq!(theirs["sandboxes"][0]["actor"], "atm:front");
    let snapshot = front
        .post(&format!("/v1/sandboxes/{id}/snapshots"), &json!({}))
        .expect(201);
    assert_eq!(snapshot.json()["run_id"].as_str(), Some(id.as_str()));
    assert_eq!(
        front.get("/v1/snapshots").json()["snapshots"][0]["host"],
        "back"
    );
    front.delete(&format!("/v1/sandboxes/{id}")).expect(200);
    assert_eq!(
        back.admin().get("/v1/sandboxes").json()["sandboxes"][0]["state"],
        "destroyed"
    );
}

#[test]
fn extension_that_ignores_the_digest_in_write_file_fails_only_the_contract_check_for_it() {
    /// Ignores the digest that `write_file` must compare.
    struct Careless(Arc<Fake>);
    macro_rules! pass {
        ($($name:ident($($arg:ident: $kind:ty),*) -> $result:ty;)+) => {
            $(fn $name(&self, $($arg: $kind),*) -> $result { self.0.$name($($arg),*) })+
        };
    }
    use serde_json::Value;
    use wp_codebox_contracts::ErrorBody;
    use wp_codebox_service::*;
    impl Extension for Careless {
        pass! {
            capabilities() -> &wp_codebox_routing::Capabilities;
            provision(request: &Provision) -> Result<(), ErrorBody>;
            wait_ready(id: &SandboxId) -> Result<Reachability, ErrorBody>;
            view(id: &SandboxId) -> Result<SandboxView, ErrorBody>;
            exec(id: &SandboxId, exec: &ExecRequest, by: &Actor, output: &mut dyn ExecOutput) -> Result<ExecEnd, ErrorBody>;
            files(id: &SandboxId) -> Result<Value, ErrorBody>;
            read_file(id: &SandboxId, path: &str) -> Result<Vec<u8>, ErrorBody>;
            extend_ttl(id: &SandboxId, ttl_ms: u64, by: &Actor) -> Result<(), ErrorBody>;
            snapshot(id: &SandboxId, name: Option<&str>, by: &Actor) -> Result<Value, ErrorBody>;
            restore(id: &SandboxId, snapshot: &str, by: &Actor) -> Result<(), ErrorBody>;
            snapshots() -> Result<Vec<Value>, ErrorBody>;
            remove_snapshot(id: &str, by: &Actor) -> Result<Value, ErrorBody>;
            teardown(id: &SandboxId, by: &Actor, reason: &str) -> Result<CleanupReport, ErrorBody>;
            events(id: &SandboxId, after: u64) -> Result<Vec<Value>, ErrorBody>;
            estimate(profile: &ProfileDocument, ms: u64) -> Result<Value, ErrorBody>;
        }
        fn write_file(
            &self,
            id: &SandboxId,
            path: &str,
            content: Option<&[u8]>,
            _: Option<&str>,
            by: &Actor,
        ) -> Result<Value, ErrorBody> {
            self.0.write_file(id, path, content, None, by)
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let careless = Careless(Fake::new(directory.path()));
    let violations = check(&subject(Arc::new(careless)), &new_id);
    let names: Vec<_> = violations.iter().map(|violation| violation.check).collect();
    assert_eq!(
        names,
        ["file_is_read_as_written_and_guarded_by_its_digest"],
        "{violations:?}"
    );
}
