//! A running server with the fake extension.

use crate::fake::{Fake, FakeHost, host};
use crate::http::Client;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_service::{
    Extension, Listener, Scopes, Service, ServiceConfig, SocketAccess, TokenSpec, TokenStore,
};

/// Settings of tests: short pauses, so that no test waits long.
pub fn config(directory: &Path) -> ServiceConfig {
    let mut config = ServiceConfig::new(directory.to_owned());
    config.hosts = vec![host("local", "fake")];
    config.bounds.runs = 1000;
    config.poll = Duration::from_millis(20);
    config.health = Duration::from_millis(100);
    config.webhook_pause = Duration::from_millis(10);
    config.grace = Duration::from_secs(5);
    config.webhook_targets.allow("127.0.0.0/8").unwrap();
    config
}

pub struct Server {
    pub directory: PathBuf,
    pub fake: Arc<Fake>,
    pub host: Arc<FakeHost>,
    pub socket: PathBuf,
    running: Option<Running>,
    _temporary: Arc<TempDir>,
}

struct Running {
    stop: tokio::sync::oneshot::Sender<()>,
    thread: JoinHandle<Result<(), ErrorBody>>,
}

impl Server {
    pub fn start() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut ServiceConfig)) -> Self {
        let temporary = Arc::new(tempfile::tempdir().unwrap());
        let fake = Fake::new(&temporary.path().join("fake"));
        let host = FakeHost::of(&fake);
        Self::of(temporary, fake, host, Vec::new(), change)
    }

    /// Like [`Server::with`], and also with a TLS listener on loopback. Its certificate is the file
    /// `cert.pem` beside the socket.
    pub fn with_tls(change: impl FnOnce(&mut ServiceConfig)) -> (Self, SocketAddr) {
        let temporary = Arc::new(tempfile::tempdir().unwrap());
        let own = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = temporary.path().join("cert.pem");
        let key = temporary.path().join("key.pem");
        std::fs::write(&certificate, params.self_signed(&own).unwrap().pem()).unwrap();
        std::fs::write(&key, own.serialize_pem()).unwrap();
        let listener = Listener::tls("127.0.0.1:0".parse().unwrap(), &certificate, &key).unwrap();
        let address = listener.address().unwrap();
        let fake = Fake::new(&temporary.path().join("fake"));
        let host = FakeHost::of(&fake);
        let server = Self::of(temporary, fake, host, vec![listener], change);
        (server, address)
    }

    fn of(
        temporary: Arc<TempDir>,
        fake: Arc<Fake>,
        host: Arc<FakeHost>,
        mut listeners: Vec<Listener>,
        change: impl FnOnce(&mut ServiceConfig),
    ) -> Self {
        let directory = temporary.path().join("service");
        let mut config = config(&directory);
        change(&mut config);
        let socket = temporary.path().join("service.sock");
        let extension: Arc<dyn Extension> = fake.clone();
        let service = Service::open(config, vec![extension], host.clone()).unwrap();
        listeners.push(Listener::unix(&socket, SocketAccess::Owner).unwrap());
        Self {
            running: Some(run(service, listeners)),
            directory,
            fake,
            host,
            socket,
            _temporary: temporary,
        }
    }

    /// Stops the server and starts another one on its records.
    pub fn restart(self) -> Self {
        self.restart_with(|_| {})
    }

    /// Like [`Server::restart`], with changed settings.
    pub fn restart_with(mut self, change: impl FnOnce(&mut ServiceConfig)) -> Self {
        self.stop();
        let (fake, host) = (self.fake.clone(), self.host.clone());
        Self::of(self._temporary.clone(), fake, host, Vec::new(), change)
    }

    /// Stops the server and waits for its end.
    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            let _ = running.stop.send(());
            running.thread.join().unwrap().unwrap();
        }
    }

    /// The administrator of the machine: these tests run with the server's uid.
    pub fn admin(&self) -> Client {
        Client::new(&self.socket)
    }

    pub fn token(&self, actor: &str, scopes: &[&str]) -> Client {
        self.limited(actor, scopes, 1_000_000, 1000)
    }

    pub fn limited(&self, actor: &str, scopes: &[&str], rate: u32, concurrency: u32) -> Client {
        self.with_spec(TokenSpec {
            scopes: Scopes::parse(scopes).unwrap(),
            actor: actor.parse().unwrap(),
            account: None,
            rate_per_minute: rate,
            concurrency,
            ttl_ms: None,
        })
    }

    /// A token whose account pays for what it makes.
    pub fn paying(&self, actor: &str, scopes: &[&str], account: &str) -> Client {
        self.with_spec(TokenSpec {
            scopes: Scopes::parse(scopes).unwrap(),
            actor: actor.parse().unwrap(),
            account: Some(account.to_owned()),
            rate_per_minute: 1_000_000,
            concurrency: 1000,
            ttl_ms: None,
        })
    }

    fn with_spec(&self, spec: TokenSpec) -> Client {
        let tokens = TokenStore::open(&self.directory).unwrap();
        self.admin().with(&tokens.create(spec).unwrap().token)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After a restart another server uses the fake.
        if self.running.is_some() {
            self.fake.open();
            self.stop();
        }
    }
}

fn run(service: Service, listeners: Vec<Listener>) -> Running {
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let thread = std::thread::spawn(move || {
        service.run(listeners, async {
            let _ = stopped.await;
        })
    });
    Running { stop, thread }
}

/// Runs a service until the handle is dropped.
pub struct Handle(Option<Running>);

pub fn start(service: Service, listeners: Vec<Listener>) -> Handle {
    Handle(Some(run(service, listeners)))
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(running) = self.0.take() {
            let _ = running.stop.send(());
            let _ = running.thread.join();
        }
    }
}

/// Waits until `done` returns a value.
#[track_caller]
pub fn until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}
