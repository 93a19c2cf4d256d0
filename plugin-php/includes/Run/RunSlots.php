<?php
/**
 * How many runs of this site may be alive at once.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use Closure;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * The host's `wp_codebox.max_runs` holds whatever happens: the supervisor of a run counts under a
 * lock. A site may want fewer; that is judged here, by looking, so two tasks that start in the same
 * moment can both get through. Nobody looks where the site asks for nothing.
 */
final class RunSlots {

	/**
	 * Wires the check.
	 *
	 * @param Settings       $settings Host settings.
	 * @param Closure(): int $alive    Counts the runs of this site that are alive.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly Closure $alive
	) {}

	/**
	 * Lets the caller pass or throws.
	 *
	 * @throws Failure `wp_codebox_busy`.
	 */
	public function check(): void {
		$max  = $this->settings->own_max_runs();
		$host = $this->settings->host_max_runs();
		if ( null === $max || ( null !== $host && $host <= $max ) ) {
			return;
		}
		$alive = ( $this->alive )();
		if ( $alive >= $max ) {
			throw Failure::because(
				ErrorCode::Busy,
				sprintf( 'This site lets %d runs be alive at once, and so many are; try again when one has ended.', $max ),
				[ 'Or raise "Runs at once" in the settings of WP Codebox.' ],
				[
					'alive'    => $alive,
					'max_runs' => $max,
				]
			);
		}
	}
}
