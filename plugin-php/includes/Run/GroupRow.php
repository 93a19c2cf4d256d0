<?php
/**
 * Result row of one run in a batch or fan-out.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Native\AgentTask;

defined( 'ABSPATH' ) || exit;

/**
 * Builds the fields of the row that describe the run. The extension adds the row's status and combines all rows.
 */
final class GroupRow {

	/**
	 * Builds the result row of a run that ended with an outcome.
	 *
	 * @param array<string, mixed> $envelope `wp-codebox/agent-task-run/v1`.
	 * @return array<string, mixed>
	 */
	public static function ended( array $envelope ): array {
		return AgentTask::row( $envelope );
	}

	/**
	 * Builds the result row of a run that failed to start or ended without an outcome. A row must be JSON-encodable, which
	 * failure data from a host plugin may not be.
	 *
	 * @param Failure $failure Failure to report.
	 * @return array<string, mixed>
	 */
	public static function failed( Failure $failure ): array {
		return [
			'exit_code' => $failure->exit_status,
			'error'     => (array) json_decode( (string) wp_json_encode( $failure->to_array(), JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR ), true ),
		];
	}

	/**
	 * Builds the result row of a run that was cancelled before it started.
	 *
	 * @return array<string, mixed>
	 */
	public static function cancelled(): array {
		return self::failed( Failure::because( ErrorCode::RunCancelled, __( 'The task was cancelled before it started.', 'codebox' ) ) );
	}
}
