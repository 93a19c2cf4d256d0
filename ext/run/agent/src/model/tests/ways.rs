//! Tests of the connection to a model: TLS, name resolution, and proxy environment variables.

use super::server::stream;
use super::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::process::Command;
use std::sync::Arc;
use wp_codebox_contracts::ErrorBody;

fn hello() -> Answer {
    stream(&[
        r#"data: {"choices":[{"delta":{"content":"Hello."}}]}"#,
        "data: [DONE]",
    ])
}

fn ask(base_url: &str, trust: &Trust) -> Result<Reply, ModelError> {
    let cancellation = Cancellation::default();
    let endpoint = endpoint(ModelApi::OpenaiChat, base_url);
    let key = Some(Zeroizing::new(KEY.to_owned()));
    let mut client = ModelClient::with(&endpoint, key, &cancellation, quick(), trust).unwrap();
    let request = TurnRequest {
        system: "",
        messages: &[Message::User("Hello.".to_owned())],
        tools: &[],
        max_output_tokens: 16,
        deadline: Instant::now() + Duration::from_secs(60),
    };
    client.turn(request, &mut |_| {})
}

/// Returns a certificate authority as PEM and the configuration of a TLS server for `localhost`
/// signed by it.
fn authority() -> (String, Arc<ServerConfig>) {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let leaf_key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["localhost".to_owned()])
        .unwrap()
        .signed_by(&leaf_key, &issuer)
        .unwrap();
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(leaf_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], private)
        .unwrap();
    (pem, Arc::new(config))
}

#[test]
fn model_with_an_untrusted_or_mismatched_tls_certificate_gets_no_request() {
    let (pem, config) = authority();
    let server = Server::play_tls(vec![hello()], config);
    let port = server.address.port();
    let trust = Trust::Pem(pem.into_bytes());
    let url = format!("https://localhost:{port}/v1");
    assert_eq!(ask(&url, &trust).unwrap().text, "Hello.");
    assert_eq!(server.asked().len(), 1);

    let (stranger, _) = authority();
    let by_address = format!("https://127.0.0.1:{port}/v1");
    let strangers = Trust::Pem(stranger.into_bytes());
    for (url, trust) in [(&url, &strangers), (&by_address, &trust)] {
        let Err(ModelError::Unavailable { why, attempts }) = ask(url, trust) else {
            panic!("it was trusted")
        };
        assert_eq!(why, "the provider's certificate is not trusted");
        assert_eq!(attempts, 1, "a certificate does not get better");
    }
    assert_eq!(server.asked().len(), 1, "no key without trust");
}

#[test]
fn model_on_localhost_is_reachable_by_name() {
    let server = Server::play(vec![hello()]);
    let url = format!("http://localhost:{}/v1", server.address.port());
    assert_eq!(ask(&url, &Trust::System).unwrap().text, "Hello.");
}

#[test]
fn model_client_with_an_invalid_base_url_or_key_cannot_be_opened() {
    let cancellation = Cancellation::default();
    let open = |base_url: &str, key: &str| {
        let endpoint = endpoint(ModelApi::OpenaiChat, base_url);
        let key = Some(Zeroizing::new(key.to_owned()));
        ModelClient::open(&endpoint, key, &cancellation).map_err(ErrorBody::from)
    };
    open("http://127.0.0.1:1", KEY).unwrap();
    for base_url in [
        "http://api.example.org",
        "http://192.168.0.9",
        "https://x/?a=1",
    ] {
        let code = open(base_url, KEY).unwrap_err().code;
        assert_eq!(code.as_str(), "wp_codebox_model_invalid", "{base_url}");
    }
    let error = open("http://127.0.0.1:1", "correct-horse\nx: y").unwrap_err();
    assert_eq!(error.code.as_str(), "wp_codebox_secret_invalid");
    assert!(!format!("{error:?}").contains("horse"), "{error:?}");
}

/// Environment variable that passes the test server's URL to a child process.
const VARIABLE: &str = "CODEBOX_TEST_MODEL";

#[test]
fn proxy_environment_variables_are_ignored_for_model_requests() {
    let run = |test: &str, model: &Server, proxy: &Server| {
        let proxy = format!("http://{}", proxy.address);
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--ignored", "--exact"]);
        child.arg(format!("model::tests::ways::{test}"));
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            child.env(name, &proxy).env(name.to_lowercase(), &proxy);
        }
        child.env_remove("NO_PROXY").env_remove("no_proxy");
        let output = child.env(VARIABLE, model.base_url()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("1 passed"), "{said}");
    };
    let (model, proxy) = (Server::play(vec![hello()]), Server::play(vec![hello()]));
    run("child_process_that_sends_a_model_request", &model, &proxy);
    assert_eq!((model.asked().len(), proxy.asked().len()), (1, 0));
    // Control: an ordinary HTTP client obeys the proxy variables of the same environment.
    run(
        "child_process_that_sends_a_request_with_an_ordinary_http_client",
        &model,
        &proxy,
    );
    assert_eq!((model.asked().len(), proxy.asked().len()), (1, 1));
}

#[test]
#[ignore = "run as a child process by the test of the proxy variables"]
fn child_process_that_sends_a_model_request() {
    let url = std::env::var(VARIABLE).unwrap();
    assert_eq!(ask(&url, &Trust::System).unwrap().text, "Hello.");
}

#[test]
#[ignore = "run as a child process by the test of the proxy variables"]
fn child_process_that_sends_a_request_with_an_ordinary_http_client() {
    let url = std::env::var(VARIABLE).unwrap();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(wp_codebox_proxy::egress::no_tls().unwrap())
        .build()
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let request = client.post(format!("{url}/chat/completions")).body("{}");
    assert!(
        runtime
            .block_on(request.send())
            .unwrap()
            .status()
            .is_success()
    );
}
