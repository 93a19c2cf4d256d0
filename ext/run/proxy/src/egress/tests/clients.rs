//! Tests of the egress bridge with real clients: curl, PHP, OpenSSL, and a client that supports
//! only CONNECT.
//!
//! A missing program fails its test, because the documentation promises that these clients work.

use super::rig::*;
use crate::egress::{BridgeLimits, EgressMode};
use serde_json::json;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        // Do not use this machine's settings for proxies and certificates.
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("{program} is needed for this test: {e}"))
}

fn output_text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

struct Scene {
    rig: Rig,
    /// Certificate that the client must trust: the run's authority if the bridge terminates TLS,
    /// otherwise the authority of the test servers.
    trust: PathBuf,
    proxy: String,
    _scratch: tempfile::TempDir,
}

/// Starts servers for `plain.example:80` and `tls.example:443`, both allowed by the policy.
fn scene(tls: &str) -> Scene {
    let rig = rig(Options {
        rules: json!({"allowHosts": ["plain.example", "tls.example"], "tls": tls}),
        limits: BridgeLimits::default(),
        ..Options::default()
    });
    rig.host(
        "plain.example",
        80,
        server(|request, stream| ok(stream, &format!("plain says {request}"))),
    );
    let config = rig.servers.config("tls.example");
    rig.host(
        "tls.example",
        443,
        tls_server(config, |request, stream| {
            ok(stream, &format!("tls says {request}"))
        }),
    );
    let scratch = tempfile::tempdir().unwrap();
    let trust = scratch.path().join("ca.pem");
    std::fs::write(&trust, rig.authority.as_ref().unwrap_or(&rig.servers.pem)).unwrap();
    Scene {
        proxy: format!("http://{}", rig.tcp),
        trust,
        rig,
        _scratch: scratch,
    }
}

#[test]
fn curl_gets_allowed_responses_and_refusals_in_every_bridge_mode() {
    for (tls, mode) in [
        ("tunnel", EgressMode::Tunnel),
        ("terminate", EgressMode::Terminate),
    ] {
        let mut scene = scene(tls);
        let trust = scene.trust.to_str().unwrap();
        let proxied = |url: &str| {
            output_text(&run(
                "curl",
                &[
                    "-sS",
                    "-i",
                    "--max-time",
                    "20",
                    "--cacert",
                    trust,
                    "--proxy",
                    &scene.proxy,
                    url,
                ],
            ))
        };
        assert!(proxied("http://plain.example/a").contains("plain says GET /a"));
        let answer = proxied("https://tls.example/b");
        assert!(answer.contains("tls says GET /b"), "{answer}");
        scene.rig.ended(2);
        let denied = proxied("http://other.example/");
        assert!(
            denied.contains("403") && denied.contains("host-not-allowed"),
            "{denied}"
        );
        let denied = proxied("https://other.example/");
        assert!(denied.contains("403"), "{denied}");
        let socket = scene.rig.unix.to_str().unwrap();
        let base = |path: &str, extra: &[&str]| {
            let url = format!("http://bridge{path}");
            let mut arguments = vec!["-sS", "--max-time", "20", "--unix-socket", socket];
            arguments.extend_from_slice(extra);
            arguments.push(&url);
            output_text(&run("curl", &arguments))
        };
        assert!(base("/https/tls.example/c", &[]).contains("tls says GET /c"));
        assert!(base("/http/plain.example/d", &["-d", "field=1"]).contains("field=1"));
        // curl sends `Expect: 100-continue` before a large body.
        let large = format!("big={}", "x".repeat(100_000));
        let posted = base(
            "/http/plain.example/e",
            &["-H", "Expect: 100-continue", "-d", &large],
        );
        assert!(
            posted.contains("xxxx") && !posted.to_ascii_lowercase().contains("expect:"),
            "{}",
            &posted[..200]
        );
        assert!(base("/https/other.example/", &[]).contains("host-not-allowed"));
        let log = scene.rig.stop();
        assert_eq!(
            (log.counts.allowed, log.counts.denied, log.counts.failed),
            (5, 3, 0),
            "{log:#?}"
        );
        assert_eq!(log.rows[1].mode, mode);
    }
}

