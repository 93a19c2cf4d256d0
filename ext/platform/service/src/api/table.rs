//! The table of operations.

use super::operation::{Access, Body, Operation, Verb};
use super::query::{Kind, Parameter};
use super::{
    catalog, events, exec, files, health, hosts, prices, runs, sandboxes, snapshots, webhooks,
};
use crate::auth::Scope;
use axum::routing::on;

const LIMIT: Parameter = Parameter::new(
    "limit",
    Kind::Number {
        least: 1,
        most: 200,
    },
    "Maximum number of items; 50 if absent.",
);
const AFTER: Parameter = Parameter::new(
    "after",
    Kind::Number {
        least: 0,
        most: i64::MAX as u64,
    },
    "The member `next` of the previous page.",
);
const WAIT: Parameter = Parameter::new(
    "Prefer",
    Kind::Text,
    "`wait=N` waits up to N seconds, at most 300, until the sandbox is ready or has ended.",
);
const KEY: Parameter = Parameter::new(
    "Idempotency-Key",
    Kind::Pattern("^[!-~]{1,255}$"),
    "1 to 255 visible ASCII characters. A repeated request with the same key and body gets the sandbox of the first one.",
);
const IF_MATCH: Parameter = Parameter::new(
    "If-Match",
    Kind::Pattern("^\"[0-9A-Fa-f]{64}\"$"),
    "Entity tag that the file must have now: the SHA-256 of its content in quotes.",
);
const REASON: Parameter = Parameter::new("reason", Kind::Text, "Reason written to the journal.");
const PAGE: &[Parameter] = &[LIMIT, AFTER];
const STATES: &[&str] = &[
    "requested",
    "provisioning",
    "ready",
    "active",
    "expired",
    "failed",
    "destroying",
    "destroyed",
];

/// Writes the table: one row is method, path, id, tag and summary; then access, query parameters,
/// headers, body, answers and handler.
macro_rules! operations {
    ($($verb:ident $path:literal $id:literal $tag:literal $summary:literal
        $access:expr, $query:expr, $headers:expr, $body:expr => $answers:expr, $handler:path;)+) => {
        /// Every operation of the API.
        pub(crate) static OPERATIONS: &[Operation] = &[$(Operation {
            verb: Verb::$verb,
            path: $path,
            id: $id,
            tag: $tag,
            summary: $summary,
            access: $access,
            query: $query,
            headers: $headers,
            body: $body,
            answers: $answers,
            handler: |method| on(method, $handler),
        },)+];
    };
}

use Access::{Public, Scope as Needs, Token};
use Body::{AnyJson, Bytes, Events, Json, Lines, Metrics, None as Nothing};

