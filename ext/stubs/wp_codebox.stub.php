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
/** Policy or permission says no. */
final class DeniedException extends Exception {}
/** The thing named does not exist. */
final class NotFoundException extends Exception {}
/** The world changed under the caller. */
final class ConflictException extends Exception {}
/** A bundle or signature is not what it claims to be. */
final class IntegrityException extends Exception {}
/** A limit was reached. */
final class LimitException extends Exception {}
/** Something this host lacks. */
final class UnavailableException extends Exception {}
/** A defect or an I/O failure. */
final class InternalException extends Exception {}

/** Version and configuration of the extension. */
final class Extension
{
    private function __construct() {}

    /** Semantic version of the extension, e.g. `0.1.0`. */
    public static function version(): string {}

    /**
     * sha256 over the schemas built into the extension: for each file of
     * `abilities/schemas/*.json`, sorted bytewise by name, the name, `\n`, its length
     * in decimal, `\n`, its bytes, `\n`. The plugin compares it with the digest in
     * its own `abilities/manifest.php`.
     */
    public static function contractDigest(): string {}

    /**
     * Effective configuration, without secrets: `version`, `contract_digest`,
     * `protocol`, `php_api`, `state_dir`, `share_dir`, `runner`, `launcher`,
     * `php_binary`, `cgroup`, `identity`, `guest_ids` (texts as set), `mount_roots` (list),
     * `outer_sandbox`, `outer_sandbox_program`,
     * `max_runs` and `max_groups` (int; the text of the setting when it is none), `runner_socket`,
     * `provider_keys` and `private_models` (lists of their entries), `agents_dir`,
     * `agents`: the presets of command-line agents [{name, title, about, apis, license,
     * homepage, install, network, installed}].
     *
     * @return array<string, mixed>
     */
    public static function info(): array {}

    /**
     * Host self-test by the runner: `wp-codebox/doctor/v1` with `status`
     * (`ok`, `warning`, `error`), `level` and `checks` [{id, status, message, fix?}]. With
     * `wp_codebox.runner_socket` set, the row `runner-socket` says whether this user may use
     * it; it does not connect.
     *
     * @throws UnavailableException When the runner cannot be started.
     * @return array<string, mixed>
     */
    public static function doctor(): array {}

    /**
     * Removes what runs of a site left: settled run directories by age and size, dead
     * scratch, unfinished bundles, unused templates, empty control groups. Nothing of a
     * run that is alive, and no bundle unless `artifacts_max_age_seconds` is given.
     *
     * @param array<string, mixed> $options `max_age_seconds` (default 30 days), `max_bytes`,
     *                                      `artifacts_max_age_seconds`, `dry_run`.
     * @throws UnavailableException When the runner cannot be started.
     * @return array<string, mixed> `wp-codebox/gc/v1`; `success` is false when something stayed.
     */
    public static function gc(string $site, array $options = []): array {}
}

/** Runtime policy and the command registry. */
final class Policy
{
    private function __construct() {}

    /**
     * The default policy for a set of commands: network deny, filesystem
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
     * The command catalogue, `wp-codebox/command-catalog/v1`.
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
     * Canonical JSON as used by every digest. What the public system would drop
     * silently (300 keys, 2,000 items, 30 levels) is refused.
     */
    public static function canonicalJson(mixed $value): string {}

    /**
     * Content digest over named files of a bundle directory, in order:
     * `{algorithm, inputs, value}`.
     *
     * @param list<string> $inputs
     * @return array<string, mixed>
     */
    public static function contentDigest(string $directory, array $inputs = ['files/changed-files.json', 'files/patch.diff']): array {}

    /**
     * Verifies any bundle directory: `wp-codebox/artifact-bundle-verification/v1`
     * with `bundleDirectory` (its path), `valid`, all `violations`, `signature` {status, key_id?, coverage?} and, when the manifest
     * could be read, `manifest` and `manifest_sha256`. `coverage` of a signature that holds:
     * `manifest`, or `files` when an earlier version signed and keys of the manifest beside its
     * identity, runtime and list of files are not signed.
     *
     * @return array<string, mixed>
     */
    public static function verify(string $directory): array {}

