//! Tests of the model client against a server that plays prepared responses.

mod server;

mod chat;
mod faults;
mod messages;
mod ways;

use super::ModelClient;
use super::limits::Pace;
use crate::{Message, Model, ModelError, Reply, ToolSpec, TurnRequest};
use serde_json::json;
use server::{Answer, RecordedRequest, Server};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ModelApi, ModelEndpoint};
use wp_codebox_proxy::egress::Trust;
use wp_codebox_runtime::Cancellation;
use zeroize::Zeroizing;

const KEY: &str = "key-correct-horse-battery";

fn endpoint(api: ModelApi, base_url: &str) -> ModelEndpoint {
    ModelEndpoint {
        provider: "example".to_owned(),
        model: "example-large".to_owned(),
        api,
        base_url: base_url.to_owned(),
        secret: Some("MODEL_KEY".to_owned()),
        private: true,
        context_tokens: None,
        max_output_tokens: None,
        prices: None,
    }
}

/// Timeouts for tests: short pauses, but generous timeouts for a busy machine.
fn quick() -> Pace {
    Pace {
        connect: Duration::from_secs(20),
        first_byte: Duration::from_secs(20),
        idle: Duration::from_secs(20),
        trailer: Duration::from_secs(5),
        pause: Duration::from_millis(20),
        longest_pause: Duration::from_millis(100),
        max_retry_after: Duration::from_millis(600),
        ..Pace::default()
    }
}

fn tools() -> Vec<ToolSpec> {
    vec![ToolSpec {
        id: "workspace.read".to_owned(),
        name: "workspace_read".to_owned(),
        description: "Reads a file.".to_owned(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    }]
}

/// A model client and the test server that it connects to.
struct TestClient {
    server: Server,
    cancellation: &'static Cancellation,
    client: ModelClient<'static>,
    deadline: Duration,
    text: String,
}

impl TestClient {
    fn new(api: ModelApi, answers: Vec<Answer>) -> Self {
        Self::paced(api, answers, quick())
    }

    fn paced(api: ModelApi, answers: Vec<Answer>, pace: Pace) -> Self {
        let server = Server::play(answers);
        let base_url = match api {
            ModelApi::OpenaiChat => server.base_url(),
            ModelApi::AnthropicMessages => format!("http://{}", server.address),
        };
        let cancellation = Box::leak(Box::new(Cancellation::default()));
        let key = Some(Zeroizing::new(KEY.to_owned()));
        let endpoint = endpoint(api, &base_url);
        let client = ModelClient::with(&endpoint, key, cancellation, pace, &Trust::System).unwrap();
        Self {
            server,
            cancellation,
            client,
            deadline: Duration::from_secs(60),
            text: String::new(),
        }
    }

    fn say(&mut self, messages: &[Message]) -> Result<Reply, ModelError> {
        self.text.clear();
        let tools = tools();
        let text = &mut self.text;
        let answer = self.client.turn(
            TurnRequest {
                system: "Be brief.",
                messages,
                tools: &tools,
                max_output_tokens: 512,
                deadline: Instant::now() + self.deadline,
            },
            &mut |piece| text.push_str(piece),
        );
        let shown = format!("{answer:?} {:?}", self.client);
        assert!(!shown.contains("correct-horse"), "{shown}");
        answer
    }

    fn ask(&mut self) -> Result<Reply, ModelError> {
        self.say(&[Message::User("Hello.".to_owned())])
    }

    fn asked(&self) -> Vec<RecordedRequest> {
        self.server.asked()
    }
}
