//! Model client of a run: requests with retries.

use super::assembly::ConversationState;
use super::connection::{Connection, ModelSetupError};
use super::dialect::{Dialect, LearnResult};
use super::exchange::{self, Failure};
use super::limits::Pace;
use super::refusal::{Meaning, Refusal, sentence};
use super::{chat, messages, pauses};
use crate::{Model, ModelError, Reply, TurnRequest};
use bytes::Bytes;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use wp_codebox_contracts::{ModelApi, ModelEndpoint};
use wp_codebox_policy::Redactor;
use wp_codebox_proxy::egress::Trust;
use wp_codebox_runtime::Cancellation;
use zeroize::Zeroizing;

/// Interval at which the client checks for cancellation while it waits for the model.
const WATCH: Duration = Duration::from_millis(50);

/// Model reached over HTTP. Sends one request at a time; the calling thread must not run an async
/// runtime.
pub struct ModelClient<'a> {
    /// `None` while a turn uses the runtime. `Drop::drop` takes the runtime out of this field too,
    /// to shut it down without waiting for a running name lookup.
    runtime: Option<Runtime>,
    connection: Connection,
    api: ModelApi,
    model: String,
    cancellation: &'a Cancellation,
    redactor: Redactor,
    pace: Pace,
    dialect: Dialect,
    carried: ConversationState,
}

impl std::fmt::Debug for ModelClient<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelClient")
            .field("api", &self.api)
            .field("model", &self.model)
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}

impl Drop for ModelClient<'_> {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl<'a> ModelClient<'a> {
    /// Creates a client for this model endpoint. `key` is the API key: the value of the secret that
    /// the endpoint names.
    pub fn open(
        endpoint: &ModelEndpoint,
        key: Option<Zeroizing<String>>,
        cancellation: &'a Cancellation,
    ) -> Result<Self, ModelSetupError> {
        Self::with(endpoint, key, cancellation, Pace::default(), &Trust::System)
    }

    pub(super) fn with(
        endpoint: &ModelEndpoint,
        key: Option<Zeroizing<String>>,
        cancellation: &'a Cancellation,
        pace: Pace,
        trust: &Trust,
    ) -> Result<Self, ModelSetupError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| ModelSetupError::Runtime { source })?;
        Ok(Self {
            runtime: Some(runtime),
            connection: Connection::new(endpoint, key.as_ref(), &pace, trust)?,
            api: endpoint.api,
            model: endpoint.model.clone(),
            cancellation,
            redactor: Redactor::with_secrets(&[], key.as_ref().map(|key| key.as_str())),
            pace,
            dialect: Dialect::default(),
            carried: ConversationState::default(),
        })
    }

    const fn protocol(&self) -> &'static str {
        match self.api {
            ModelApi::OpenaiChat => chat::PROTOCOL,
            ModelApi::AnthropicMessages => messages::PROTOCOL,
        }
    }

    fn body(&self, request: TurnRequest<'_>) -> Bytes {
        let body = match self.api {
            ModelApi::OpenaiChat => chat::body(&self.model, request, self.dialect, &self.carried),
            ModelApi::AnthropicMessages => messages::body(&self.model, request, self.dialect),
        };
        Bytes::from(body.to_string())
    }

    /// Sends the request and retries it until it succeeds, fails permanently, has used up its
    /// attempts, or the next pause would end after the deadline.
    async fn ask(
        &mut self,
        request: TurnRequest<'_>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Reply, ModelError> {
        let mut body = self.body(request);
        let mut requests = 0;
        let mut tries = 0;
        loop {
            requests += 1;
            let result = exchange::ask(
                &self.connection,
                self.api,
                body.clone(),
                &self.pace,
                on_text,
            )
            .await;
            let (why, pause) = match result {
                Ok(assembly) => return Ok(assembly.reply(&self.model, &mut self.carried)),
                Err(Failure::Temporary { why }) => (sentence(&why, &self.redactor), None),
                Err(Failure::Permanent { why }) => {
                    return Err(ModelError::Unavailable {
                        why,
                        attempts: requests,
                    });
                }
                Err(Failure::Malformed { why }) => {
                    return Err(ModelError::Malformed {
                        protocol: self.protocol(),
                        why,
                    });
                }
                Err(Failure::Refused {
                    refusal,
                    retry_after,
                }) => match self.refused(&refusal)? {
                    Next::ChangedOptions => {
                        body = self.body(request);
                        continue;
                    }
                    Next::Later(why) => (why, retry_after),
                },
            };
            tries += 1;
            if tries >= self.pace.tries {
                return Err(ModelError::Unavailable {
                    why,
                    attempts: requests,
                });
            }
            let pause =
                pause.unwrap_or_else(|| pauses::backoff(tries + 1, pauses::jitter(), &self.pace));
            if Instant::now() + pause >= request.deadline {
                return Err(ModelError::Unavailable {
                    why: format!("{why}; the run's wall clock limit leaves no time for a retry"),
                    attempts: requests,
                });
            }
            tokio::time::sleep(pause).await;
        }
    }

    fn refused(&mut self, refusal: &Refusal) -> Result<Next, ModelError> {
        let status = refusal.status;
        match refusal.meaning() {
            Meaning::TooLong => Err(ModelError::TooLong),
            Meaning::Key => Err(ModelError::Unauthorised { status }),
            Meaning::Later => {
                let said = refusal.sentence(&self.redactor);
                Ok(Next::Later(format!("status {status}: {said}")))
            }
            Meaning::Never => match self.dialect.learn(refusal) {
                LearnResult::Changed => Ok(Next::ChangedOptions),
                LearnResult::Nothing => Err(ModelError::Rejected {
                    status,
                    why: refusal.sentence(&self.redactor),
                }),
            },
        }
    }
}

/// What the client does next after a refusal that is not final.
enum Next {
    /// Send the request again at once, with changed options.
    ChangedOptions,
    /// Send the same request again after a pause; the text says why the provider refused it.
    Later(String),
}

impl Model for ModelClient<'_> {
    /// After a failure in the middle of a response, the retry passes the text to `on_text` from the
    /// start again; only the text of the returned response is authoritative.
    fn turn(
        &mut self,
        request: TurnRequest<'_>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Reply, ModelError> {
        let Some(runtime) = self.runtime.take() else {
            return Err(ModelError::Cancelled);
        };
        let cancellation = self.cancellation;
        let answer = runtime.block_on(async {
            tokio::select! {
                biased;
                stop = halted(cancellation, request.deadline) => Err(stop),
                answer = self.ask(request, on_text) => answer,
            }
        });
        self.runtime = Some(runtime);
        answer
    }
}

/// Waits until the run is cancelled or the deadline passes, and returns the matching error.
async fn halted(cancellation: &Cancellation, deadline: Instant) -> ModelError {
    loop {
        if cancellation.reason().is_some() {
            return ModelError::Cancelled;
        }
        let now = Instant::now();
        if now >= deadline {
            return ModelError::Deadline;
        }
        tokio::time::sleep(WATCH.min(deadline - now)).await;
    }
}