    /**
     * Bundles of a site, newest first: rows of `{artifact_id, run_id, created_at,
     * outcome, summary, changed_files, directory, valid_manifest}`.
     *
     * @return list<array<string, mixed>>
     */
    public static function list(string $site): array {}

    /**
     * One bundle by artifact id, run id, or a unique prefix of either: `artifact_id`,
     * `run_id`, `directory`, `created_at`, `manifest`, `metadata`, `changed_files`, `review`, `test_results`.
     *
     * @throws NotFoundException  `wp_codebox_artifact_not_found`.
     * @throws ConflictException `wp_codebox_artifact_ambiguous`.
     * @return array<string, mixed>
     */
    public static function get(string $site, string $reference): array {}

    /**
     * The patch, whole or for some changed paths. Only of a bundle that verifies,
     * whoever signed it.
     *
     * @param list<string> $paths
     */
    public static function diff(string $site, string $reference, array $paths = []): string {}

    /**
     * Everything an apply needs, or an exception. `$request`: `approved_files`
     * (list), `manifest_sha256` (string, optional: what was reviewed), `targets`
     * (map declared mount target → host directory, for the base check).
     * Answer: `artifact_id`, `run_id`, `approved_files`, `changed_files` (approved entries),
     * `patch`, `patch_sha256`, `mount_patches` [{mount_target, mount_index, patch, sha256}],
     * `content_digest`, `manifest_sha256`, `signature`, `verification`.
     *
     * @param array<string, mixed> $request
     * @return array<string, mixed>
     */
    public static function preflight(string $site, string $reference, array $request): array {}

    /** Deletes a bundle, also a broken one. Answers `{artifact_id?, run_id, discarded: true}`. @return array<string, mixed> */
    public static function discard(string $site, string $reference): array {}