operations! {
    Get "/v1/profiles" "listProfiles" "profiles" "List the profiles that this token may use."
        Needs(Scope::ProfilesRead), &[], &[], Nothing => &[(200, Json("service-profile-list"))], catalog::profiles;
    Get "/v1/profiles/{id}" "getProfile" "profiles" "Get a profile, by id or by id@version."
        Needs(Scope::ProfilesRead), &[], &[], Nothing => &[(200, Json("service-profile"))], catalog::profile;
    Get "/v1/extensions" "listExtensions" "extensions" "List the extensions and what they offer."
        Needs(Scope::ExtensionsRead), &[], &[], Nothing => &[(200, Json("service-extension-list"))], catalog::extensions;
    Get "/v1/extensions/{id}" "getExtension" "extensions" "Get the capabilities of an extension."
        Needs(Scope::ExtensionsRead), &[], &[], Nothing => &[(200, Json("extension-capabilities"))], catalog::extension;
    Get "/v1/hosts" "listHosts" "hosts" "List the hosts."
        Needs(Scope::HostsRead), &[], &[], Nothing => &[(200, Json("service-host-list"))], hosts::list;
    Post "/v1/hosts" "registerHost" "hosts" "Register a host, or replace its record."
        Needs(Scope::HostsWrite), &[], &[], Json("host-record") => &[(201, Json("host-record"))], hosts::register;
    Get "/v1/hosts/{id}" "getHost" "hosts" "Get a host."
        Needs(Scope::HostsRead), &[], &[], Nothing => &[(200, Json("host-record"))], hosts::get;
    Delete "/v1/hosts/{id}" "removeHost" "hosts" "Remove a host that has no sandboxes."
        Needs(Scope::HostsWrite), &[], &[], Nothing => &[(204, Nothing)], hosts::remove;
    Post "/v1/hosts/{id}/drain" "drainHost" "hosts" "Give a host no more sandboxes; those that it has continue."
        Needs(Scope::HostsWrite), &[], &[], Nothing => &[(200, Json("host-record"))], hosts::drain;
    Post "/v1/sandboxes" "createSandbox" "sandboxes" "Create a sandbox of a profile."
        Needs(Scope::SandboxesCreate), &[], &[KEY, WAIT], Json("service-sandbox-input")
            => &[(202, Json("service-sandbox")), (201, Json("service-sandbox"))], sandboxes::create;
    Get "/v1/sandboxes" "listSandboxes" "sandboxes" "List sandboxes, newest first."
        Needs(Scope::SandboxesRead), &[
            LIMIT,
            AFTER,
            Parameter::new("state", Kind::Word(STATES), "Only sandboxes in this state."),
            Parameter::new("profile", Kind::Text, "Only sandboxes of this profile."),
            Parameter::new("idempotency_key", Kind::Text, "Only the sandbox that this token made with this key."),
        ], &[], Nothing => &[(200, Json("service-sandbox-list"))], sandboxes::list;
    Get "/v1/sandboxes/{id}" "getSandbox" "sandboxes" "Get a sandbox, also an ended one."
        Needs(Scope::SandboxesRead), &[], &[
            WAIT,
            Parameter::new("If-None-Match", Kind::Text, "Entity tag of the client's copy."),
        ], Nothing => &[(200, Json("service-sandbox")), (304, Nothing)], sandboxes::get;
    Delete "/v1/sandboxes/{id}" "destroySandbox" "sandboxes" "Destroy a sandbox and wait for its end. A repeated call changes nothing."
        Needs(Scope::SandboxesDestroy), &[REASON], &[], Nothing => &[(200, Json("service-sandbox"))], sandboxes::destroy;
    Post "/v1/sandboxes/{id}/exec" "exec" "sandboxes" "Run a program. The answer is a stream of lines: started, output, then exited or error."
        Needs(Scope::SandboxesExec), &[], &[], Json("service-exec-input") => &[(200, Lines)], exec::exec;
    Get "/v1/sandboxes/{id}/files" "listFiles" "files" "List the files that differ from the host's directory."
        Needs(Scope::FilesRead), &[], &[], Nothing => &[(200, Json("sandbox-sync"))], files::list;
    Get "/v1/sandboxes/{id}/files/{*path}" "readFile" "files" "Read a file; the path is that of the guest without its first slash."
        Needs(Scope::FilesRead), &[], &[], Nothing => &[(200, Bytes)], files::read;
    Put "/v1/sandboxes/{id}/files/{*path}" "writeFile" "files" "Write a file."
        Needs(Scope::FilesWrite), &[], &[
            IF_MATCH,
            Parameter::new("If-None-Match", Kind::Word(&["*"]), "`*`: write only if the file does not exist."),
        ], Bytes => &[(200, Json("sandbox-sync"))], files::write;
    Delete "/v1/sandboxes/{id}/files/{*path}" "deleteFile" "files" "Delete a file."
        Needs(Scope::FilesWrite), &[], &[IF_MATCH], Nothing => &[(200, Json("sandbox-sync"))], files::delete;
    Get "/v1/sandboxes/{id}/journal" "readJournal" "sandboxes" "Read the journal of a sandbox."
        Needs(Scope::SandboxesRead), &[AFTER], &[], Nothing => &[(200, Json("service-journal"))], sandboxes::journal;
    Post "/v1/sandboxes/{id}/extend-ttl" "extendTtl" "sandboxes" "Set the remaining lifetime, counted from now."
        Needs(Scope::SandboxesWrite), &[], &[], Json("service-extend-ttl-input")
            => &[(200, Json("service-sandbox"))], sandboxes::extend_ttl;
    Post "/v1/sandboxes/{id}/snapshots" "takeSnapshot" "snapshots" "Take a snapshot of files and database."
        Needs(Scope::SnapshotsWrite), &[], &[], Json("service-snapshot-input")
            => &[(201, Json("sandbox-snapshot"))], snapshots::take;
    Post "/v1/sandboxes/{id}/restore" "restoreSnapshot" "snapshots" "Replace the state of a sandbox by a snapshot."
        Needs(Scope::SandboxesWrite), &[], &[], Json("service-restore-input")
            => &[(200, Json("service-sandbox"))], snapshots::restore;
    Post "/v1/sandboxes/{id}/recreate" "recreateSandbox" "sandboxes" "Destroy a sandbox and make a new one from the same parameters."
        Needs(Scope::SandboxesDestroy), &[], &[WAIT], Nothing
            => &[(202, Json("service-sandbox")), (201, Json("service-sandbox"))], sandboxes::recreate;
    Get "/v1/snapshots" "listSnapshots" "snapshots" "List the snapshots of this token's sandboxes."
        Needs(Scope::SnapshotsRead), &[], &[], Nothing => &[(200, Json("service-snapshot-list"))], snapshots::list;
    Delete "/v1/snapshots/{id}" "removeSnapshot" "snapshots" "Remove a snapshot."
        Needs(Scope::SnapshotsWrite), &[], &[], Nothing => &[(200, Json("sandbox-snapshot-removal"))], snapshots::remove;
    Post "/v1/routes" "decideRoute" "routes" "Explain where a sandbox would run, without making one."
        Needs(Scope::RoutesRead), &[], &[], Json("service-route-input") => &[(200, Json("route-decision"))], prices::route;
    Post "/v1/quotes" "quoteSandbox" "routes" "Return price and estimated use of a sandbox."
        Needs(Scope::RoutesRead), &[], &[], Json("service-route-input") => &[(200, Json("service-quote"))], prices::quote;
    Get "/v1/meters" "listMeters" "meters" "List what this token's sandboxes used, newest first."
        Needs(Scope::MetersRead), PAGE, &[], Nothing => &[(200, Json("service-meter-list"))], prices::meters;
    Get "/v1/events" "streamEvents" "events" "Stream events of sandboxes and hosts."
        Needs(Scope::EventsRead), &[
            AFTER,
            Parameter::new("sandbox", Kind::Text, "Only events of this sandbox."),
            Parameter::new("follow", Kind::Word(&["end", "now"]), "`now` ends the stream after the stored events."),
        ], &[Parameter::new("Last-Event-ID", Kind::Text, "Id of the last event that the client has.")],
        Nothing => &[(200, Events)], events::stream;
    Get "/v1/webhooks" "listWebhooks" "webhooks" "List the webhooks of this token."
        Needs(Scope::WebhooksRead), &[], &[], Nothing => &[(200, Json("service-webhook-list"))], webhooks::list;
    Post "/v1/webhooks" "createWebhook" "webhooks" "Create a webhook. The answer has the key of its signatures, this one time."
        Needs(Scope::WebhooksWrite), &[], &[], Json("service-webhook-input") => &[(201, Json("service-webhook"))], webhooks::create;
    Delete "/v1/webhooks/{id}" "removeWebhook" "webhooks" "Remove a webhook with its queued deliveries."
        Needs(Scope::WebhooksWrite), &[], &[], Nothing => &[(204, Nothing)], webhooks::remove;
    Get "/v1/runs" "listRuns" "runs" "List the runs of this token, newest first."
        Needs(Scope::RunsRead), PAGE, &[], Nothing => &[(200, Json("run-list"))], runs::list;
    Post "/v1/runs" "startRun" "runs" "Start a detached run from a task, within the bounds of a profile."
        Needs(Scope::RunsWrite), &[
            Parameter::new("profile", Kind::Text, "Profile that bounds the run, by id or by id@version. A token whose scope is limited to profiles must name one."),
            Parameter::new("account", Kind::Text, "Account that pays, if credits are on; only the administrator of the machine may name another one than that of the token."),
        ], &[], Json("run-agent-task-input") => &[(202, Json("run-handle"))], runs::start;
    Get "/v1/runs/{id}" "getRun" "runs" "Get a run."
        Needs(Scope::RunsRead), &[], &[], Nothing => &[(200, Json("run"))], runs::get;
    Delete "/v1/runs/{id}" "cancelRun" "runs" "Cancel a run."
        Needs(Scope::RunsWrite), &[REASON], &[], Nothing => &[(202, Json("run-cancellation"))], runs::cancel;
    Get "/v1/runs/{id}/events" "listRunEvents" "runs" "Read a page of a run's journal."
        Needs(Scope::RunsRead), &[AFTER], &[], Nothing => &[(200, Json("run-events"))], runs::events;
    Get "/v1/artifacts" "listArtifacts" "artifacts" "List the artifact bundles of this token's runs, newest first."
        Needs(Scope::ArtifactsRead), PAGE, &[], Nothing => &[(200, Json("artifact-list"))], runs::artifacts;
    Get "/v1/artifacts/{id}" "getArtifact" "artifacts" "Get an artifact bundle."
        Needs(Scope::ArtifactsRead), &[], &[], Nothing => &[(200, Json("artifact"))], runs::artifact;
    Get "/v1/artifacts/{id}/verify" "verifyArtifact" "artifacts" "Verify digests and signature of a bundle."
        Needs(Scope::ArtifactsRead), &[], &[], Nothing => &[(200, AnyJson)], runs::verify;
    Get "/v1/openapi.json" "getOpenApi" "service" "Get this description."
        Public, &[], &[], Nothing => &[(200, AnyJson)], health::describe;
    Get "/v1/whoami" "whoAmI" "service" "Get the actor and the scopes of this token."
        Token, &[], &[], Nothing => &[(200, Json("service-whoami"))], health::whoami;
    Get "/healthz" "isAlive" "service" "Answer as soon as the server runs."
        Public, &[], &[], Nothing => &[(204, Nothing)], health::healthz;
    Get "/readyz" "isReady" "service" "Answer whether the server takes requests for sandboxes."
        Public, &[], &[], Nothing => &[(204, Nothing)], health::readyz;
    Get "/metrics" "readMetrics" "service" "Read counters in the format of Prometheus."
        Needs(Scope::MetricsRead), &[], &[], Nothing => &[(200, Metrics)], health::metrics;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn operation_ids_and_paths_with_methods_are_unique() {
        let ids: BTreeSet<_> = OPERATIONS.iter().map(|row| row.id).collect();
        let paths = OPERATIONS.iter().map(|row| (row.path, row.verb.name()));
        let paths: BTreeSet<_> = paths.collect();
        let count = OPERATIONS.len();
        assert_eq!((ids.len(), paths.len()), (count, count));
    }

    #[test]
    fn only_the_openapi_document_and_health_checks_are_open_without_a_token() {
        let open: Vec<_> = OPERATIONS
            .iter()
            .filter(|row| matches!(row.access, Access::Public))
            .map(|row| row.path)
            .collect();
        assert_eq!(open, ["/v1/openapi.json", "/healthz", "/readyz"]);
    }
}
