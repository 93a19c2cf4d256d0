<?php
/**
 * Exceptions of the stand-in extension. The table has only the codes that its methods throw.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

class Exception extends \RuntimeException {

	private const TABLE = [
		'wp_codebox_task_missing'                 => [ InvalidInputException::class, 400, 1 ],
		'wp_codebox_tasks_missing'                => [ InvalidInputException::class, 400, 1 ],
		'wp_codebox_fanout_workers_missing'       => [ InvalidInputException::class, 400, 1 ],
		'wp_codebox_raw_code_forbidden'           => [ InvalidInputException::class, 400, 1 ],
		'wp_codebox_input_invalid'                => [ InvalidInputException::class, 400, 1 ],
		'wp_codebox_secret_invalid'               => [ InvalidInputException::class, 400, 1 ],
		'wp_codebox_sandbox_tool_policy_invalid'  => [ InvalidInputException::class, 400, 1 ],
		'wp_codebox_limit_invalid'                => [ InvalidInputException::class, 400, 1 ],
		'wp_codebox_mount_source_invalid'         => [ InvalidInputException::class, 400, 1 ],
		'wp_codebox_git_unavailable'              => [ InvalidInputException::class, 400, 1 ],
		'wp_codebox_mount_denied'                 => [ DeniedException::class, 403, 126 ],
		'wp_codebox_policy_unenforceable'         => [ DeniedException::class, 422, 126 ],
		'runtime-policy-invalid'                  => [ InvalidInputException::class, 400, 126 ],
		'runtime-command-disallowed'              => [ DeniedException::class, 403, 126 ],
		'wp_codebox_sandbox_not_held'             => [ ConflictException::class, 409, 1 ],
		'wp_codebox_sandbox_start_failed'         => [ UnavailableException::class, 503, 125 ],
		'wp_codebox_state_dir_invalid'            => [ UnavailableException::class, 503, 125 ],
		'wp_codebox_busy'                         => [ UnavailableException::class, 429, 125 ],
		'wp_codebox_run_failed'                   => [ InternalException::class, 500, 1 ],
		'wp_codebox_run_not_found'                => [ NotFoundException::class, 404, 1 ],
		'wp_codebox_run_ambiguous'                => [ ConflictException::class, 409, 1 ],
		'wp_codebox_artifact_not_found'           => [ NotFoundException::class, 404, 1 ],
		'wp_codebox_artifact_ambiguous'           => [ ConflictException::class, 409, 1 ],
		'wp_codebox_artifact_verification_failed' => [ IntegrityException::class, 400, 1 ],
		'wp_codebox_artifact_changed'             => [ ConflictException::class, 409, 1 ],
		'wp_codebox_approved_files_missing'       => [ InvalidInputException::class, 400, 1 ],
		'wp_codebox_approved_files_invalid'       => [ InvalidInputException::class, 400, 1 ],
		'wp_codebox_apply_conflict'               => [ ConflictException::class, 409, 1 ],
		'wp_codebox_baseline_changed'             => [ ConflictException::class, 409, 1 ],
		'wp_codebox_artifact_too_large'           => [ InvalidInputException::class, 413, 1 ],
		'wp_codebox_artifact_export_failed'       => [ InternalException::class, 507, 1 ],
		'wp_codebox_artifact_import_source_invalid' => [ IntegrityException::class, 400, 1 ],
		'wp_codebox_artifact_import_id_mismatch'  => [ ConflictException::class, 409, 1 ],
		'wp_codebox_artifact_import_digest_mismatch' => [ ConflictException::class, 409, 1 ],
		'wp_codebox_artifact_import_conflict'     => [ ConflictException::class, 409, 1 ],
		'wp_codebox_artifact_import_copy_failed'  => [ InternalException::class, 507, 1 ],
	];

	public readonly string $errorCode;
	public readonly int $httpStatus;
	public readonly int $exitStatus;
	public readonly array $hints;
	public readonly array $data;

	final public function __construct( string $code, string $message, array $hints = [], array $data = [] ) {
		parent::__construct( $message );
		$this->errorCode  = $code;
		$this->httpStatus = self::TABLE[ $code ][1];
		$this->exitStatus = self::TABLE[ $code ][2];
		$this->hints      = $hints;
		$this->data       = $data;
	}

	public static function make( string $code, string $message, array $hints = [], array $data = [] ): self {
		$class = self::TABLE[ $code ][0];
		return new $class( $code, $message, $hints, $data );
	}

	public static function table(): array {
		return self::TABLE;
	}
}

final class InvalidInputException extends Exception {}
final class DeniedException extends Exception {}
final class NotFoundException extends Exception {}
final class ConflictException extends Exception {}
final class IntegrityException extends Exception {}
final class LimitException extends Exception {}
final class UnavailableException extends Exception {}
final class InternalException extends Exception {}