    /**
     * Appends one record to the site's hash-chained audit log, secrets redacted. Answers
     * `{record, anchor}`: the record with `seq`, `previous`, `hash` and `timestamp`; the signed
     * anchor of length and head of the log, to be kept apart from the state directory by its
     * `key_id` and handed over as `$anchors[key_id]` with every later call.
     *
     * @param array<string, mixed> $record
     * @param array<string, array<string, mixed>> $anchors
     * @return array<string, mixed>
     */
    public static function audit(string $site, #[\SensitiveParameter] array $record, array $anchors = []): array {}

    /**
     * Reads and checks the audit log: `{records, total, chain: {valid, head, broken_at?,
     * problem?}}`. All of it is checked, also against the anchor in the state directory and
     * `$anchors`, which show that records were removed from the end. Records with a greater
     * `seq` than `$after` come back, oldest first, at most `$limit` (at most 10,000). `$after`
     * below 0 asks for so many of the newest. `head` is the hash of the last record.
     *
     * @param array<string, array<string, mixed>> $anchors
     * @return array<string, mixed>
     */
    public static function auditRecords(string $site, int $after = 0, int $limit = 100, array $anchors = []): array {}

    /**
     * Writes a bundle that verifies as a tar archive to a new file (`$path` absolute, mode
     * 0600): the same bytes for the same bundle. Answers `{path, bytes, sha256, artifact_id,
     * run_id}`.
     *
     * @throws InternalException `wp_codebox_artifact_export_failed`.
     * @return array<string, mixed>
     */
    public static function export(string $site, string $reference, string $path): array {}

    /**
     * The same bytes in memory.
     *
     * @throws InvalidInputException `wp_codebox_artifact_too_large`.
     */
    public static function archive(string $site, string $reference, int $maxBytes): string {}

    /**
     * Stores a bundle made elsewhere: a bundle directory, its manifest.json, or an archive (tar,
     * also gzipped; at most 256 MiB of members). It is verified as it is stored, and what
     * does not verify is not stored. `$options`: `expected_artifact_id`,
     * `expected_content_digest` (hex), `replace` (bool: in the place of another bundle of the
     * same run), `allowed_roots` (list, absent for the operator). Nothing becomes trusted:
     * see `verification.signature`. Answers `{status, artifact_id, run_id, directory,
     * manifest_sha256, verification}`, `status` being `created`, `existing` or `updated`.
     *
     * @param array<string, mixed> $options
     * @return array<string, mixed>
     */
    public static function import(string $site, string $path, array $options = []): array {}

    /**
     * The same from archive bytes.
     *
     * @param array<string, mixed> $options
     * @return array<string, mixed>
     */
    public static function importArchive(string $site, string $bytes, array $options = []): array {}

    /**
     * Entries of `files/changed-files.json`, each with its part of the patch as `patch`, or
     * `patch_base64` where it is not UTF-8, and `truncated` where it was longer than 1 MiB.
     * Only of a bundle that verifies, whoever signed it.
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
     * The same over nested data; values under secret-sounding keys become `[redacted]`.
     *
     * @param array<mixed> $data
     * @return array<mixed>
     */
    public static function data(#[\SensitiveParameter] array $data, #[\SensitiveParameter] array $values = []): array {}
}

/** One run: a process handle, not a job. */
final class Run
{
    private function __construct() {}

    /**
     * Validates the request in process, reaches a runner and returns when it accepted.
     *
     * `$task` is the caller's input as it came: the fields of the ability run-agent-task. Those
     * that name something of the site (`plugin`, `agent`, `model`, `secret_env`, ...) are
     * not looked up here; the ids of outside orchestrators are dropped.
     *
     * `$host` has the site's values, which replace the caller's, also when they are null: `site`,
     * `mode` (`attached`, the default, or `detached`), `mounts`
     * [{source, target, mode?, exclude?, git?, metadata?}], `policy`, `limits`, `staged_files`, `commands`,
     * `resolved_agent`: a program {argv, success_codes?, env?}, a well-known one {kind: `preset`, name}, the built-in loop {kind: `model`,
     * budget? {turns, input_tokens, output_tokens, cost_microusd}, instructions?}, or an
     * ability of the guest's WordPress {kind: `ability`, ability, input?}; `resolved_model`
     * {provider, model, api: `openai-chat` or `anthropic-messages`, base_url, secret? (name
     * of one of `secrets`), private? (lets base_url lead to this host or a private network;
     * without it only to public addresses), context_tokens?, max_output_tokens?, prices? {input,
     * cached_input?, output}: millionths of a US dollar per million tokens}, `sandbox_tool_policy`
     * (sandbox-tool-policy/v1), `parent_tools` {tools [{id, description, input_schema}],
     * timeout_ms?}, `components` [{slug, source, load_as?: `plugin` or `mu-plugin`, entry?,
     * activate?, required?, readiness_probe? {type: `ability` or `filter`, name}}],
     * `hold` {ttl_ms, max_ttl_ms?, idle_ms?}: keeps the guest when everything else has run,
     * for `Sandbox::ask()`; `secrets` [{env, value, hosts}] (the guest gets a
     * placeholder, the value goes to the named hosts only; the policy must say
     * `connector-scoped` and allow these hosts), `redact`, `provenance`, `wordpress`
     * (core directory), `denied` (list of directories: neither they nor what holds them nor
     * what lies below them is mounted), `code_roots` (list: directories of plugins and themes,
     * which may lie below a denied one), `allowed_roots` (list, absent for the operator), `max_runs` (runs of this site alive at once, if fewer than
     * `wp_codebox.max_runs` allows). Paths of binaries, that number and how a runner is
     * reached (`wp_codebox.runner_socket`: a socket-activated service; empty: PHP starts
     * it) come from the INI settings only.
     *
     * Unknown fields, and fields of the host in `$task`, are refused by name; when several
     * things are wrong, `data.issues` has all of them. A run that was accepted has its
     * directory: `Runs` finds it from then on.
     *
     * An attached run ends with its caller: it is cancelled when the handle is dropped, at
     * the end of the request, when an exception or a fatal error leaves `wait()`, when the
     * client of a FastCGI request hangs up during `wait()` (unless `ignore_user_abort` is
     * on), and when the process dies. A detached run survives all of these.
     *
     * @param array<string, mixed> $task
     * @param array<string, mixed> $host
     * @throws UnavailableException `wp_codebox_busy` (429, exit 125): the site has
     *                              as many runs already as it may have. `wp_codebox_runner_unavailable`.
     */
    public static function start(#[\SensitiveParameter] array $task, #[\SensitiveParameter] array $host): Run {}

    /**
     * Judges a request exactly as `start()` does, in the same order, and starts
     * nothing. `mounts` and `resolved_agent` may still be missing.
     *
     * @param array<string, mixed> $task
     * @param array<string, mixed> $host
     * @throws InvalidInputException|DeniedException What `start()` would throw.
     */
    public static function validate(#[\SensitiveParameter] array $task, #[\SensitiveParameter] array $host): void {}

    /**
     * Splits a command line like a POSIX shell would, without expansion.
     *
     * @throws InvalidInputException `wp_codebox_input_invalid` for an open quote.
     * @return list<string>
     */
    public static function splitCommand(#[\SensitiveParameter] string $line): array {}

    /** `run_` and 32 hex digits. */
    public function id(): string {}

    /**
     * Waits for the end. `$onEvent` gets each lifecycle event as an array; when it
     * returns false the run is cancelled and salvaged. Answers `wp-codebox/run-result/v1`,
     * plus what the outcome table says of `outcome`: `session_status` (`completed` or
     * `failed`), `success` (bool) and `exit_status` (int).
     *
     * With `$timeoutMs` it answers null when the time is up and the run goes on; the next
     * `wait()` goes on with the next event, so none is lost and none comes twice. 0 takes
     * what is there and does not wait. After the end it answers the same again. A caller
     * that lets megabytes of events pile up gets no more of them, only the result with a
     * notice: a run is not held up by its reader. `Runs::events()` has them all.
     *
     * What bounds a wait: `$timeoutMs`, the run's own `limits.wall_clock_ms` (default 15
     * minutes), php-fpm's `request_terminate_timeout`, and the web server's timeout, which
     * hangs up. `max_execution_time` does not: on Linux it counts processor time, and a
     * wait uses next to none. It does end a callback that computes too long. A PHP session
     * stays locked for its other requests meanwhile: call `session_write_close()` before.
     *
     * `$onToolRequest` answers the built-in agent's calls of `parent_tools`: it gets a
     * `wp-codebox/parent-tool-request/v1` and answers a `parent-tool-result/v1`, of which
     * `status`, `output`, `error`, `artifacts` and `diagnostics` count; the rest is filled in.
     * It judges who may do what: the runner knows the list only. Without it, and while nobody
     * waits, such a call comes to `unavailable` or `timeout`.
     *
     * An exception from `$onEvent` or `$onToolRequest` leaves `wait()` unchanged. It cancels an attached run;
     * a detached one goes on, and the handle can wait again.
     *
     * @throws InvalidInputException `wp_codebox_input_invalid` for a negative `$timeoutMs`.
     * @throws Exception The error of the run when it came to no outcome.
     * @return array<string, mixed>|null
     */
    public function wait(?callable $onEvent = null, ?int $timeoutMs = null, ?callable $onToolRequest = null): ?array {}

    /**
     * From now on the run survives its caller; the handle can still `wait()` and
     * `cancel()`. Does nothing when the run is detached already or has ended.
     */
    public function detach(): void {}

    /** Asks the runner to stop and salvage; `wait()` still answers. Does nothing after the end. */
    public function cancel(): void {}
}

/**
 * Runs of a site, whoever started them. A reference is a run id or its unique beginning.
 *
 * Each call first settles what died. Who may ask is the caller's to decide.
 */
final class Runs
{
    private function __construct() {}

    /**
     * Runs, newest first: `wp-codebox/run-list/v1` {schema, total, runs}, each as `get()`
     * answers it, without `result`.
     *
     * @param array<string, mixed> $filter `status` (`running` or `ended`), `limit` (1 to 200,
     *                                     default 50), `offset`.
     * @return array<string, mixed>
     */
    public static function list(string $site, array $filter = []): array {}

    /**
     * One run: `wp-codebox/run/v1`, with `result` (`wp-codebox/run-result/v1`) when it came
     * to one, and, when it ended, `session_status`, `success` and `exit_status` as
     * `Run::wait()` answers them; a run without an outcome has those of its `error`.
     *
     * @throws NotFoundException `wp_codebox_run_not_found`.
     * @throws ConflictException `wp_codebox_run_ambiguous`.
     * @return array<string, mixed>
     */
    public static function get(string $site, string $reference): array {}

    /**
     * A page of a run's events: `wp-codebox/run-events/v1`. `$after` is the `cursor` of the
     * page before, 0 for the first; `$limit` is 1 to 1000.
     *
     * @throws NotFoundException `wp_codebox_run_not_found`.
     * @throws ConflictException `wp_codebox_run_ambiguous`.
     * @return array<string, mixed>
     */
    public static function events(string $site, string $reference, int $after = 0, int $limit = 200): array {}

    /**
     * Asks the run's supervisor to stop and salvage, also for a run of another process:
     * `wp-codebox/run-cancellation/v1` with `answer` (`requested` or `already_ended`).
     *
     * @throws NotFoundException `wp_codebox_run_not_found`.
     * @throws ConflictException `wp_codebox_run_ambiguous`.
     * @return array<string, mixed>
     */
    public static function cancel(string $site, string $reference): array {}
}

/**
 * Sandboxes that are held: runs that were started with `hold`, by whomever. A reference is a
 * run id or its unique beginning.
 *
 * Who may ask is the caller's to decide; the sandbox's own policy decides what may be asked.
 */
final class Sandbox
{
    private function __construct() {}

    /**
     * Asks a sandbox for something and waits for its answer. Requests that arrive before it is
     * ready wait for it.
     *
     * `$request` has a `type`: `exec` {argv, env?, cwd?, terminal? {columns, rows},
     * timeout_ms?}: answers {execution_id, end, code?, signal?, reason? (why it was lost),
     * duration_ms, stdout, stderr, output_truncated?}; `command` {call {command, args}, timeout_ms?}:
     * `wp-codebox/runtime-command-result/v1`; `observe` {spec {type, …}}; `step` {action,
     * observation?}; `trace`; `sync_in` {path, base64? (absent: delete), executable?,
     * base_sha256?}; `sync_out` {path?, content?}; `snapshot` {name, metadata?}; `restore`
     * {id}; `reset`; `snapshots`; `preview` {action?, bind?, port?, public_url?, ttl_ms?};
     * `status`: `wp-codebox/sandbox/v1`; `extend_ttl` {ttl_ms}; `close` {reason?}.
     *
     * `$options`: `actor` (who asks, in a few words; recorded, never an authorisation; default
     * `php`), `timeout_ms` (how long to wait; what was asked for is not undone), `stdin` (text
     * for the program of an `exec`, sent while its output is read; the program is killed when it
     * does not arrive whole).
     *
     * `$onOutput` gets each piece an `exec` prints: {stream: `stdout` or `stderr`, text or
     * base64}; `stdout` and `stderr` of the answer are empty then. An exception from it ends
     * the program.
     *
     * @param array<string, mixed> $request
     * @param array<string, mixed> $options
     * @throws NotFoundException `wp_codebox_run_not_found`.
     * @throws ConflictException `wp_codebox_sandbox_not_held`, `wp_codebox_sandbox_in_use`,
     *                           `wp_codebox_sync_conflict`.
     * @throws DeniedException What the sandbox's policy refuses.
     * @return array<string, mixed>
     */
    public static function ask(string $site, string $reference, #[\SensitiveParameter] array $request, #[\SensitiveParameter] array $options = [], ?callable $onOutput = null): array {}
}

/**
 * The tasks of a batch, and what they come to together. Holds no process: whoever drives the
 * runs asks for each task's input and says what became of it.
 */
final class Batch
{
    private function __construct() {}

    /**
     * Reads `$input`: `tasks`, `stop_on_failure`, the caller's ids, and fields that all tasks
     * share. Tasks are judged one by one, by `task()`. `$session` is the id of the whole when
     * the caller gave none (`sandbox_session_id`, else `session_id`).
     *
     * @param array<string, mixed> $input
     * @throws InvalidInputException `wp_codebox_tasks_missing`, `wp_codebox_input_invalid`.
     */
    public static function read(array $input, string $session): Batch {}

    /** How many tasks there are; they are counted from 0. */
    public function size(): int {}

    /**
     * Input of one task: its fields over those that all share, with the id of its session in
     * `sandbox_session_id`. What the fields are worth is not judged here.
     *
     * @throws InvalidInputException `wp_codebox_input_invalid`.
     * @return array<string, mixed>
     */
    public function task(int $index): array {}

    /**
     * The row of every task that is left, once one was not good and the batch stops then; null
     * before that.
     *
     * @return array<string, mixed>|null
     */
    public function stopped(): ?array {}

    /**
     * A task is settled. `$end` is what its row says: `status`, else `outcome`, else `error`.
     * Answers further members of the row: `index`, `task` (its goal), `success`, `status`.
     *
     * @param array<string, mixed> $end
     * @return array<string, mixed>
     */
    public function settle(int $index, array $end): array {}

    /**
     * What the settled tasks come to: `wp-codebox/agent-task-batch/v1` without `wp` and `runs`.
     *
     * @return array<string, mixed>
     */
    public function answer(): array {}
}

/**
 * The right to have one batch or fan-out open. Each holds the PHP worker that drives it, so a
 * user may have `wp_codebox.max_groups` of them open in a site, and all users together as many as
 * runs may be alive. The slot is free again once the object or the process is gone.
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
 * The plan of a fan-out, and what its workers come to together. Holds no process: whoever drives
 * the runs asks who may start and says what became of each.
 */
final class Fanout
{
    private function __construct() {}

    /**
     * Reads `$input`: `workers`, `concurrency`, `aggregator`, the caller's ids, and fields that
     * all workers share. The plan is judged as a whole: ids, goals, dependencies, cycles.
     * `$most` is the highest concurrency (1 to 64; beyond is cut). `$session` as for a batch.
     *
     * @param array<string, mixed> $input
     * @throws InvalidInputException `wp_codebox_fanout_…`, `wp_codebox_input_invalid`.
     */
    public static function read(array $input, int $most, string $session): Fanout {}

    /** How many workers at once. */
    public function concurrency(): int {}

    /**
     * Ids of all workers, in the order of the plan.
     *
     * @return list<string>
     */
    public function ids(): array {}

    /**
     * Input of the task of a worker: its fields over those that all share; `timeout_seconds` is
     * the `wall_clock_ms` of its limits. What the fields are worth is not judged here.
     *
     * @throws InvalidInputException `wp_codebox_fanout_worker_invalid`.
     * @return array<string, mixed>
     */
    public function task(string $id): array {}

    /**
     * Workers that may start, in order: not in `$begun`, not settled, and everything they depend
     * on is completed.
     *
     * @param list<string> $begun Ids of workers at work.
     * @return list<string>
     */
    public function ready(array $begun): array {}

    /**
     * Workers that can never start, each with its row.
     *
     * @return array<string, array<string, mixed>>
     */
    public function blocked(): array {}

    /**
     * What a worker changed, before it is settled; a long list may come in parts. `$sources` is
     * the host directory behind each target of its mounts, `$files` are `changed_files` of its
     * result.
     *
     * @param array<string, string>      $sources
     * @param list<array<string, mixed>> $files
     */
    public function changed(string $id, array $sources, array $files): void {}

    /**
     * A worker is settled. `$end` has of its row `status` (else it is what `outcome` or `error`
     * make it), `outcome`, `summary`, `error`, `run_id`, `artifact_id`, `artifacts`,
     * `dependencies`. Answers further members of the row: `worker_id`, `index`, `goal`,
     * `required`, `depends_on`, `success`, `status`, `artifacts` with its namespace.
     *
     * @param array<string, mixed> $end
     * @return array<string, mixed>
     */
    public function settle(string $id, array $end): array {}

    /**
     * What the settled workers come to: `wp-codebox/agent-fanout-result/v1` without `wp`,
     * `timings` and `runs`. Two completed workers that changed one file of the host are a
     * conflict, as is a required worker that is not completed.
     *
     * @return array<string, mixed>
     */
    public function answer(): array {}
}
