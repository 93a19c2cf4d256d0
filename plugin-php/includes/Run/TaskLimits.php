<?php
/**
 * Limits of a task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Sentence;
use WPCodebox\Settings;
use WPCodebox\ShareSettings;

defined( 'ABSPATH' ) || exit;

/**
 * The ceilings apply to every task, including tasks of the operator. A task that requests more is
 * refused, because a silently reduced limit would cause a later failure without a visible reason. A task
 * without a request gets the site's default, else the site's ceiling, else the extension's built-in default.
 * The extension checks the ceilings again; here they are checked early, with a translated message.
 */
final class TaskLimits {

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Settings $settings Settings of the host (plugin settings page and constants).
	 */
	public function __construct( private readonly Settings $settings ) {}

	/**
	 * Returns the limits of a task for the run request: the values that the task requests, else those of the site.
	 *
	 * @param array<string, mixed> $input Task input with `limits` and `task_timeout_seconds`.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_limit_invalid` for a limit above the ceiling.
	 */
	public function resolve( array $input ): array {
		$asked   = (array) ( $input['limits'] ?? [] );
		$seconds = (int) ( $input['task_timeout_seconds'] ?? 0 );
		if ( $seconds > 0 && ! isset( $asked['wall_clock_ms'] ) ) {
			$asked['wall_clock_ms'] = $seconds * 1000;
		}
		$own      = $this->settings->limit_ceilings();
		$ceilings = ShareSettings::ceilings( $own );
		foreach ( $ceilings as $field => $ceiling ) {
			if ( isset( $asked[ $field ] ) && (int) $asked[ $field ] > $ceiling ) {
				throw Failure::because(
					ErrorCode::LimitInvalid,
					/* translators: 1: name of a limit, 2: number asked for, 3: largest number. */
					Sentence::of( __( 'The task sets "limits.%1$s" to %2$d, but this site allows at most %3$d.', 'codebox' ), $field, (int) $asked[ $field ], $ceiling ),
					[ $this->remedy( $field, $ceiling ) ],
					[
						'field'   => $field,
						'ceiling' => $ceiling,
					]
				);
			}
		}
		// A stored default may be older than its ceiling and exceed it.
		$defaults = $this->settings->default_limits();
		foreach ( $defaults as $field => $default ) {
			$defaults[ $field ] = min( $default, $ceilings[ $field ] ?? $default );
		}
		return $asked + $defaults + array_intersect_key( $ceilings, $own );
	}

	/**
	 * Returns what a user can do whose task asks for more than a ceiling.
	 *
	 * @param string $field   Name of the limit.
	 * @param int    $ceiling Ceiling in force.
	 */
	private function remedy( string $field, int $ceiling ): string {
		if ( ( ExtensionGate::info()['max_limits'][ $field ] ?? null ) === $ceiling ) {
			return __( 'Ask for less, or ask the operator to raise the limit in php.ini (wp_codebox.max_limits).', 'codebox' );
		}
		return __( 'Ask for less, or ask an administrator to raise the ceiling in the settings of Codebox.', 'codebox' );
	}
}
