<?php
/**
 * Share of this site that the requester of a run may have.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Settings;
use WPCodebox\ShareSettings;

defined( 'ABSPATH' ) || exit;

/**
 * Passes the settings to the extension, which counts the runs of each requester and enforces the ceilings. What the settings
 * leave open has a default there: half of the site's runs, and ceilings of duration, memory and disk. Who may change the
 * settings, and the operator at the shell, may use all runs of the site.
 */
final class RequesterShare {

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Settings     $settings     Settings of the host (plugin settings page and constants).
	 * @param Capabilities $capabilities Permission checks of the user.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly Capabilities $capabilities
	) {}

	/**
	 * Returns the fields of a run request that limit what the requester may have.
	 *
	 * @param Authority $authority User or operator the call runs as.
	 * @return array<string, mixed> Fields `share` and `max_runs`.
	 */
	public function fields( Authority $authority ): array {
		$whole = Authority::Operator === $authority || $this->capabilities->allows( Capabilities::SETTINGS );
		$share = [
			'runs'     => $whole ? $this->settings->max_runs() : ShareSettings::user_max_runs(),
			'ceilings' => $this->settings->limit_ceilings(),
			'spend'    => ShareSettings::spend_caps(),
		];
		$host  = [
			'max_runs' => $this->settings->own_max_runs(),
			'share'    => array_filter( $share ),
		];
		return array_filter( $host );
	}
}
