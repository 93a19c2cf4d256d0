<?php
/**
 * Decides which runs a user may see and cancel.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Authority;
use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Users see the runs they started; the operator and reviewers see all runs of the site.
 */
final class RunAccess {

	/**
	 * Creates the rule with its dependencies.
	 *
	 * @param Capabilities $capabilities Permission checks of the user.
	 */
	public function __construct( private readonly Capabilities $capabilities ) {}

	/**
	 * Checks whether the caller sees all runs of the site.
	 *
	 * @param Authority $authority User or operator the call runs as.
	 */
	public function sees_all( Authority $authority ): bool {
		return Authority::Operator === $authority || $this->capabilities->allows( Capabilities::REVIEW );
	}

	/**
	 * Checks whether the current user started the run.
	 *
	 * @param array<string, mixed> $view `wp-codebox/run/v1`.
	 */
	public function owns( array $view ): bool {
		$user      = get_current_user_id();
		$requester = $view['provenance']['requester'] ?? null;
		return $user > 0 && is_array( $requester ) && 'user' === ( $requester['kind'] ?? null ) && $user === ( $requester['id'] ?? null );
	}
}
