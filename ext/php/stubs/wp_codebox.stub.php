<?php
/**
 * Stub of the `wp_codebox` extension, kept by hand. A test compares it with
 * Reflection of the loaded extension.
 *
 * Arrays are JSON objects and lists as described by the schemas in
 * `abilities/schemas/`. Sizes are bytes, times are milliseconds unless a name
 * says otherwise. Every method that fails throws a `WPCodebox\Native\Exception`; an
 * argument of the wrong PHP type is a `TypeError`, whatever `strict_types` says.
 * Arguments are JSON: text must be UTF-8, objects are not accepted, nesting is at most
 * 64 levels, and one argument holds at most 500,000 values and 16 MiB of text. `[]`
 * stands for an empty list and for an empty object.
 *
 * @package WPCodebox
 */

namespace WPCodebox\Native;

/**
 * An error with a stable code.
 *
 * `getMessage()` is one sentence: what is wrong and what to do. It never
 * contains a secret.
 */
class Exception extends \RuntimeException
{
    /** Stable code, e.g. `wp_codebox_mount_denied`. */
    public readonly string $errorCode;
    /** HTTP status that belongs to the code. */
    public readonly int $httpStatus;
    /** Process exit status that belongs to the code: 1, 3, 124, 125, 126 or 130. */
    public readonly int $exitStatus;
    /** Further things to try, each one line. @var list<string> */
    public readonly array $hints;
    /** Structured detail. @var array<string, mixed> */
    public readonly array $data;
}

/** The input is wrong: change it and call again. */
final class InvalidInputException extends Exception {}
/** Policy or permissions deny the operation. */
final class DeniedException extends Exception {}
/** The named object does not exist. */
final class NotFoundException extends Exception {}
/** The state differs from the one that the caller expects. */
final class ConflictException extends Exception {}
/** A bundle or signature is not what it claims to be. */
final class IntegrityException extends Exception {}
/** A limit was reached. */
final class LimitException extends Exception {}
/** This host lacks a required service or resource. */
final class UnavailableException extends Exception {}
/** A defect of the extension or an I/O failure. */
final class InternalException extends Exception {}

/** Version and configuration of the extension. */
final class Extension
{
    private function __construct() {}

    /** Semantic version of the extension, e.g. `0.1.0`. */
    public static function version(): string {}

    /**
     * sha256 over the schemas built into the extension: for each file of
     * the plugin's `abilities/schemas/*.json`, sorted bytewise by name, the name, `\n`,
     * its length in decimal, `\n`, its bytes, `\n`. The plugin compares it with the
     * digest in its own `abilities/manifest.php`.
     */
    public static function contractDigest(): string {}

    /**
     * Effective configuration, without secrets: `version`, `contract_digest`,
     * `protocol`, `php_api`, `state_dir`, `share_dir`, `runner`, `launcher`,
     * `php_binary`, `cgroup`, `identity`, `guest_ids` (texts as set), `mount_roots` (list),
     * `outer_sandbox`, `outer_sandbox_program`,
     * `max_runs` and `max_groups` (int; the text of the setting when it is none),
     * `max_limits` (the highest limits of a run, by name; null: none; the text of the setting when it
     * is invalid), `default_ceilings` (the same for limits without a ceiling of the host), `runner_socket`,
     * `provider_keys` and `private_models` (lists of their entries), `agents_dir`,
     * `agents`: the presets of command-line agents [{name, title, about, apis, license,
     * homepage, install, network, installed}].
     *
     * @return array<string, mixed>
     */
    public static function info(): array {}

    /**
     * Runs the host self-test in the supervisor: `wp-codebox/doctor/v1` with `status`
     * (`ok`, `warning`, `error`), `level` and `checks` [{id, status, message, fix?}]. With
     * `wp_codebox.runner_socket` set, the row `runner-socket` states whether this user may connect
     * to it; the check itself does not connect.
     *
     * @throws UnavailableException When the supervisor cannot be started.
     * @return array<string, mixed>
     */
    public static function doctor(): array {}

    /**
     * Removes leftovers of a site's runs: directories of ended runs by age and size, scratch of
     * dead runs, unfinished bundles, unused templates, empty control groups. Keeps everything of
     * live runs, and all bundles unless `artifacts_max_age_seconds` is given.
     *
     * @param array<string, mixed> $options `max_age_seconds` (default 30 days), `max_bytes`,
     *                                      `artifacts_max_age_seconds`, `dry_run`.
     * @throws UnavailableException When the supervisor cannot be started.
     * @return array<string, mixed> `wp-codebox/gc/v1`; `success` is false when a removal failed.
     */
    public static function gc(string $site, array $options = []): array {}
}

/** Runtime policy and the command registry. */
final class Policy
{
    private function __construct() {}

    /**
     * Returns the default policy for a set of commands: network deny, filesystem
     * readwrite-mounts, secrets none, approvals never.
     *
     * @param list<string> $commands
     * @return array<string, mixed>
     */
    public static function defaults(array $commands = []): array {}

    /**
     * Checks a policy document.
     *
     * @param array<string, mixed> $policy
     * @return list<array{code: string, field: string, message: string}> Empty when valid and enforceable here.
     */
    public static function validate(array $policy): array {}

