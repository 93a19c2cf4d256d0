<?php
/**
 * Sessions whose contents can be kept as a bundle.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/** Finds sessions and their archives. */
interface ArtifactSessions {

	/**
	 * Returns a session that is not expired and belongs to the current user and site.
	 *
	 * @param string $session_id Id of the session.
	 * @throws Failure For a session that is unknown, expired, or of another user or site.
	 */
	public function baseline( string $session_id ): SessionBaseline;

	/**
	 * Returns the path of a stored archive; null when it is not stored any more.
	 *
	 * @param string $sha256 Its sha256.
	 */
	public function archive( string $sha256 ): ?string;
}
