<?php
/**
 * Stub of the `wp_codebox` extension, kept by hand. A test compares it with
 * Reflection of the loaded extension.
 *
 * Arrays are JSON objects and lists as described by the schemas in
 * `abilities/schemas/`. Sizes are bytes, times are milliseconds unless a name
 * says otherwise. Every method that fails throws a `WPCodebox\Native\Exception`.
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
    /** Semantic version of the extension, e.g. `0.1.0`. */
    public static function version(): string {}

    /**
     * sha256 over the schemas built into the extension. The plugin compares it
     * with the digest in its own `abilities/manifest.php`.
     */
    public static function contractDigest(): string {}

    /**
     * Effective configuration, without secrets: `version`, `contract_digest`,
     * `protocol`, `php_api`, `state_dir`, `share_dir`, `runner`, `launcher`,
     * `php_binary`, `mount_roots` (list).
     *
     * @return array<string, mixed>
     */
    public static function info(): array {}

    /**
     * Host self-test by the runner: `wp-codebox/doctor/v1` with `status`
     * (`ok`, `warning`, `error`), `level` and `checks` [{id, status, message, fix?}].
     *
     * @throws UnavailableException When the runner cannot be started.
     * @return array<string, mixed>
     */
    public static function doctor(): array {}
}

/** Runtime policy and the command registry. */
final class Policy
{
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
    /** Canonical JSON as used by every digest. */
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
     * with `valid`, all `violations`, `signature` {status, key_id?} and `manifest_sha256`.
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
     * The patch, whole or for some changed paths.
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
     * Appends one record to the site's hash-chained audit log, secrets redacted,
     * and answers it with `seq`, `previous`, `hash` and `timestamp`.
     *
     * @param array<string, mixed> $record
     * @return array<string, mixed>
     */
    public static function audit(string $site, array $record): array {}

    /**
     * Reads and checks the audit log: `{valid, entries, broken_at?}`.
     *
     * @return array<string, mixed>
     */
    public static function auditLog(string $site, int $limit = 100): array {}
}

/** Redaction of secrets in text and data. */
final class Redactor
{
    /**
     * Replaces known secret forms and the given values by `[REDACTED:<kind>]`.
     *
     * @param list<string> $values
     */
    public static function text(string $text, array $values = []): string {}

    /**
     * The same over nested data; values under secret-sounding keys become `[redacted]`.
     *
     * @param array<mixed> $data
     * @return array<mixed>
     */
    public static function data(array $data, array $values = []): array {}
}

/** One run: a process handle, not a job. */
final class Run
{
    private function __construct() {}

    /**
     * Validates the request in process, starts the runner and returns at once.
     * `$request`: `site`, `goal` or `task_input`, `policy`, `mounts`
     * [{source, target, mode?, exclude?, metadata?}], `staged_files`, `commands`,
     * `agent` {argv, success_codes?, env?}, `checks` (list of command lines),
     * `limits`, `find_renames`, `redact`, `provenance`, `wordpress` (core
     * directory), `denied` (list of directories), `allowed_roots` (list, absent
     * for the operator). Paths of binaries come from the INI settings only.
     *
     * @param array<string, mixed> $request
     */
    public static function start(array $request): Run {}

    /** `run_` and 32 hex digits. */
    public function id(): string {}

    /**
     * Waits for the end. `$onEvent` gets each lifecycle event as an array; when it
     * returns false the run is cancelled and salvaged. Answers `wp-codebox/run-result/v1`.
     *
     * @throws Exception The error of the run when it came to no outcome.
     * @return array<string, mixed>
     */
    public function wait(?callable $onEvent = null): array {}

    /** Asks the runner to stop and salvage; `wait()` still answers. */
    public function cancel(): void {}
}