    /**
     * Throws unless the policy is valid, enforceable and lists the command.
     *
     * @param array<string, mixed> $policy
     * @throws InvalidInputException `runtime-policy-invalid`.
     * @throws DeniedException `runtime-command-disallowed`, `wp_codebox_policy_unenforceable`.
     */
    public static function assertCommand(array $policy, string $command): void {}

    /**
     * Returns the command catalogue, `wp-codebox/command-catalog/v1`.
     *
     * @return array<string, mixed>
     */
    public static function commands(): array {}
}

/** Artifact bundles: digests, verification, review data, apply preflight. */
final class Artifacts
{
    private function __construct() {}

    /**
     * Returns the canonical JSON of a value, as used by every digest. Values beyond 300 keys,
     * 2,000 items or 30 levels, which the public system would drop silently, are refused.
     */
    public static function canonicalJson(mixed $value): string {}

    /**
     * Returns the content digest over named files of a bundle directory, in order:
     * `{algorithm, inputs, value}`.
     *
     * @param list<string> $inputs
     * @return array<string, mixed>
     */
    public static function contentDigest(string $directory, array $inputs = ['files/changed-files.json', 'files/patch.diff']): array {}

    /**
     * Verifies any bundle directory: `wp-codebox/artifact-bundle-verification/v1`
     * with `bundleDirectory` (its path), `valid`, all `violations`, `signature` {status, key_id?, coverage?, origin?} and, when the manifest
     * could be read, `manifest` and `manifest_sha256`. `coverage` of a valid signature:
     * `manifest`, or `files` for a signature of an earlier version, which does not cover the
     * manifest's keys other than identity, runtime and list of files. `$options`: `trusted_keys`
     * (list of ids of the other hosts' keys that the site trusts; such a key gives the status
     * `signed-by-known` or `browser-origin-known`).
     *
     * @param array<string, mixed> $options
     * @return array<string, mixed>
     */
    public static function verify(string $directory, array $options = []): array {}

    /**
     * Lists the bundles of a site, newest first: rows of `{artifact_id, run_id, created_at,
     * outcome, summary, changed_files, directory, valid_manifest}`.
     *
     * @return list<array<string, mixed>>
     */
    public static function list(string $site): array {}

    /**
     * Returns one bundle by artifact id, run id, or a unique prefix of either: `artifact_id`,
     * `run_id`, `directory`, `created_at`, `manifest`, `metadata`, `changed_files`, `review`, `test_results`.
     *
     * @throws NotFoundException  `wp_codebox_artifact_not_found`.
     * @throws ConflictException `wp_codebox_artifact_ambiguous`.
     * @return array<string, mixed>
     */
    public static function get(string $site, string $reference): array {}

    /**
     * Returns the patch, whole or for some changed paths. The bundle must verify; its signature
     * may be of any key.
     *
     * @param list<string> $paths
     */
    public static function diff(string $site, string $reference, array $paths = []): string {}

    /**
     * Returns the data that an apply needs, or throws. `$request`: `approved_files`
     * (list), `manifest_sha256` (string, optional: hash of the reviewed manifest), `targets`
     * (map declared mount target → host directory, for the base check), `confirm_browser_origin`
     * (bool: an approver confirmed that a browser uploaded the contents; without it, a bundle of
     * such contents throws `wp_codebox_apply_browser_origin_unconfirmed`), `trusted_keys` (as for
     * `verify()`; from the settings of the site, never from a caller).
     * Result: `artifact_id`, `run_id`, `approved_files`, `changed_files` (approved entries),
     * `patch`, `patch_sha256`, `mount_patches` [{mount_target, mount_index, patch, sha256}],
     * `content_digest`, `manifest_sha256`, `signature`, `verification`.
     *
     * @param array<string, mixed> $request
     * @return array<string, mixed>
     */
    public static function preflight(string $site, string $reference, array $request): array {}

    /** Deletes a bundle, even one that does not verify. Returns `{artifact_id?, run_id, discarded: true}`. @return array<string, mixed> */
    public static function discard(string $site, string $reference): array {}

