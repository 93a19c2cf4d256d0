//! The connection to the server: requests with time limits, subscriptions, refusals.
//!
//! A thread of its own drives the connection, so the methods may block the thread that calls them.
//! That thread must not belong to an asynchronous runtime.

use super::failure::{CallError, RequestError};
use super::options::{Credentials, NatsOptions, Party};
use super::tokens::{self, Token};
use super::{strict, version};
use crate::bus::BusError;
use async_nats::connection::State;
use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, HeaderMap, Message, Request, RequestErrorKind,
    ServerError, Subscriber,
};
use bytes::Bytes;
use futures_util::FutureExt as _;
use std::collections::HashMap;
use std::future::{Future, pending};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{broadcast, oneshot, watch};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Time limit of each method of the bus that gets no time limit from its caller.
pub(super) const LIMIT: Duration = Duration::from_secs(10);
/// Time limit of one try of a request. While a stream elects a leader, the servers drop requests.
pub(super) const TRY: Duration = Duration::from_secs(3);
/// Time between two tries.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// Time limit of connecting to one server, before the next one is tried.
const CONNECT: Duration = Duration::from_secs(3);
/// Time between two PINGs. The client gives up a connection after three without an answer.
const PING: Duration = Duration::from_secs(3);
/// Longest time between two tries to connect again.
const RECONNECT: Duration = Duration::from_secs(1);
/// Time for sending what is queued before the connection closes.
const FLUSH: Duration = Duration::from_secs(1);
/// Number of refusals that are remembered for requests that wait.
const REFUSALS: usize = 256;
/// Number of times that a task yields, so that the other tasks of the connection run.
const YIELDS: usize = 8;
/// Value of [`Connection::checked`] before the first check.
const UNCHECKED: u64 = u64::MAX;
/// Number of messages that a subscription holds before the client drops further ones.
const HELD: usize = 4096;

