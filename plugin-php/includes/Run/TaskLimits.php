<?php
/**
 * The limits of a task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Every task of this site, whoever asks, gets at most the site's ceilings. A task that asks for
 * more is refused, not cut: it would fail later for a reason nobody sees. A task that does not ask
 * gets the site's default, else the ceiling, else the built-in default of the extension.
 */
final class TaskLimits {

	/**
	 * Creates the limits with its dependencies.
	 *
	 * @param Settings $settings Settings of the host (plugin settings page and constants).
	 */
	public function __construct( private readonly Settings $settings ) {}

	/**
	 * What the extension is asked for.
	 *
	 * @param array<string, mixed> $input Task input: `limits` and `task_timeout_seconds`.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_limit_invalid` for more than the ceiling.
	 */
	public function resolve( array $input ): array {
		$asked   = (array) ( $input['limits'] ?? [] );
		$seconds = (int) ( $input['task_timeout_seconds'] ?? 0 );
		if ( $seconds > 0 && ! isset( $asked['wall_clock_ms'] ) ) {
			$asked['wall_clock_ms'] = $seconds * 1000;
		}
		$ceilings = $this->settings->limit_ceilings();
		foreach ( $ceilings as $field => $ceiling ) {
			if ( isset( $asked[ $field ] ) && (int) $asked[ $field ] > $ceiling ) {
				throw Failure::because(
					ErrorCode::LimitInvalid,
					/* translators: 1: name of a limit, 2: number asked for, 3: largest number. */
					Sentence::of( __( 'The task asks for limits.%1$s %2$d, but this site allows at most %3$d.', 'codebox' ), $field, (int) $asked[ $field ], $ceiling ),
					[ __( 'Ask for less, or raise the ceiling in the settings of Codebox.', 'codebox' ) ],
					[
						'field'   => $field,
						'ceiling' => $ceiling,
					]
				);
			}
		}
		// What is stored may be older than the ceiling beside it.
		$defaults = $this->settings->default_limits();
		foreach ( $defaults as $field => $default ) {
			$defaults[ $field ] = min( $default, $ceilings[ $field ] ?? $default );
		}
		return $asked + $defaults + $ceilings;
	}
}