    /**
     * Appends one record to the site's hash-chained audit log, secrets redacted. Returns
     * `{record, anchor}`: the record with `seq`, `previous`, `hash` and `timestamp`; and the
     * signed anchor of the log's length and head. Store the anchor outside the state directory
     * under its `key_id` and pass it as `$anchors[key_id]` to every later call.
     *
     * @param array<string, mixed> $record
     * @param array<string, array<string, mixed>> $anchors
     * @return array<string, mixed>
     */
    public static function audit(string $site, #[\SensitiveParameter] array $record, array $anchors = []): array {}

    /**
     * Reads and checks the audit log: `{records, total, chain: {valid, head, broken_at?,
     * problem?}}`. `chain` is about the whole log: every record is hashed by the first call of a
     * process after the file changed (inode, size or times); further calls of the process read only
     * the requested records. Each call compares the log with the anchor in the state directory and
     * `$anchors`, which reveal records removed from the end. Returns records with a `seq` greater
     * than `$after`, oldest first, at most `$limit` (at most 10,000). A negative `$after`
     * selects that many of the newest records. `head` is the hash of the last record.
     *
     * @param array<string, array<string, mixed>> $anchors
     * @return array<string, mixed>
     */
    public static function auditRecords(string $site, int $after = 0, int $limit = 100, array $anchors = []): array {}

    /**
     * Returns `{records, complete, since}`: the newest 10,000 audit records that name one of the
     * runs in `run_id` or `artifact_id`, oldest first. Searches the last 64 MiB of the log. When
     * older records exist, `complete` is false and `since` is the time of the first searched
     * record; otherwise `since` is null. Does not check the hash chain.
     *
     * @param list<string> $runs
     * @return array<string, mixed>
     */
    public static function auditOf(string $site, array $runs): array {}

    /**
     * Returns `{records, complete, since}` like `auditOf()`: the newest `$limit` (at most 10,000)
     * audit records of the operations, oldest first, of those with a `seq` lower than `$before`; 0
     * selects the newest. Leaves out a record with the status `started` if the same run has a later
     * record of the operation with another status. Does not check the hash chain.
     *
     * @param array<string, string> $operations Name of the operation by event.
     * @return array<string, mixed>
     */
    public static function auditOfOperations(string $site, array $operations, int $before = 0, int $limit = 50): array {}

    /**
     * Writes a bundle that verifies as a tar archive to a new file (`$path` absolute, mode
     * 0600). Equal bundles give equal bytes. Returns `{path, bytes, sha256, artifact_id,
     * run_id}`.
     *
     * @throws InternalException `wp_codebox_artifact_export_failed`.
     * @return array<string, mixed>
     */
    public static function export(string $site, string $reference, string $path): array {}

    /**
     * Returns the archive that `export()` writes as a string.
     *
     * @throws InvalidInputException `wp_codebox_artifact_too_large`.
     */
    public static function archive(string $site, string $reference, int $maxBytes): string {}

    /**
     * Returns approved files of a bundle that verifies: their part of the patch, or their new
     * contents as a zip archive.
     *
     * @param list<string> $files Changed paths; all if empty.
     * @param string       $form  `patch` or `zip`.
     * @throws InvalidInputException `wp_codebox_approved_files_invalid`,
     *                               `wp_codebox_artifact_too_large`.
     * @throws IntegrityException `wp_codebox_artifact_verification_failed`.
     */
    public static function download(string $site, string $reference, array $files, string $form, int $maxBytes): string {}

    /**
     * Imports a bundle created elsewhere: a bundle directory, its manifest.json, or an archive
     * (tar, also gzipped; at most 256 MiB of members). The bundle is verified during the import;
     * a bundle that does not verify is not stored. `$options`: `expected_artifact_id`,
     * `expected_content_digest` (hex), `replace` (bool: replaces another bundle of the
     * same run), `allowed_roots` (list, absent for the operator), `trusted_keys` (as for `verify()`). An import does not make a key trusted:
     * see `verification.signature`. Returns `{status, artifact_id, run_id, directory,
     * manifest_sha256, verification}`, `status` being `created`, `existing` or `updated`.
     *
     * @param array<string, mixed> $options
     * @return array<string, mixed>
     */
    public static function import(string $site, string $path, array $options = []): array {}

    /**
     * Imports a bundle from archive bytes, otherwise like `import()`.
     *
     * @param array<string, mixed> $options
     * @return array<string, mixed>
     */
    public static function importArchive(string $site, string $bytes, array $options = []): array {}

    /**
     * Stores contents that a browser uploaded as a bundle. Changed files, patch and digests are
     * computed here, and the bundle is signed with the statement that a browser uploaded it, which
     * gives it the signature status `browser-origin`. `$request`: `identity` (text that
     * distinguishes callers and sessions; an equal upload with an equal text gives the stored
     * bundle), `roots` (list of {name, target, files?, baseline?, metadata?}; `name` is the beginning
     * of uploaded paths, such as `plugins/foo`, `target` the mount target; with `files` only these
     * files of the directory may change; a source in `baseline` is {path, sha256} of a zip archive,
     * or {directory}),
     * `files` (list of {path, content} or {path, content_base64}), `deleted` (list of paths),
     * `provenance` (for `metadata.json`, redacted). At most 5,000 files and 50 MiB. Returns
     * `{status, artifact_id, run_id, directory, manifest_sha256, verification}`, `status` being
     * `created` or `existing`.
     *
     * @param array<string, mixed> $request
     * @throws InvalidInputException `wp_codebox_browser_artifact_path_invalid` and other codes.
     * @throws ConflictException `wp_codebox_browser_artifact_unchanged`.
     * @return array<string, mixed>
     */
    public static function compose(string $site, array $request): array {}

    /**
     * Returns the entries of `files/changed-files.json`, each with its part of the patch as
     * `patch`, or as `patch_base64` if it is not UTF-8, and `truncated` if it was longer than
     * 1 MiB. The bundle must verify; its signature may be of any key.
     *
     * @return list<array<string, mixed>>
     */
    public static function files(string $site, string $reference): array {}
}

/** Redaction of secrets in text and data. */
final class Redactor
{
    private function __construct() {}