#[test]
fn php_streams_and_php_curl_get_allowed_responses_and_refusals_through_the_bridge() {
    for tls in ["tunnel", "terminate"] {
        let mut scene = scene(tls);
        let program = r#"
            [, $proxy, $socket, $trust] = $argv;
            $http = ['proxy' => str_replace('http://', 'tcp://', $proxy), 'request_fulluri' => true, 'ignore_errors' => true, 'timeout' => 20];
            $context = stream_context_create(['http' => $http, 'ssl' => ['cafile' => $trust]]);
            echo file_get_contents('http://plain.example/a', false, $context), "\n";
            echo file_get_contents('http://other.example/', false, $context), "\n";
            $context = stream_context_create(['http' => ['request_fulluri' => false] + $http, 'ssl' => ['cafile' => $trust]]);
            echo file_get_contents('https://tls.example/b', false, $context), "\n";
            var_dump(@file_get_contents('https://other.example/', false, $context));
            $get = static function (string $url, array $options): string {
                $handle = curl_init($url);
                curl_setopt_array($handle, $options + [CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT => 20]);
                return (string) curl_exec($handle) . curl_error($handle) . "\n";
            };
            echo $get('http://bridge/https/tls.example/c', [CURLOPT_UNIX_SOCKET_PATH => $socket]);
            echo $get('https://tls.example/d', [CURLOPT_PROXY => $proxy, CURLOPT_CAINFO => $trust]);
            $stream = stream_socket_client('unix://' . $socket);
            fwrite($stream, "GET /http/plain.example/e HTTP/1.0\r\n\r\n");
            echo stream_get_contents($stream);
        "#;
        let output = run(
            "php",
            &[
                "-r",
                program,
                "--",
                &scene.proxy,
                scene.rig.unix.to_str().unwrap(),
                scene.trust.to_str().unwrap(),
            ],
        );
        let text = output_text(&output);
        for expected in [
            "plain says GET /a",
            "host-not-allowed",
            "tls says GET /b",
            "bool(false)",
            "tls says GET /c",
            "tls says GET /d",
            "plain says GET /e",
        ] {
            assert!(text.contains(expected), "{tls} {expected}: {text}");
        }
        scene.rig.ended(7);
        let log = scene.rig.stop();
        assert_eq!((log.counts.allowed, log.counts.denied), (5, 2), "{log:#?}");
    }
}

#[test]
fn openssl_client_in_a_connect_tunnel_reaches_its_host_but_not_with_another_server_name() {
    let mut scene = scene("tunnel");
    let output = run(
        "sh",
        &[
            "-c",
            &format!(
                "printf 'GET /x HTTP/1.0\\r\\nHost: tls.example\\r\\n\\r\\n' | openssl s_client -quiet -verify_return_error -CAfile {} -proxy {} -connect tls.example:443 -servername tls.example -ign_eof",
                scene.trust.display(),
                scene.rig.tcp
            ),
        ],
    );
    let text = output_text(&output);
    assert!(text.contains("tls says GET /x"), "{text}");
    scene.rig.ended(1);
    let output = run(
        "sh",
        &[
            "-c",
            &format!(
                "printf 'GET /x HTTP/1.0\\r\\n\\r\\n' | openssl s_client -quiet -CAfile {} -proxy {} -connect tls.example:443 -servername evil.test -ign_eof",
                scene.trust.display(),
                scene.rig.tcp
            ),
        ],
    );
    assert!(
        !output_text(&output).contains("tls says"),
        "{}",
        output_text(&output)
    );
    scene.rig.ended(2);
    let log = scene.rig.stop();
    assert_eq!((log.counts.allowed, log.counts.denied), (1, 1), "{log:#?}");
    assert_eq!(log.rows[1].reason, "sni-mismatch");
}