/// A connection, and the thread that drives it.
pub(super) struct Connection {
    client: Client,
    runtime: Handle,
    /// Number of times that the connection was lost.
    losses: watch::Receiver<u64>,
    /// Texts of the errors that the server sends.
    refusals: broadcast::Sender<String>,
    /// Number of losses at the time when the server was checked; [`UNCHECKED`] before the first time.
    checked: AtomicU64,
    /// Party whose account the connection uses.
    party: Party,
    /// Tokens of the streams to which this connection has published.
    tokens: Mutex<HashMap<String, Token>>,
    /// Prefix of the subjects of replies.
    inbox: String,
    /// Whether the server has refused the subscription to replies.
    is_deaf: Arc<AtomicBool>,
    /// Dropping it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Connection {
    /// Connects to the first server that answers.
    pub(super) fn open(options: &NatsOptions) -> Result<Self, BusError> {
        let failed = |error: std::io::Error| BusError::Unreachable {
            detail: format!("this process cannot start a thread for the connection: {error}"),
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let (lost, losses) = watch::channel(0_u64);
        let (refusals, _) = broadcast::channel(REFUSALS);
        let (inbox, is_deaf) = (options.party.inbox(), Arc::new(AtomicBool::new(false)));
        let observer = Observer {
            lost,
            refusals: refusals.clone(),
            inbox: refusal_of(&inbox),
            is_deaf: Arc::clone(&is_deaf),
        };
        let client = runtime.block_on(connect(options, observer))?;
        let (stop, stopped) = oneshot::channel();
        let handle = runtime.handle().clone();
        let driven = client.clone();
        let thread = thread::Builder::new()
            .name("nats".to_owned())
            .spawn(move || drive(&runtime, &driven, stopped))
            .map_err(failed)?;
        let connection = Self {
            client,
            runtime: handle,
            losses,
            refusals,
            checked: AtomicU64::new(UNCHECKED),
            party: options.party.clone(),
            tokens: Mutex::default(),
            inbox,
            is_deaf,
            stop: Some(stop),
            thread: Some(thread),
        };
        let ready = connection.ready(Instant::now() + LIMIT);
        connection
            .block_on(ready)
            .map_err(|error| error.into_bus(&options.shown))?;
        Ok(connection)
    }

    /// Runs a future to its end on the calling thread.
    pub(super) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Starts a task that runs until its handle is dropped or the connection closes.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Task {
        Task(self.runtime.spawn(task).abort_handle())
    }

    /// Starts a task whose result is awaited.
    pub(super) fn start<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.runtime.spawn(task)
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn tokens(&self) -> MutexGuard<'_, HashMap<String, Token>> {
        // A thread that panicked with the lock leaves a valid map: it is a cache.
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a receiver that changes when the connection is lost.
    pub(super) fn losses(&self) -> watch::Receiver<u64> {
        self.losses.clone()
    }

    /// Fails if the server refused the subscription to replies, because the account belongs to
    /// another party.
    fn check_inbox(&self) -> Result<(), RequestError> {
        match self.is_deaf.load(Ordering::SeqCst) {
            true => Err(RequestError::Denied {
                action: format!(
                    "subscribe to {}.>; check that its credentials belong to this node or submitter",
                    self.inbox
                ),
            }),
            false => Ok(()),
        }
    }

    /// Waits until the connection is established, and checks each new server.
    async fn ready(&self, deadline: Instant) -> Result<(), RequestError> {
        self.check_inbox()?;
        while self.client.connection_state() != State::Connected {
            if Instant::now() + PAUSE >= deadline {
                return Err(RequestError::Silent {
                    detail: "the connection is lost and cannot be established again".to_owned(),
                });
            }
            sleep(PAUSE).await;
        }
        let losses = *self.losses.borrow();
        if self.checked.load(Ordering::SeqCst) != losses {
            version::check(&self.client.server_info().version)
                .map_err(|error| RequestError::Bus { error })?;
            self.check_strict(deadline).await?;
            self.checked.store(losses, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Fails unless the server is strict, also if that remains unknown until the deadline.
    async fn check_strict(&self, deadline: Instant) -> Result<(), RequestError> {
        let subject = strict::subject(&self.party);
        loop {
            let request = Request::new().payload(Bytes::from_static(strict::REQUEST));
            let until = deadline.min(Instant::now() + TRY);
            let answered = self.sent(&subject, request, until).await;
            let error = match answered.map_err(CallError::Request) {
                Ok(message) => match strict::check(&message.payload) {
                    Ok(()) => return Ok(()),
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if !error.is_temporary() || Instant::now() + PAUSE >= deadline {
                return Err(match error {
                    CallError::Request(error) => error,
                    error => RequestError::Bus {
                        error: error.into_bus("the check of the server"),
                    },
                });
            }
            sleep(PAUSE).await;
        }
    }

    /// Sends one request and returns the answer.
    pub(super) async fn exchange(
        &self,
        subject: &str,
        headers: Option<HeaderMap>,
        payload: Bytes,
        limit: Duration,
    ) -> Result<Message, RequestError> {
        let mut request = Request::new().payload(payload);
        if let Some(headers) = headers {
            request = request.headers(headers);
        }
        self.answered(subject, request, limit).await
    }

    /// Asks a consumer for a message. The client matches an answer to its request by the subject of
    /// the answer, but a consumer delivers a message under the subject of the message. So the
    /// request gets a subscription of its own.
    pub(super) async fn next_message(
        &self,
        subject: &str,
        payload: Bytes,
        limit: Duration,
    ) -> Result<Message, RequestError> {
        let request = Request::new().payload(payload);
        let request = request.inbox(self.client.new_inbox());
        self.answered(subject, request, limit).await
    }

    async fn answered(
        &self,
        subject: &str,
        request: Request,
        limit: Duration,
    ) -> Result<Message, RequestError> {
        let deadline = Instant::now() + limit;
        self.ready(deadline).await?;
        self.sent(subject, request, deadline).await
    }

    /// Sends a request to a server that may not be checked yet.
    async fn sent(
        &self,
        subject: &str,
        request: Request,
        deadline: Instant,
    ) -> Result<Message, RequestError> {
        let refusals = self.refusals.subscribe();
        let mut losses = self.losses.clone();
        losses.mark_unchanged();
        // The client has a limit of its own, which is shorter than some that callers give.
        let request = request.timeout(None);
        let answered = tokio::select! {
            answered = self.client.send_request(subject.to_owned(), request) => answered,
            () = refused(refusals, subject, &self.inbox) => {
                self.check_inbox()?;
                let action = format!("publish to {}", tokens::shown(subject));
                return Err(RequestError::Denied { action });
            }
            _ = losses.changed() => {
                let detail = "the connection was lost before the answer came".to_owned();
                return Err(RequestError::Silent { detail });
            }
            () = sleep_until(deadline) => {
                let detail = "no answer came in time".to_owned();
                return Err(RequestError::Silent { detail });
            }
        };
        answered.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => RequestError::NoResponder,
            RequestErrorKind::MaxPayloadExceeded => RequestError::TooLarge {
                limit: self.client.max_payload() as u64,
            },
            RequestErrorKind::TimedOut
            | RequestErrorKind::InvalidSubject
            | RequestErrorKind::Other => RequestError::Silent {
                detail: error.to_string(),
            },
        })
    }

    /// Publishes without waiting for an answer. Fails at once while the connection is lost, because
    /// the client would send the message later, when it is out of date.
    pub(super) async fn send(&self, subject: String, payload: Bytes) -> Result<(), RequestError> {
        let silent = |detail: String| RequestError::Silent { detail };
        if self.client.connection_state() != State::Connected {
            return Err(silent("the connection is lost".to_owned()));
        }
        if payload.len() > self.client.max_payload() {
            let limit = self.client.max_payload() as u64;
            return Err(RequestError::TooLarge { limit });
        }
        match timeout(TRY, self.client.publish(subject, payload)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(silent(error.to_string())),
            Err(_) => Err(silent("the queue of messages is full".to_owned())),
        }
    }

    /// Subscribes, and returns after the server has accepted it.
    pub(super) async fn subscribe(&self, subject: &str) -> Result<Subscriber, RequestError> {
        self.ready(Instant::now() + LIMIT).await?;
        let refusals = self.refusals.subscribe();
        let seen = self.refusals.subscribe();
        let subscribed = self.client.subscribe(subject.to_owned()).await;
        let subscriber = subscribed.map_err(|error| RequestError::Silent {
            detail: error.to_string(),
        })?;
        // The server handles the lines of a connection in their order, so a refusal of the
        // subscription comes before the answer to this request. Each party may send this request.
        let request = strict::subject(&self.party);
        tokio::select! {
            biased;
            () = refused(refusals, subject, &self.inbox) => {
                self.check_inbox()?;
                return Err(RequestError::Denied { action: format!("subscribe to {subject}") });
            }
            answered = self.exchange(&request, None, Bytes::new(), LIMIT) => match answered {
                Ok(_) | Err(RequestError::NoResponder | RequestError::Denied { .. }) => {}
                Err(error) => return Err(error),
            },
        }
        // A task of the client passes the refusal on. It is woken before the answer arrives here,
        // and runs while the task below yields.
        let yielded = self.runtime.spawn(async {
            for _ in 0..YIELDS {
                yield_now().await;
            }
        });
        drop(yielded.await);
        if refused(seen, subject, &self.inbox).now_or_never().is_some() {
            self.check_inbox()?;
            let action = format!("subscribe to {subject}");
            return Err(RequestError::Denied { action });
        }
        Ok(subscriber)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        drop(self.stop.take());
        let thread = self.thread.take();
        // The last owner of this value can be a task of the connection, whose thread cannot wait
        // for itself.
        if let Some(thread) = thread.filter(|it| it.thread().id() != thread::current().id()) {
            // An error says that the thread has panicked; there is nothing left to close.
            let _ = thread.join();
        }
    }
}

/// A task of the connection; dropping it ends the task.
pub(super) struct Task(tokio::task::AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Drives the connection until [`Connection`] is dropped, then sends what is queued.
fn drive(runtime: &Runtime, client: &Client, stopped: oneshot::Receiver<()>) {
    runtime.block_on(async {
        // Nothing is ever sent; dropping the sender ends the wait with an error.
        let _ = stopped.await;
        let _ = timeout(FLUSH, client.flush()).await;
    });
}

/// State that the events of the client change.
struct Observer {
    lost: watch::Sender<u64>,
    refusals: broadcast::Sender<String>,
    /// Text in the refusal of the subscription to replies.
    inbox: String,
    is_deaf: Arc<AtomicBool>,
}

impl Observer {
    fn see(&self, event: Event) {
        match event {
            Event::Disconnected => self.lost.send_modify(|count| *count += 1),
            Event::ServerError(ServerError::Other(text)) => {
                if text.contains(&self.inbox) {
                    self.is_deaf.store(true, Ordering::SeqCst);
                }
                // This fails only without a receiver: then no request waits for a refusal.
                drop(self.refusals.send(text));
            }
            _ => {}
        }
    }
}

/// Returns a part of the server's text that refuses a subscription to replies.
fn refusal_of(inbox: &str) -> String {
    format!("Subscription to \"{inbox}.")
}

async fn connect(options: &NatsOptions, observer: Observer) -> Result<Client, BusError> {
    let unreachable = |detail: String| BusError::Unreachable {
        detail: format!("{}: {detail}", options.shown),
    };
    let connect = with_credentials(options)?
        .name(options.party.shown())
        .custom_inbox_prefix(options.party.inbox())
        .require_tls(options.tls_required)
        .tls_client_config(options.tls.clone())
        .connection_timeout(CONNECT)
        .ping_interval(PING)
        .subscription_capacity(HELD)
        .reconnect_delay_callback(reconnect_delay)
        .event_callback(move |event| {
            observer.see(event);
            std::future::ready(())
        });
    let connected = timeout(LIMIT, connect.connect(options.servers.clone())).await;
    let connected = connected.map_err(|_| unreachable("it does not answer".to_owned()))?;
    connected.map_err(|error| match error.kind() {
        ConnectErrorKind::AuthorizationViolation => BusError::Denied {
            action: "log in with these credentials".to_owned(),
        },
        ConnectErrorKind::Authentication => BusError::Denied {
            action: "log in: its seed is not valid".to_owned(),
        },
        _ => unreachable(error.to_string()),
    })
}

fn reconnect_delay(attempts: usize) -> Duration {
    match u32::try_from(attempts) {
        Ok(0 | 1) => Duration::ZERO,
        Ok(attempts) => RECONNECT.min(Duration::from_millis(10) * attempts),
        Err(_) => RECONNECT,
    }
}

fn with_credentials(options: &NatsOptions) -> Result<ConnectOptions, BusError> {
    let connect = ConnectOptions::new();
    match &options.credentials {
        None => Ok(connect),
        Some(Credentials::Seed(seed)) => Ok(connect.nkey(seed.to_string())),
        Some(Credentials::Password { user, password }) => {
            Ok(connect.user_and_password(user.clone(), password.to_string()))
        }
        Some(Credentials::Creds(text)) => {
            // The error of the library could repeat a part of the text.
            connect.credentials(text).map_err(|_| BusError::Denied {
                action: "log in: its .creds file is not valid".to_owned(),
            })
        }
    }
}

/// Waits until the server refuses an operation on this subject. The protocol has no codes: the server
/// sends an error line that quotes the subject, and no answer to the request.
async fn refused(mut refusals: broadcast::Receiver<String>, subject: &str, inbox: &str) {
    let quoted = format!("\"{subject}\"");
    let inbox = refusal_of(inbox);
    loop {
        match refusals.recv().await {
            Ok(text) if text.contains(&quoted) || text.contains(&inbox) => return,
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => pending().await,
        }
    }
}