    /**
     * Replaces known secret forms and the given values by `[REDACTED:<kind>]`. The
     * text may be any bytes.
     *
     * @param list<string> $values
     */
    public static function text(#[\SensitiveParameter] string $text, #[\SensitiveParameter] array $values = []): string {}

    /**
     * Redacts nested data like `text()`; values under secret-sounding keys become `[redacted]`.
     *
     * @param array<mixed> $data
     * @return array<mixed>
     */
    public static function data(#[\SensitiveParameter] array $data, #[\SensitiveParameter] array $values = []): array {}
}

/** One run: a handle of its process. */
final class Run
{
    private function __construct() {}

    /**
     * Validates the request in the PHP process, connects to a supervisor and returns when the supervisor
     * has accepted the request.
     *
     * `$task` is the unmodified input of the caller: the fields of the ability run-agent-task.
     * Names of site objects (`plugin`, `agent`, `model`, `secret_env`, ...) are not resolved
     * here; ids of external orchestrators are dropped.
     *
     * `$host` has the site's values, which replace the caller's even when they are null: `site`,
     * `mode` (`attached`, the default, or `detached`), `mounts`
     * [{source, target, mode?, exclude?, git?, metadata?}], `policy`, `limits`, `staged_files`, `commands`,
     * `resolved_seeds` [{name, scopes, content}]: for each row of `site_seeds`, the fixture that it selects as JSON text,
     * `resolved_agent`: a program {argv, success_codes?, env?}, a preset {kind: `preset`, name}, the built-in agent {kind: `model`,
     * budget? {turns, input_tokens, output_tokens, cost_microusd}, instructions?}, or an
     * ability of the guest's WordPress {kind: `ability`, ability, input?}; `resolved_model`
     * {provider, model, api: `openai-chat` or `anthropic-messages`, base_url, secret? (name
     * of one of `secrets`), private? (allows a base_url on this host or in a private network;
     * otherwise only public addresses are allowed), context_tokens?, max_output_tokens?, prices? {input,
     * cached_input?, output}: millionths of a US dollar per million tokens}, `sandbox_tool_policy`
     * (sandbox-tool-policy/v1), `parent_tools` {tools [{id, description, input_schema}],
     * timeout_ms?}, `components` [{slug, source, load_as?: `plugin` or `mu-plugin`, entry?,
     * activate?, required?, readiness_probe? {type: `ability` or `filter`, name}}],
     * `hold` {ttl_ms, max_ttl_ms?, idle_ms?, preview? {bind?, port?, public_url?, token?}}: keeps
     * the sandbox alive after agent and commands have finished, for `Sandbox::ask()`; `secrets` [{env, value, hosts}] (the sandbox gets a
     * placeholder, and the value is sent to the named hosts only; the policy must be
     * `connector-scoped` and allow these hosts), `redact`, `provenance`, `wordpress`
     * (core directory), `denied` (list of directories that are not mounted, including their
     * parents and subdirectories), `code_roots` (list: directories of plugins and themes,
     * which may lie below a denied one), `allowed_roots` (list, absent for the operator), `max_runs` (limit of concurrent runs of this site, if lower than
     * `wp_codebox.max_runs`), `share` {runs?, ceilings?, spend?}: what the requester named in
     * `provenance.requester` {kind: `user`, `operator` or another, id} may have. `runs`: concurrent
     * runs of the requester, default half of `max_runs`. `ceilings`: highest `limits`, default
     * `default_ceilings` of `Extension::info()`, never above `wp_codebox.max_limits`; a task above one
     * is refused with `wp_codebox_limit_invalid`. `spend` {site_microusd?, requester_microusd?}: most
     * model cost of all requesters and of this one in a calendar month (UTC), in millionths of a US
     * dollar. A run above `runs` is refused with `wp_codebox_busy`, and one above a cap with
     * `wp_codebox_budget_exhausted`. The paths of binaries, that limit and the connection to the supervisor
     * (`wp_codebox.runner_socket`: a socket-activated service; if empty, PHP starts the supervisor)
     * come from the INI settings only.
     *
     * Unknown fields, and host fields in `$task`, are refused by name; if there are several
     * errors, `data.issues` lists all of them. An accepted run has a directory, so `Runs` finds
     * it from then on.
     *
     * An attached run ends with its caller: it is cancelled when the handle is dropped, at
     * the end of the request, when an exception or a fatal error leaves `wait()`, when the
     * client of a FastCGI request disconnects during `wait()` (unless `ignore_user_abort` is
     * on), and when the process dies. A detached run survives all of these.
     *
     * @param array<string, mixed> $task
     * @param array<string, mixed> $host
     * @throws UnavailableException `wp_codebox_busy` (429, exit 125): the site has
     *                              reached its limit of concurrent runs. `wp_codebox_runner_unavailable`.
     */
    public static function start(#[\SensitiveParameter] array $task, #[\SensitiveParameter] array $host): Run {}

    /**
     * Validates a request exactly as `start()` does, in the same order, without starting a
     * run. `mounts` and `resolved_agent` may still be missing.
     *
     * @param array<string, mixed> $task
     * @param array<string, mixed> $host
     * @throws InvalidInputException|DeniedException The exception that `start()` would throw.
     */
    public static function validate(#[\SensitiveParameter] array $task, #[\SensitiveParameter] array $host): void {}

    /**
     * Splits a command line like a POSIX shell would, without expansion.
     *
     * @throws InvalidInputException `wp_codebox_input_invalid` for an open quote, and for unquoted
     *                               syntax that only a shell understands.
     * @return list<string>
     */
    public static function splitCommand(#[\SensitiveParameter] string $line): array {}

    /**
     * Replaces the host files that command lines name by their absolute paths by guest paths, and
     * lists these files for `staged_files`. Only for command lines of the operator.
     *
     * @param list<string> $lines
     * @throws InvalidInputException As `splitCommand()`.
     * @throws DeniedException `wp_codebox_mount_denied` for a file that looks like a secret.
     * @return array{lines: list<string>, files: list<array{source: string, target: string}>}
     */
    public static function stageCommands(#[\SensitiveParameter] array $lines): array {}

    /** Returns the run id: `run_` and 32 hex digits. */
    public function id(): string {}

    /**
     * Waits until the run ends. `$onEvent` gets each lifecycle event as an array; if it returns
     * false, the run is cancelled and writes a recovery bundle. Returns
     * `wp-codebox/run-result/v1` plus the values for its `outcome`: `session_status` (`completed` or
     * `failed`), `success` (bool) and `exit_status` (int).
     *
     * With `$timeoutMs`, returns null when the time is up and the run continues; the next
     * `wait()` continues with the next event, so no event is lost or repeated. 0 processes
     * the events that have arrived without waiting. After the end, returns the same result again.
     * A caller that does not read megabytes of events gets no further events, only the result
     * with a notice: a slow reader never delays a run. `Runs::events()` returns all events.
     *
     * Limits of a wait: `$timeoutMs`, the run's own `limits.wall_clock_ms` (default 15
     * minutes), php-fpm's `request_terminate_timeout`, and the web server's timeout, which
     * closes the connection. `max_execution_time` does not limit a wait: on Linux it counts CPU
     * time, and a wait uses almost none. It does end a callback that uses too much CPU time. The
     * wait keeps the PHP session locked for other requests: call `session_write_close()` before.
     *
     * `$onToolRequest` answers the built-in agent's calls of `parent_tools`: it gets a
     * `wp-codebox/parent-tool-request/v1` and returns a `parent-tool-result/v1`, of which
     * `status`, `output`, `error`, `artifacts` and `diagnostics` are used; the extension sets the
     * other members. The function must authorise each call: the supervisor only checks that the tool
     * is listed. Without the function, or while no caller waits, the result of such a call is
     * `unavailable` or `timeout`.
     *
     * An exception from `$onEvent` or `$onToolRequest` is passed through `wait()` unchanged. It
     * cancels an attached run; a detached run continues, and the handle can wait again.
     *
     * @throws InvalidInputException `wp_codebox_input_invalid` for a negative `$timeoutMs`.
     * @throws Exception The error of a run that ended without an outcome.
     * @return array<string, mixed>|null
     */
    public function wait(?callable $onEvent = null, ?int $timeoutMs = null, ?callable $onToolRequest = null): ?array {}

    /**
     * Detaches the run: it continues when its caller ends. The handle can still `wait()` and
     * `cancel()`. Does nothing if the run is already detached or has ended.
     */
    public function detach(): void {}

    /** Asks the supervisor to stop the run and write a recovery bundle; `wait()` still returns the result. Does nothing after the end. */
    public function cancel(): void {}
}

/**
 * The documents about an ended agent task. The command line builds the same documents. The methods
 * start no process and read no file.
 */
final class AgentTask
{
    private function __construct() {}

    /**
     * Returns the input of a task with only the fields of a task: unpacks `agent_workload`,
     * `workload`, `parent_request` and a whole `task-input/v1`, trims texts and lists, and removes
     * repeated items. `Run::start()` does the same.
     *
     * @param array<string, mixed> $input
     * @throws InvalidInputException `wp_codebox_input_invalid`, `wp_codebox_task_missing`.
     * @return array<string, mixed>
     */
    public static function input(array $input): array {}

    /**
     * Returns the members `session`, `task`, `task_input` and `wp` of a run handle, for a run that
     * has just started.
     *
     * @param array<string, mixed> $input Input of the task.
     * @param array<string, mixed> $task  The task as the agent reads it, `wp-codebox/task-input/v1`.
     * @return array<string, mixed>
     */
    public static function started(array $input, array $task, string $runId, string $wordpress): array {}

    /**
     * Builds the document about a task whose run has ended: `wp-codebox/agent-task-run/v1`, with
     * `agent_task_run_result`, `headless_agent_task_result`, `artifact_result` and `outputs`.
     *
     * @param array<string, mixed> $input     Input of the task; its `sandbox_session_id`,
     *                                        `session_id` and `orchestrator` are returned.
     * @param array<string, mixed> $task      The task as the agent read it,
     *                                        `wp-codebox/task-input/v1`.
     * @param array<string, mixed> $result    Result of `Run::wait()`, or `result` of `Runs::get()`.
     * @param array<string, mixed> $model     `provider`, `model` and `credential` of the run's
     *                                        model, without secret values; `[]` without a model.
     * @param string               $wordpress WordPress version of the guest.
     * @param array<string, mixed> $preview   Data of the last event about the run's preview; `[]`
     *                                        without a preview.
     * @throws InvalidInputException `wp_codebox_input_invalid` for a result without `outcome` or
     *                               `run_id`.
     * @return array<string, mixed>
     */
    public static function answer(array $input, array $task, array $result, array $model, string $wordpress, array $preview = []): array {}

    /**
     * Returns the row of a task in a batch or fan-out, without the members that `Batch::settle()`
     * and `Fanout::settle()` return.
     *
     * @param array<string, mixed> $document Result of `answer()`.
     * @return array<string, mixed>
     */
    public static function row(array $document): array {}
}

/**
 * Runs of a site, including those of other callers. A reference is a run id or its unique prefix.
 *
 * Each call first updates the records of dead runs. The calling code must authorise the user.
 */
final class Runs
{
    private function __construct() {}

    /**
     * Lists runs, newest first: `wp-codebox/run-list/v1` {schema, total, runs}. Each run has the
     * form that `get()` returns, without `result`.
     *
     * @param array<string, mixed> $filter `status` (`running` or `ended`), `limit` (1 to 200,
     *                                     default 50), `offset`; `requester` (id of the user who
     *                                     asked for the run), with it `prefix` of the run id.
     * @return array<string, mixed>
     */
    public static function list(string $site, array $filter = []): array {}

    /**
     * Returns one run: `wp-codebox/run/v1`, with `result` (`wp-codebox/run-result/v1`) if it has
     * one. For an ended run also `session_status`, `success` and `exit_status` as in
     * `Run::wait()`; without an outcome they follow from its `error`.
     *
     * @throws NotFoundException `wp_codebox_run_not_found`.
     * @throws ConflictException `wp_codebox_run_ambiguous`.
     * @return array<string, mixed>
     */
    public static function get(string $site, string $reference): array {}

    /**
     * Returns a page of a run's events: `wp-codebox/run-events/v1`. `$after` is the `cursor` of
     * the previous page, 0 for the first; `$limit` is 1 to 1000.
     *
     * @throws NotFoundException `wp_codebox_run_not_found`.
     * @throws ConflictException `wp_codebox_run_ambiguous`.
     * @return array<string, mixed>
     */
    public static function events(string $site, string $reference, int $after = 0, int $limit = 200): array {}

    /**
     * Asks the run's supervisor to stop the run and write a recovery bundle, also for a run of
     * another process:
     * `wp-codebox/run-cancellation/v1` with `answer` (`requested` or `already_ended`).
     *
     * @throws NotFoundException `wp_codebox_run_not_found`.
     * @throws ConflictException `wp_codebox_run_ambiguous`.
     * @return array<string, mixed>
     */
    public static function cancel(string $site, string $reference): array {}
}

/**
 * Changes of files of the site and their journal. A change runs in a process of the supervisor that
 * ends its work even if PHP dies; a change that was interrupted is finished or reversed by the
 * next call.
 */
final class Changes
{
    private function __construct() {}

    /**
     * Applies approved files of a bundle: all of them, or none after an error. If `health` is
     * given and the site got worse, all files are restored.
     *
     * @param array<string, mixed> $change  `reference` (bundle or run id), `approved_files`,
     *                                      `manifest_sha256`, `patch_sha256`, `targets` (host
     *                                      directory by mount target), `trusted_keys` (as for
     *                                      `Artifacts::verify()`).
     * @param array<string, mixed> $options `health`: {`pages`: list of {name, url, cookie?},
     *                                      `logs?`: list of paths, `settle_ms?`: time until PHP
     *                                      notices changed files by itself}.
     * @param callable|null $onWritten      Gets the host paths after they were written; it drops
     *                                      them from the opcode cache.
     * @throws ConflictException `wp_codebox_apply_conflict`, `wp_codebox_apply_syntax_invalid`,
     *                           `wp_codebox_artifact_changed`.
     * @throws InternalException `wp_codebox_apply_failed`.
     * @return array<string, mixed> `status` (`applied`, `rolled-back`, `roll-back-failed`),
     *                              `change` (id), `files`, `conflicts`, `health?`.
     */
    public static function apply(string $site, array $change, array $options = [], ?callable $onWritten = null): array {}

    /**
     * Restores the files of an applied change. Files that changed since are listed as conflicts.
     *
     * @param list<string>         $files   Paths relative to their target, or guest paths; all if empty.
     * @param array<string, mixed> $options As for `apply()`.
     * @throws NotFoundException `wp_codebox_apply_not_found`.
     * @throws ConflictException `wp_codebox_apply_undone`, `wp_codebox_apply_conflict`.
     * @return array<string, mixed> `status` (`restored`, `restored-in-part`), `change`, `files`,
     *                              `conflicts`, `health?`.
     */
    public static function rollBack(string $site, string $change, array $files = [], array $options = [], ?callable $onWritten = null): array {}

    /**
     * Commits approved files of a bundle on a branch of a git repository. Work tree and index of
     * the repository stay as they are, and nothing is pushed. The same call again returns the
     * commit that it made.
     *
     * @param array<string, mixed> $change `reference` (bundle or run id), `approved_files`,
     *                                     `manifest_sha256`, `patch_sha256`, `repository` (host
     *                                     directory), `directories` (directory in the repository by
     *                                     mount target), `branch`, `base`, `author` and `committer`
     *                                     ({name, email}), `approver`, `trusted_keys` (as for
     *                                     `Artifacts::verify()`).
     * @throws UnavailableException `wp_codebox_git_repository_invalid`.
     * @throws ConflictException `wp_codebox_git_branch_conflict`, `wp_codebox_apply_conflict`,
     *                           `wp_codebox_artifact_changed`.
     * @throws InternalException `wp_codebox_git_failed`.
     * @return array<string, mixed> `status` (`committed`), `change` (hash of the commit), `files`
     *                              (approved paths that it has), `conflicts`.
     */
    public static function commit(string $site, array $change): array {}

    /**
     * Lists the changes that this user applied to the site, newest first: `id`, `created_at`,
     * `bundle` {artifact_id, manifest_sha256, run_id?}, `targets`, `files`, `undone`, `bytes` (size
     * of the old contents).
     *
     * @return list<array<string, mixed>>
     */
    public static function list(string $site): array {}

    /**
     * Forgets all applied changes of the site, which can then no longer be rolled back; returns
     * their number. The files stay as they are.
     */
    public static function forget(string $site): int {}

    /**
     * Finishes or reverses interrupted changes, and undoes the one whose site was not checked yet,
     * unless a process changes the site just now (`running`).
     *
     * @return array<string, mixed> `running`, `settled` (ids), `undone` (list of {id, restored,
     *                              conflicts}), `failed` (list of {id, error}), `paths` (host paths
     *                              of the files; drop them from the opcode cache).
     */
    public static function recover(string $site): array {}
}

/**
 * Lock of the one request that changes files of a site. It is released when the object or the
 * process ends, so a request that can take it knows that an earlier one is not alive any more.
 */
final class ChangeLock
{
    private function __construct() {}

    /**
     * Takes the lock of a site.
     *
     * @throws UnavailableException `wp_codebox_busy` (429, exit 125): another request holds it.
     */
    public static function take(string $site): ChangeLock {}
}

/**
 * Held sandboxes: runs of any caller that were started with `hold`. A reference is a run id or
 * its unique prefix.
 *
 * The calling code must authorise the user; the sandbox's own policy limits the requests.
 */
final class Sandbox
{
    private function __construct() {}

    /**
     * Sends a request to a sandbox and returns its response. A request that arrives before the
     * sandbox is ready waits.
     *
     * `$request` has a `type`: `exec` {argv, env?, cwd?, terminal? {columns, rows},
     * timeout_ms?}: returns {execution_id, end, code?, signal?, reason? (why the program was lost),
     * duration_ms, stdout, stderr, output_truncated?}; `command` {call {command, args}, timeout_ms?}:
     * `wp-codebox/runtime-command-result/v1`; `observe` {spec {type, …}}; `step` {action,
     * observation?}; `trace`; `sync_in` {path, base64? (absent: delete), executable?,
     * base_sha256?}; `sync_out` {path?, content?}; `snapshot` {name, metadata?}; `restore`
     * {id}; `reset`; `snapshots`; `preview` {action?, bind?, port?, public_url?, ttl_ms?};
     * `status`: `wp-codebox/sandbox/v1`; `extend_ttl` {ttl_ms}; `close` {reason?}.
     *
     * `$options`: `actor` (short name of the requester; recorded, not used for authorisation;
     * default `php`), `timeout_ms` (how long to wait; a timeout does not undo the request), `stdin`
     * (text for the program of an `exec`, sent while its output is read; the program is killed if
     * the text cannot be sent completely).
     *
     * `$onOutput` gets each chunk that an `exec` prints: {stream: `stdout` or `stderr`, text or
     * base64}; `stdout` and `stderr` of the result are empty then. An exception of the function
     * ends the program.
     *
     * @param array<string, mixed> $request
     * @param array<string, mixed> $options
     * @throws NotFoundException `wp_codebox_run_not_found`.
     * @throws ConflictException `wp_codebox_sandbox_not_held`, `wp_codebox_sandbox_in_use`,
     *                           `wp_codebox_sync_conflict`.
     * @throws DeniedException The sandbox's policy refuses the request.
     * @return array<string, mixed>
     */
    public static function ask(string $site, string $reference, #[\SensitiveParameter] array $request, #[\SensitiveParameter] array $options = [], ?callable $onOutput = null): array {}
}

/**
 * Tasks of a batch and their combined result. The object starts no process: the calling code
 * starts the runs with each task's input and reports how each one ended.
 */
final class Batch
{
    private function __construct() {}

    /**
     * Reads `$input`: `tasks`, `stop_on_failure`, the caller's ids, and fields that all tasks
     * share. `task()` validates each task separately. `$session` is the id of the batch if the
     * caller gave none (`sandbox_session_id`, otherwise `session_id`).
     *
     * @param array<string, mixed> $input
     * @throws InvalidInputException `wp_codebox_tasks_missing`, `wp_codebox_input_invalid`.
     */
    public static function read(array $input, string $session): Batch {}

    /** Returns the number of tasks; their indexes start at 0. */
    public function size(): int {}

    /**
     * Returns the input of one task: the shared fields overridden by its own, with the id of its
     * session in `sandbox_session_id`. The values of the fields are not validated here.
     *
     * @throws InvalidInputException `wp_codebox_input_invalid`.
     * @return array<string, mixed>
     */
    public function task(int $index): array {}

    /**
     * Returns the result row for every remaining task after a failure with `stop_on_failure`;
     * otherwise null.
     *
     * @return array<string, mixed>|null
     */
    public function stopped(): ?array {}

    /**
     * Records the end of a task. `$end` gives the status of its result row: `status`, otherwise
     * `run.outcome`, otherwise `error`; `artifacts` names its bundle. Returns further members of
     * the row: `index`, `task` (its goal), `success`, `status`, `task_input` of a task without a run.
     *
     * @param array<string, mixed> $end
     * @return array<string, mixed>
     */
    public function settle(int $index, array $end): array {}

    /**
     * Returns the combined result of the ended tasks: `wp-codebox/agent-task-batch/v1` without `wp` and `runs`.
     *
     * @return array<string, mixed>
     */
    public function answer(): array {}
}

/**
 * A slot that allows one open batch or fan-out. Each of them occupies the PHP worker that drives
 * it, so a user may have `wp_codebox.max_groups` of them open in a site, and all users together
 * as many as `wp_codebox.max_runs`. The slot is released when the object or the process ends.
 */
final class GroupSlot
{
    private function __construct() {}

    /**
     * Takes a slot of a site for a user.
     *
     * @throws UnavailableException `wp_codebox_busy` (429, exit 125): none is free.
     */
    public static function take(string $site, int $user): GroupSlot {}
}

/**
 * Plan of a fan-out and the combined result of its workers. The object starts no process: the
 * calling code starts the workers that are ready and reports how each one ended.
 */
final class Fanout
{
    private function __construct() {}

    /**
     * Reads `$input`: `workers`, `concurrency`, `aggregator`, the caller's ids, and fields that
     * all workers share. The plan is validated as a whole: ids, goals, dependencies,
     * cycles. `$most` is the highest concurrency (1 to 64; other values are clamped). `$session`
     * as for a batch.
     *
     * @param array<string, mixed> $input
     * @throws InvalidInputException `wp_codebox_fanout_…`, `wp_codebox_input_invalid`.
     */
    public static function read(array $input, int $most, string $session): Fanout {}

    /** Returns how many workers may run at once. */
    public function concurrency(): int {}

    /**
     * Returns the ids of all workers, in the order of the plan.
     *
     * @return list<string>
     */
    public function ids(): array {}

    /**
     * Returns the input of a worker's task: the shared fields overridden by its own;
     * `timeout_seconds` becomes `wall_clock_ms` of its limits. The values of the fields are not
     * validated here.
     *
     * @throws InvalidInputException `wp_codebox_fanout_worker_invalid`.
     * @return array<string, mixed>
     */
    public function task(string $id): array {}

    /**
     * Returns the workers that may start, in order: not in `$begun`, not ended, and with all
     * dependencies completed.
     *
     * @param list<string> $begun Ids of running workers.
     * @return list<string>
     */
    public function ready(array $begun): array {}

    /**
     * Returns the workers that can never start, each with its result row.
     *
     * @return array<string, array<string, mixed>>
     */
    public function blocked(): array {}

    /**
     * Records the files that a worker changed, before `settle()`; a long list may be passed in
     * parts. `$sources` maps each mount target to its host directory, `$files` is `changed_files`
     * of the worker's result.
     *
     * @param array<string, string>      $sources
     * @param list<array<string, mixed>> $files
     */
    public function changed(string $id, array $sources, array $files): void {}

    /**
     * Records the end of a worker. `$end` has these members of its result row: `status` (derived
     * from `run.outcome` or `error` if absent), `run`, `summary`, `error`, `run_id`, `artifact_id`, `artifacts`,
     * `dependencies`, `timings`; `ended_at` is the time of a worker without `timings`. Returns
     * further members of the row: `worker_id`, `index`, `goal`, `required`, `depends_on`,
     * `success`, `status`, `artifacts` with its namespace, `task_input` of a worker without a run.
     *
     * @param array<string, mixed> $end
     * @return array<string, mixed>
     */
    public function settle(string $id, array $end): array {}

    /**
     * Returns the combined result of the ended workers: `wp-codebox/agent-fanout-result/v1`
     * without `wp` and `runs`. It is a conflict if two completed workers changed the same host
     * file, or if a required worker is not completed. `$timings` is `started_at`, `ended_at` and
     * `duration_ms` of the fan-out.
     *
     * @param array<string, mixed> $timings
     * @return array<string, mixed>
     */
    public function answer(array $timings = []): array {}
}
