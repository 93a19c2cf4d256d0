<?php
/**
 * Text for the site's privacy policy.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

defined( 'ABSPATH' ) || exit;

/**
 * Suggests what a site owner should tell visitors and users.
 */
final class Privacy {

	/** Registers the hook. */
	public function register(): void {
		add_action( 'admin_init', [ $this, 'suggest' ] );
	}

	/** Adds the suggestion. */
	public function suggest(): void {
		wp_add_privacy_policy_content(
			'Codebox',
			wp_kses_post(
				wpautop(
					__( 'When a user of this site has a coding agent run in a sandbox, the site keeps the change the agent made and what it printed until the bundle is discarded, and the id of the user who asked. Who approved, applied or discarded a change is kept in an audit log with the user\'s id and login name. Exports of personal data list both; erasing an account does not change the audit log, since each of its records holds the hash of the one before. The plugin itself sends nothing to other servers; an agent may reach those that its task allows.', 'codebox' ),
					false
				)
			)
		);
	}
}
